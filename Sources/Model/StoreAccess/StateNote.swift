import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// Who uses a state directory: the file `owner` in it. A home may be on several machines and in
/// several containers at once, and where it lies on a file system that passes requests through (NFS
/// without locks, sshfs, FUSE), flock(2) says nothing about owners elsewhere.
///
/// - A directory that this kernel sees as the noted one (boot, device and inode are equal) is ours:
///   its lock tells whether a process owns it.
/// - A directory that was used before this machine started is ours (machine and host are equal).
/// - One whose noted process was on this kernel and has ended, or is this process, is ours, although
///   it was seen through another mount, or is a copy.
/// - Any other is somebody else's. It is left alone, with its journal, and a directory beside it is
///   used (`StateNote.directory`), of which there may be any number. The machines meet in the lists,
///   which are merged.
///
/// The time of the note is at most a day older than the last moment at which an owner used the
/// directory (`StoreLayout.noteUse`).
///
/// Half-broken states: without a note, or with one that cannot be read, the directory is ours: an
/// earlier version wrote none. Two machines that begin to use one directory at the same moment may
/// both take it; each later start then sees the note of one of them.
struct StateNote: Equatable {
  fileprivate static let name = "owner"

  /// The kernel, by /proc/sys/kernel/random/boot_id; the machine, by /etc/machine-id; its name.
  var boot, machine, host: String
  /// The directory, as the process sees it.
  var device, inode: UInt64
  /// The process, the time at which it started (proc(5), field 22), and its process namespace.
  var process, started, namespace: UInt64

  /// Returns what this process would note in the directory; nil if there is no such directory.
  init?(noting directory: String) {
    guard let status = try? Files.status(directory) else { return nil }
    boot = Self.line("/proc/sys/kernel/random/boot_id")
    machine = Self.line("/etc/machine-id")
    host = Surroundings.hostName
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    process = UInt64(getpid())
    started = Self.start(of: process) ?? 0
    namespace = Self.namespace
  }

  /// Reads the note in a directory; nil if there is none that can be read.
  private init?(in directory: String) {
    guard let bytes = try? Files.regularContents("\(directory)/\(Self.name)", limit: 4096)
    else {
      return nil
    }
    let lines = String(decoding: bytes, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    let numbers = lines.dropFirst(3).prefix(5).compactMap { UInt64($0) }
    guard lines.count >= 8, numbers.count == 5 else { return nil }
    (boot, machine, host) = (String(lines[0]), String(lines[1]), String(lines[2]))
    (device, inode, process) = (numbers[0], numbers[1], numbers[2])
    (started, namespace) = (numbers[3], numbers[4])
  }

  private static func line(_ path: String) -> String {
    let bytes = try? Files.contents(path, limit: 256)
    return String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n").first.map(
      String.init)
      ?? ""
  }

  /// When the process started, in ticks since the boot; nil if there is no such process.
  private static func start(of process: UInt64) -> UInt64? {
    guard let bytes = try? Files.contents("/proc/\(process)/stat", limit: 4096) else { return nil }
    // The name, which may hold anything, ends with the last parenthesis; it is the second field.
    let text = String(decoding: bytes, as: UTF8.self)
    guard let end = text.lastIndex(of: ")") else { return nil }
    let fields = text[end...].split(separator: " ")
    return fields.count > 20 ? UInt64(fields[20]) : nil
  }

  private static var namespace: UInt64 {
    (try? Files.status("/proc/self/ns/pid")).map { UInt64($0.st_ino) } ?? 0
  }

  /// Whether the directory, in which this note stands, may be used by the process that `here`
  /// describes.
  private func isOurs(_ here: StateNote) -> Bool {
    guard boot == here.boot else { return machine == here.machine && host == here.host }
    if device == here.device, inode == here.inode { return true }
    guard namespace == here.namespace else { return false }
    return process == here.process || Self.start(of: process) != started
  }

  /// Whether this process may use the directory; nil if there is none.
  fileprivate static func isFree(_ directory: String) -> Bool? {
    guard let note = StateNote(in: directory) else {
      return Files.isDirectory(directory) ? true : nil
    }
    return StateNote(noting: directory).map { note.isOurs($0) }
  }

  /// Returns the state directory of this machine: the one with that path, or where it is somebody
  /// else's, one beside it. Cost: where nobody else uses the home, three small files and a stat(2);
  /// else a listing, and three small files for each directory up to this machine's.
  static func directory(_ usual: String) -> String {
    let isUsualFree = isFree(usual)
    if isUsualFree == true { return usual }
    let numbers = StateDirectories.numbers(beside: usual)
    if let own = numbers.first(where: { isFree("\(usual).\($0)") == true }) {
      return "\(usual).\(own)"
    }
    // The usual one may have been removed, and the others not.
    guard isUsualFree != nil else { return usual }
    let taken = Set(numbers)
    var number = 2
    while taken.contains(number) { number += 1 }
    return "\(usual).\(number)"
  }

  /// Notes that this process uses the directory, whose lock it has. Throws EAGAIN if it is somebody
  /// else's.
  static func write(in directory: String) throws(SystemError) {
    guard let here = StateNote(noting: directory) else { return }
    if let note = StateNote(in: directory), !note.isOurs(here) {
      throw SystemError("lock", "\(directory) is used by \(note.host)", .wouldBlock)
    }
    let numbers = [here.device, here.inode, here.process, here.started, here.namespace]
    let lines = [here.boot, here.machine, here.host] + numbers.map { "\($0)" }
    try Files.replace(
      "\(directory)/\(name)", with: Array((lines.joined(separator: "\n") + "\n").utf8))
  }
}

extension StoreLayout {
  /// Notes in the state directory that this process, which has its lock, owns the store. Throws
  /// EAGAIN if a process of another machine uses the directory.
  public func noteOwner() throws(SystemError) { try StateNote.write(in: stateDirectory) }

  /// Notes by the time of the note that an owner uses the state directory. It is a time of the file
  /// system's clock, so that machines with other clocks can tell how old it is.
  public func noteUse() throws(SystemError) {
    try Descriptor(opening: noteFile(in: stateDirectory), O_WRONLY).touch()
  }

  /// Whether another machine, or a container, has used a state directory beside this one in the last
  /// two days, by the times of the notes: then the user's lists may be on several machines. Cost: a
  /// listing, and a few small files for each directory.
  package var isShared: Bool {
    let parent = Files.parent(of: stateDirectory)
    let names = (try? Files.names(in: parent, withDirectories: true)) ?? []
    return names.contains { name in
      let path = "\(parent)/\(name)"
      guard name != ".", name != "..", path != stateDirectory, let last = lastUse(of: path) else {
        return false
      }
      let age = lastUse(of: stateDirectory)?.nanoseconds(after: last) ?? 0
      return age < 2 * 86_400_000_000_000 && StateNote.isFree(path) == false
    }
  }

  private func lastUse(of directory: String) -> Timestamp? {
    (try? Files.linkStatus(noteFile(in: directory))).map { Timestamp($0.st_mtim) }
  }

  /// The file of the note in a state directory.
  package func noteFile(in directory: String) -> String { "\(directory)/\(StateNote.name)" }
}
