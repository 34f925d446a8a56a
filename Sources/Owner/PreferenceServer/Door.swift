import Glibc
import PreferenceModel
import Synchronization
import SystemCalls

/// The sockets at which the owner of a store listens for clients: one in the runtime directory, and
/// one in the state directory for processes that share only the home (containers, cron, su).
///
/// Promises: when a socket's name or directory is removed (a log-out, a cleaner of temporary files),
/// the socket is made anew where that is possible, and the note in the state directory says where
/// the first one is. While it is possible nowhere, `look` tries again every 0.5 s. Only a directory
/// that belongs to this user, and to which nobody else has access, is used.
///
/// The names of sockets are made and looked at with this process's own rights, also where the lists
/// are read with those of another user (`FileRights`).
///
/// Threads: the server's; `writeNote` any. Locks: one for a look, and one while the note is written.
final class Door: Sendable {
  private struct Opening: Sendable {
    var socket: SharedSocket
    var path: String
    var inode: ino_t
  }

  private let paths: [String]
  private let opensAll: Bool
  private let note: String?
  private let log: @Sendable (LogLine) -> Void
  private let watch: DirectoryWatch?
  private let sockets: DescriptorSet
  private let openings: Mutex<[Opening]>
  /// Held while the note is written: two threads would write one temporary file.
  private let noting = Mutex<Void>(())

  /// Milliseconds between two looks for the sockets' names, where there is no inotify instance.
  private static let pollInterval: CInt = 2000
  /// Milliseconds between two tries to make a socket, while there is none.
  private static let retryInterval: CInt = 500

  /// Begins to listen. Throws if no socket can be made.
  /// - Parameter opensAll: whether it listens at each of the paths, or at the first that it can.
  init(
    _ paths: [String], opensAll: Bool = true, note: String?,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(SystemError) {
    (self.paths, self.note, self.log) = (paths, note, log)
    self.opensAll = opensAll
    watch = try? DirectoryWatch()
    sockets = try DescriptorSet()
    openings = Mutex([])
    let rights = FileRights.takeOwn()
    defer { FileRights.giveBack(rights) }
    let (opened, failure) = open(paths)
    guard !opened.isEmpty else { throw failure }
    writeNote()
  }

  /// A descriptor for poll(2), readable when a client connects.
  var number: CInt { sockets.number }

  /// A descriptor for poll(2), readable when a name may be gone; -1 where there is no inotify
  /// instance.
  var watchNumber: CInt { watch?.number ?? -1 }

  /// Milliseconds after which `look` must be called although no descriptor is readable; -1: never.
  var pause: CInt {
    let isOpen = openings.withLock { !$0.isEmpty }
    return !isOpen ? Self.retryInterval : watch == nil ? Self.pollInterval : -1
  }

  /// Accepts the next client; nil if none is waiting.
  func accept() throws(SystemError) -> Socket? {
    for opening in openings.withLock({ $0 }) {
      if let socket = try opening.socket.value.accept() { return socket }
    }
    return nil
  }

  /// Whether a socket's name is gone, or is that of another socket.
  var isReplaced: Bool {
    let rights = FileRights.takeOwn()
    defer { FileRights.giveBack(rights) }
    _ = watch?.events()
    return openings.withLock { $0.contains { !Self.isInPlace($0) } }
  }

  /// Makes anew the sockets whose names are gone. Connections are not touched.
  func look() {
    let rights = FileRights.takeOwn()
    defer { FileRights.giveBack(rights) }
    _ = watch?.events()
    let before = openings.withLock { openings in
      defer { openings.removeAll { !Self.isInPlace($0) } }
      return openings.map(\.path)
    }
    let kept = openings.withLock { $0.map(\.path) }
    for path in kept { watch(path) }
    // A name that is another socket's, of an owner in another mount namespace, is left to it while
    // there is a different way to this one.
    let missing = paths.filter { path in
      !kept.contains(path) && (kept.isEmpty || opensAll && Self.inode(path) == nil)
    }
    guard !missing.isEmpty else { return }
    let (opened, failure) = open(missing)
    if let first = opened.first {
      log("the name of the store's socket was removed; the owner listens at \(first)")
      writeNote()
    } else if !before.isEmpty, kept.isEmpty {
      log("no program can reach prefsd of this store: \(failure)")
    }
  }

  /// Writes the path of the first socket to the note. Without the note, only clients with the same
  /// `XDG_RUNTIME_DIR` find it.
  func writeNote() {
    guard let note, let path = openings.withLock({ $0.first?.path }) else { return }
    do throws(SystemError) {
      try noting.withLock { _ throws(SystemError) in
        try Files.replace(note, with: Array(path.utf8))
      }
    } catch {
      log("programs with another XDG_RUNTIME_DIR cannot find prefsd: \(error)")
    }
  }

  /// Stops listening: a client that connects is refused at once. The names stay; the next owner,
  /// which may be there already, replaces them.
  func close() {
    for opening in openings.withLock({ $0 }) { opening.socket.value.end() }
  }

  /// Watches the socket's directory and the one above it. Watching one again changes nothing.
  private func watch(_ path: String) {
    let directory = Files.parent(of: path)
    for each in [directory, Files.parent(of: directory)] { _ = try? watch?.add(each) }
  }

  private static func inode(_ path: String) -> ino_t? {
    (try? Files.linkStatus(path)).flatMap { $0?.st_ino }
  }

  private static func isInPlace(_ opening: Opening) -> Bool { inode(opening.path) == opening.inode }

  /// Makes a socket at each of the paths where that is possible.
  /// - Returns: the paths, and why there is none at the last of the others.
  private func open(_ paths: [String]) -> (opened: [String], failure: SystemError) {
    var opened: [String] = []
    var failure = SystemError("bind", paths.first ?? "", .noSuchFile)
    for path in paths where opensAll || opened.isEmpty {
      do throws(SystemError) {
        try Self.makePrivateDirectory(Files.parent(of: path))
        let socket = SharedSocket(try Socket.listening(at: path))
        guard let inode = Self.inode(path) else { continue }
        try sockets.add(socket.value.number)
        let opening = Opening(socket: socket, path: path, inode: inode)
        openings.withLock { openings in
          openings.append(opening)
          openings.sort {
            self.paths.firstIndex(of: $0.path) ?? 0 < self.paths.firstIndex(of: $1.path) ?? 0
          }
        }
        watch(path)
        opened.append(path)
      } catch {
        failure = error
      }
    }
    return (opened, failure)
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
