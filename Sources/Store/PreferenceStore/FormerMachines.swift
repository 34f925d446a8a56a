import Glibc
import PreferenceHistory
import PreferenceModel
import StoreAccess
import SystemCalls

/// The state directories of other machines that have used the same home, beside the one of this
/// machine. They may be in use there; nothing in them is changed.
///
/// - A machine that uses a home for the first time goes on with the history of the one that has
///   changed something last (`adoptHistory`). So what was changed before a move, or before the
///   machine was installed anew, can be seen and undone.
/// - A directory that nobody has used for 60 days, and that has nothing that is not elsewhere, goes
///   (`removeOld`): a machine that gets another identity at each start makes one each time.
///
/// The file `adopted` of a state directory says which histories its own one has: for each of them a
/// line with the name of the directory, and the number and the size of its newest file then. A line
/// goes with its directory.
///
/// Half-broken states: an adoption that a crash interrupts begins anew (`history.new`). If it is
/// complete, and its note is missing, the other directory stays. What a crash leaves of a directory
/// that is being removed has another name (`.gone`), and goes the next time.
///
/// Threads: any; it may wait for a disk.
struct FormerMachines {
  private let layout: StoreLayout
  private let log: @Sendable (LogLine) -> Void

  /// Days without use after which a directory may go.
  private static let patience: Int64 = 60
  private static let gone = ".gone"
  /// What a directory may have that goes. Keys of the cloud, damaged journals, and what is not known
  /// here, keep it.
  private static let disposable: Set<String> = [
    "adopted", "boot", "history", "history.new", "lists.lock", "lock", "metadata", "mounts",
    "owner", "run", "socket",
  ]

  init(_ layout: StoreLayout, log: @escaping @Sendable (LogLine) -> Void) {
    (self.layout, self.log) = (layout, log)
  }

  private func note(in directory: String) -> String { "\(directory)/adopted" }

  private func history(in directory: String) -> HistoryDirectory {
    HistoryDirectory("\(directory)/history")
  }

  private func line(_ directory: String, _ extent: HistoryDirectory.Extent) -> String {
    "\(Self.name(directory)) \(extent.file) \(extent.size)"
  }

  private static func name(_ directory: String) -> Substring {
    directory.split(separator: "/").last ?? ""
  }

  /// The histories that the one of a directory has.
  private func adopted(in directory: String) -> [String] {
    let bytes = try? Files.regularContents(note(in: directory), limit: 1 << 20)
    return String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  // MARK: - A new machine

  /// Begins the history of this machine, which has never had one, with the one that was written to
  /// last. Where that fails, the log says so, and the machine begins without.
  func adoptHistory() {
    guard !Files.isDirectory(layout.history.path), adopted(in: layout.stateDirectory).isEmpty
    else { return }
    do throws(SystemError) {
      guard let source = try newest() else { return }
      let last = source.directory
      let fresh = HistoryDirectory(layout.history.path + ".new")
      try Self.removeTree(fresh.path)
      try fresh.copyFiles(of: history(in: last))
      try SeenLists(fresh).copy(from: SeenLists(history(in: last)))
      try Files.rename(fresh.path, to: layout.history.path)
      // A directory that is gone needs no line, and its name may be given to another machine's.
      let present = Set(layout.otherStateDirectories.map(Self.name))
      let known = adopted(in: last).filter { line in
        line.split(separator: " ").first.map(present.contains) == true
      }
      let lines = known + [line(last, source.extent)]
      try Files.replace(
        note(in: layout.stateDirectory), with: Array((lines.joined(separator: "\n") + "\n").utf8))
    } catch {
      log("the history of this home's last machine could not be copied: \(error)")
    }
  }

  /// The directory whose history was written to last.
  private func newest() throws(SystemError) -> (
    directory: String, extent: HistoryDirectory.Extent
  )? {
    var found: (directory: String, extent: HistoryDirectory.Extent)?
    for directory in layout.otherStateDirectories {
      guard let extent = try history(in: directory).extent() else { continue }
      if let known = found, known.extent.changed >= extent.changed { continue }
      found = (directory, extent)
    }
    return found
  }

  // MARK: - Old machines

  /// Removes the directories that nobody has used for long and that have nothing of their own. How
  /// old something is, the time of this machine's note tells: where several machines see the files,
  /// one clock has set both times.
  func removeOld() {
    let note = layout.noteFile(in: layout.stateDirectory)
    guard let now = Self.modified(note) else { return }
    for directory in layout.otherStateDirectories {
      do throws(SystemError) {
        guard try isOver(directory, now) else { continue }
        try Files.rename(directory, to: directory + Self.gone)
        log(.notice("\(directory): removed; its machine has not used it for \(Self.patience) days"))
      } catch {
        log("\(directory): this old state directory could not be removed: \(error)")
      }
    }
    removeGone()
  }

  private static func modified(_ path: String) -> Timestamp? {
    (try? Files.linkStatus(path)).map { Timestamp($0.st_mtim) }
  }

  /// Whether a directory may go.
  private func isOver(_ directory: String, _ now: Timestamp) throws(SystemError) -> Bool {
    let names = try Files.names(in: directory, withDirectories: true) ?? []
    let journals = names.filter { $0.hasPrefix(Journal.prefix) }
    guard Set(names).subtracting(journals).subtracting([".", ".."]).isSubset(of: Self.disposable)
    else { return false }
    let times = names.filter { $0 != "." && $0 != ".." }
      .compactMap { Self.modified("\(directory)/\($0)") }
    let extent = try history(in: directory).extent()
    guard let last = (times + [extent?.changed].compactMap { $0 }).max(),
      now.nanoseconds(after: last) > Self.patience * HistoryMoment.day,
      extent.map({ adopted(in: layout.stateDirectory).contains(line(directory, $0)) }) ?? true,
      !StoreLock.isOwned(directory)
    else { return false }
    return try isJournalEmpty(directory)
  }

  /// Whether the lists have everything that the journal of a directory has.
  private func isJournalEmpty(_ directory: String) throws(SystemError) -> Bool {
    var isDamaged = false
    let replay = try Journal.read(directory, keepsDamaged: false) { _ in isDamaged = true }
    var state = StoreState()
    state.replay(replay.entries)
    return !isDamaged && state.pending.isEmpty
  }

  /// Removes what `removeOld` has given another name.
  private func removeGone() {
    let parent = Files.parent(of: layout.stateDirectory)
    let own = Self.name(layout.stateDirectory)
    let usual = (own.split(separator: ".").first ?? own) + "."
    for name in (try? Files.names(in: parent, withDirectories: true)) ?? []
    where name.hasPrefix(usual) && name.hasSuffix(Self.gone) {
      // What fails now is tried again by the next owner.
      do throws(SystemError) { try Self.removeTree("\(parent)/\(name)") } catch {}
    }
  }

  private static func removeTree(_ path: String) throws(SystemError) {
    guard let status = try Files.linkStatus(path) else { return }
    guard status.st_mode & S_IFMT == S_IFDIR else { return try Files.remove(path) }
    for name in try Files.names(in: path, withDirectories: true) ?? []
    where name != "." && name != ".." {
      try removeTree("\(path)/\(name)")
    }
    if rmdir(path) != 0 { throw SystemError("rmdir", path) }
  }
}
