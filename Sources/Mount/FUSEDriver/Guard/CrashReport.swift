import CLinux

/// Tells the guard when this process crashes. Both functions are in one file, because the C
/// functions below keep their settings in static variables, of which each object file has its own.
enum CrashReport {
  /// Has crashes reported over the channel from now on.
  static func tell(_ channel: CInt) {
    prefsfs_tell_of_crashes(channel, GuardChannel.Word.crashing.rawValue)
  }

  /// Whether a crash writes no core dump: a thread may be waiting in the kernel for a request that
  /// the crash leaves unanswered, and the kernel would wait for that thread first.
  static func forbidDumps(_ areForbidden: Bool) { prefsfs_forbid_dumps(areForbidden ? 1 : 0) }
}
