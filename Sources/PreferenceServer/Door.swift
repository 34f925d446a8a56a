import Glibc
import PreferenceModel
import Synchronization
import SystemCalls

/// The socket at which the owner of a store listens for clients.
///
/// Promises: when the socket's name or directory is removed (a log-out, a cleaner of temporary
/// files), the socket is made anew at the first of the paths at which that is possible, and the
/// note in the state directory says where. While it is possible at none, `look` tries again every
/// 0.5 s. Only a directory that belongs to this user, and to which nobody else has access, is used.
///
/// Threads: the server's; `writeNote` any. One lock, held for a look.
final class Door: Sendable {
  private struct Opening: Sendable {
    var socket: SharedSocket
    var path: String
    var inode: ino_t
  }

  private let paths: [String]
  private let note: String?
  private let log: @Sendable (String) -> Void
  private let watch: DirectoryWatch?
  private let opening: Mutex<Opening?>

  /// Milliseconds between two looks for the socket's name, where there is no inotify instance.
  private static let pollInterval: CInt = 2000
  /// Milliseconds between two tries to make a socket, while there is none.
  private static let retryInterval: CInt = 500

  init(
    _ paths: [String], note: String?, log: @escaping @Sendable (String) -> Void
  ) throws(SystemError) {
    (self.paths, self.note, self.log) = (paths, note, log)
    watch = try? DirectoryWatch()
    let first = try Self.open(paths)
    opening = Mutex(first)
    watch(first.path)
    writeNote()
  }

  /// The socket's descriptor for poll(2), readable when a client connects; -1 where there is no
  /// socket.
  var number: CInt { opening.withLock { $0?.socket.value.number ?? -1 } }

  /// A descriptor for poll(2), readable when the name may be gone; -1 where there is no inotify
  /// instance.
  var watchNumber: CInt { watch?.number ?? -1 }

  /// Milliseconds after which `look` must be called although no descriptor is readable; -1: never.
  var pause: CInt {
    let isOpen = opening.withLock { $0 != nil }
    return !isOpen ? Self.retryInterval : watch == nil ? Self.pollInterval : -1
  }

  /// Accepts the next client; nil: none is waiting.
  func accept() throws(SystemError) -> Socket? {
    guard let socket = opening.withLock({ $0?.socket }) else { return nil }
    return try socket.value.accept()
  }

  /// Makes the socket anew if its name is gone. Connections are not touched.
  func look() {
    _ = watch?.events()
    if let known = opening.withLock({ $0 }), Self.inode(known.path) == known.inode {
      return watch(known.path)
    }
    do throws(SystemError) {
      let next = try Self.open(paths)
      opening.withLock { $0 = next }
      watch(next.path)
      log("the name of the store's socket was removed; the owner listens at \(next.path)")
      writeNote()
    } catch {
      let isNews = opening.withLock { opening in
        defer { opening = nil }
        return opening != nil
      }
      if isNews { log("nobody can reach the owner of the store: \(error)") }
    }
  }

  /// Writes the socket's path to the note. Without the note, only clients with the same
  /// `XDG_RUNTIME_DIR` find the socket.
  func writeNote() {
    guard let note, let path = opening.withLock({ $0?.path }) else { return }
    do throws(SystemError) {
      try Descriptor(opening: note, O_WRONLY | O_CREAT | O_TRUNC).write(Array(path.utf8))
    } catch {
      log("processes with another XDG_RUNTIME_DIR do not find the owner of the store: \(error)")
    }
  }

  /// Stops listening: a client that connects is refused at once. The name stays; the next owner,
  /// which may be there already, replaces it.
  func close() {
    opening.withLock { $0?.socket }?.value.end()
  }

  /// Watches the socket's directory and the one above it. Watching one again changes nothing.
  private func watch(_ path: String) {
    let directory = Files.parent(of: path)
    for each in [directory, Files.parent(of: directory)] { _ = try? watch?.add(each) }
  }

  private static func inode(_ path: String) -> ino_t? {
    (try? Files.linkStatus(path)).flatMap { $0?.st_ino }
  }

  private static func open(_ paths: [String]) throws(SystemError) -> Opening {
    var failure = SystemError("bind", paths.first ?? "", .noSuchFile)
    for path in paths {
      do throws(SystemError) {
        try makePrivateDirectory(Files.parent(of: path))
        let socket = SharedSocket(try Socket.listening(at: path))
        if let inode = inode(path) { return Opening(socket: socket, path: path, inode: inode) }
      } catch {
        failure = error
      }
    }
    throw failure
  }

  /// Makes the directory if there is none. Throws EPERM where it is another user's, or others have
  /// access to it.
  private static func makePrivateDirectory(_ path: String) throws(SystemError) {
    try Files.makeDirectories(path, mode: 0o700)
    guard let status = try Files.linkStatus(path), status.st_mode & S_IFMT == S_IFDIR,
      status.st_uid == geteuid(), status.st_mode & 0o077 == 0
    else { throw SystemError("open", path, .notPermitted) }
  }
}
