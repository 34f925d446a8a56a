import CLinux
import Glibc
import Synchronization

/// Changes of directories' entries, as inotify(7) tells them. Any thread may add, one reads.
public final class DirectoryWatch: Sendable {
  /// What happened: the path of the directory as it was added, and the name in it; nil name: the
  /// directory itself went or came, or events were lost.
  public struct Event: Hashable, Sendable {
    /// The directory.
    public let directory: String
    /// The entry.
    public let name: String?
    /// Whether the entry was made just now: a file that somebody is about to write.
    public let isCreation: Bool
  }

  private let descriptor: Descriptor
  private let directories = Mutex<[CInt: Set<String>]>([:])

  /// Fails when the user has too many (fs.inotify.max_user_instances).
  public init() throws(SystemError) {
    let number = inotify_init1(CInt(IN_CLOEXEC) | CInt(IN_NONBLOCK))
    if number < 0 { throw SystemError("inotify_init1", "") }
    descriptor = Descriptor(owning: number)
  }

  /// For poll(2): readable when something happened.
  public var number: CInt { descriptor.number }

  /// Watches for files that are written and closed, that come, go, or are renamed.
  /// - Returns: false where there is no directory.
  public func add(_ directory: String) throws(SystemError) -> Bool {
    let mask =
      IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF
      | IN_MOVE_SELF | IN_ONLYDIR
    let watch = inotify_add_watch(descriptor.number, directory, UInt32(mask))
    if watch >= 0 {
      directories.withLock { _ = $0[watch, default: []].insert(directory) }
      return true
    }
    let reason = Errno.current
    if reason == .noSuchFile || reason == .notDirectory { return false }
    throw SystemError("inotify_add_watch", directory, reason)
  }

  /// What happened since the last time; never waits.
  public func events() -> Set<Event> {
    var events: Set<Event> = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(descriptor.number, &buffer, buffer.count)
      guard count > 0 else { return events }
      buffer.withUnsafeBytes { bytes in
        parse(UnsafeRawBufferPointer(rebasing: bytes[..<count]), into: &events)
      }
    }
  }

  private func parse(_ bytes: UnsafeRawBufferPointer, into events: inout Set<Event>) {
    var offset = 0
    let head = MemoryLayout<inotify_event>.size
    while offset + head <= bytes.count {
      let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
      let name = bytes[(offset + head)..<(offset + head + Int(event.len))].prefix { $0 != 0 }
      offset += head + Int(event.len)
      let paths = directories.withLock { directories in
        // The kernel has dropped the watch, or lost events of all.
        if event.mask & UInt32(IN_IGNORED) != 0 {
          return directories.removeValue(forKey: event.wd) ?? []
        }
        return event.wd < 0
          ? directories.values.reduce(into: []) { $0.formUnion($1) } : directories[event.wd] ?? []
      }
      for path in paths {
        let text = String(decoding: name, as: UTF8.self)
        events.insert(
          Event(
            directory: path, name: text.isEmpty ? nil : text,
            isCreation: event.mask & UInt32(IN_CREATE) != 0))
      }
    }
  }
}
