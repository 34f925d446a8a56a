import CLinux
import Glibc
import Synchronization

/// Reports changes of the entries of directories, as inotify(7) sees them. Any thread may add
/// directories; one thread reads the events.
public final class DirectoryWatch: Sendable {
  /// A change of an entry of a watched directory.
  ///
  /// Where `name` is nil, the event is about the directory as a whole: it was removed, renamed or
  /// unmounted, or events were lost.
  public struct Event: Hashable, Sendable {
    /// The path of the directory, as it was given to `add`.
    public let directory: String
    /// The name of the entry in the directory; nil where any entry may have changed.
    public let name: String?
    /// Whether the entry has just been made: usually a file that is about to be written.
    public let isCreation: Bool
  }

  private let descriptor: Descriptor
  private let directories = Mutex<[CInt: Set<String>]>([:])

  /// Creates a watch without directories. Fails where the user has too many inotify instances
  /// (fs.inotify.max_user_instances).
  public init() throws(SystemError) {
    let number = inotify_init1(CInt(IN_CLOEXEC) | CInt(IN_NONBLOCK))
    if number < 0 { throw SystemError("inotify_init1", "") }
    descriptor = Descriptor(owning: number)
  }

  /// The descriptor for poll(2). It is readable when there are events.
  public var number: CInt { descriptor.number }

  /// Watches a directory for files that are closed after writing, and for entries that come, go or
  /// are renamed.
  /// - Parameter withModes: whether changes of the entries' modes are reported too.
  /// - Returns: false where there is no directory at the path.
  public func add(
    _ directory: String, withModes: Bool = false
  ) throws(SystemError) -> Bool {
    // A directory that is added again keeps what was asked for before.
    var mask = UInt32(IN_MASK_ADD.magnitude) | (withModes ? UInt32(IN_ATTRIB) : 0)
    for event in [
      IN_CLOSE_WRITE, IN_CREATE, IN_MOVED_TO, IN_MOVED_FROM, IN_DELETE, IN_DELETE_SELF,
      IN_MOVE_SELF, IN_ONLYDIR,
    ] { mask |= UInt32(event) }
    let watch = inotify_add_watch(descriptor.number, directory, mask)
    if watch >= 0 {
      directories.withLock { _ = $0[watch, default: []].insert(directory) }
      return true
    }
    let reason = Errno.current
    if reason == .noSuchFile || reason == .notDirectory { return false }
    throw SystemError("inotify_add_watch", directory, reason)
  }

  /// Watches a directory for its own removal or renaming alone. Where that is not possible, nothing
  /// is reported.
  public func addItself(_ directory: String) {
    var mask = UInt32(IN_MASK_ADD.magnitude)
    for event in [IN_DELETE_SELF, IN_MOVE_SELF, IN_ONLYDIR] { mask |= UInt32(event) }
    let watch = inotify_add_watch(descriptor.number, directory, mask)
    if watch >= 0 { directories.withLock { _ = $0[watch, default: []].insert(directory) } }
  }

  /// Removes and returns the events since the last call; never waits.
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
        // IN_IGNORED: the kernel has dropped this watch. A negative number: events of any directory
        // were lost.
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
