import CLinux
import Glibc

/// What proc(5) says of a process that is known by the number of one of its threads.
public struct ProcessFacts: Equatable, Sendable {
  /// The number of the process.
  public let process: pid_t
  /// The path of its program; empty where it cannot be told: the process has ended, or is another
  /// user's.
  public let program: String
  /// The last part of its control group; empty where it cannot be told. Of a process that
  /// `prefs record` has started, or one of its descendants, `record-` and the number of that.
  public let unit: String

  /// Reads them. Cost: two files of proc(5), which are in memory, one for each ancestor, and one more
  /// for a thread that is not the first one of its process. Of a thread that has ended only the number
  /// is known.
  public init(ofThread thread: pid_t) {
    process = Self.process(ofThread: thread)
    program = Self.withoutMark(Files.linkTarget("/proc/\(thread)/exe") ?? "")
    unit = Self.recorder(above: process) ?? Self.unit(Self.lines("/proc/\(thread)/cgroup"))
  }

  /// The name of a process, as /proc/PID/comm has it, that records what its descendants change.
  private static let recorderName = "defaults-record"

  /// Gives this process the name of a recorder.
  /// - Returns: the unit that its descendants have from now on; nil if it cannot have the name.
  public static func beginRecording() -> String? {
    do throws(SystemError) {
      try Descriptor(opening: "/proc/self/comm", O_WRONLY).write(Array(recorderName.utf8))
      return unit(ofRecorder: getpid())
    } catch {
      return nil
    }
  }

  private static func unit(ofRecorder process: pid_t) -> String { "record-\(process)" }

  /// Returns the unit of the recorder among the ancestors of a process; nil if there is none.
  private static func recorder(above process: pid_t) -> String? {
    var process = process
    for _ in 0..<64 {
      guard process > 1, let (name, _, parent) = status(of: process) else { return nil }
      if name.elementsEqual(recorderName.utf8) { return unit(ofRecorder: process) }
      process = parent
    }
    return nil
  }

  private static func status(
    of process: pid_t
  ) -> (name: ArraySlice<UInt8>, state: UInt8?, parent: pid_t)? {
    let contents = try? Files.contents("/proc/\(process)/stat", limit: 4096)
    // "PID (NAME) STATE PARENT ...", and the name may have any character.
    guard let contents, let start = contents.firstIndex(of: UInt8(ascii: "(")),
      let end = contents.lastIndex(of: UInt8(ascii: ")")), start < end
    else { return nil }
    let fields = contents[(end + 1)...].split(separator: UInt8(ascii: " "), maxSplits: 2)
    guard fields.count > 1, let parent = pid_t(String(decoding: fields[1], as: UTF8.self)) else {
      return nil
    }
    return (contents[(start + 1)..<end], fields[0].first, parent)
  }

  /// Whether a process is there, and is not stopped (SIGSTOP, a debugger). Cost: a file of proc(5),
  /// which is in memory.
  public static func isRunning(_ process: pid_t) -> Bool {
    status(of: process)?.state.map { !"TtZX".utf8.contains($0) } ?? false
  }

  /// The process of a thread; the thread's own number where that cannot be told.
  private static func process(ofThread thread: pid_t) -> pid_t {
    if prefsfs_is_process(thread) != 0 { return thread }
    let mark = "Tgid:\t"
    let line = lines("/proc/\(thread)/status").first { $0.starts(with: mark.utf8) }
    let number = line.map { String(decoding: $0.dropFirst(mark.utf8.count), as: UTF8.self) }
    return number.flatMap { pid_t($0) } ?? thread
  }

  /// The path of a program whose file was replaced, as a link of proc(5) has it, without the mark
  /// of that.
  public static func withoutMark(_ path: String) -> String {
    let mark = " (deleted)"
    return path.hasSuffix(mark) ? String(path.dropLast(mark.count)) : path
  }

  /// The last part of the control group in the unified hierarchy, or in systemd's.
  /// - Parameter lines: those of `cgroup` (cgroups(7)): "number:controllers:path".
  static func unit(_ lines: [ArraySlice<UInt8>]) -> String {
    let groups = lines.map { line in
      line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
    }.filter { $0.count == 3 }
    let group =
      groups.first { $0[1].isEmpty && !$0[2].elementsEqual("/".utf8) }
      ?? groups.first { $0[1].elementsEqual("name=systemd".utf8) }
    let name = group?[2].split(separator: UInt8(ascii: "/")).last
    return String(decoding: name ?? [], as: UTF8.self)
  }

  /// The lines of a file, as bytes, which are split much faster than characters.
  private static func lines(_ path: String) -> [ArraySlice<UInt8>] {
    let bytes = (try? Files.contents(path, limit: 1 << 16)) ?? []
    return bytes.split(separator: UInt8(ascii: "\n"))
  }
}
