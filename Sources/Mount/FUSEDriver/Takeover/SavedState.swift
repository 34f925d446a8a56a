import PreferenceModel
import PreferenceTree
import PropertyList
import Synchronization
import SystemCalls

/// Saves what a successor of this driver must know, in memory that outlives the process (the guard
/// has its descriptor): the state of the trees, events that watchers have not got yet, and
/// registered defaults. What `TreeSaver` does not save is made again or, a text that is under way,
/// lost.
///
/// Promises: a request's effects on the trees are saved with its number in one step, before the
/// answer is sent. Its changes go to the owner before that, each with a number of its own, and the
/// owner makes none twice. The change that the request asks for has the number 0
/// (`RepeatableChanges`). So for each request that is sent again (FUSE_NOTIFY_RESEND) one of these
/// holds:
/// - the trees have its effects (`SavedRequest`): it is answered by what they show;
/// - they have not, and the owner has made the change number 0. A WRITE is answered; the trees
///   follow other requests without a change (`KeyFiles+Made`);
/// - neither: the message was not sent, or not read; or there is no such change, because the
///   request asks for none, or its repetition has the same answer. It is carried out as if it came
///   now, and so is one of a file whose text is lost. A message that the owner reads later, and a
///   text that was decided before, are the same changes with the same numbers.
///
/// Cost: of a request that changes nothing, one store. Of others, a copy of what has changed: some
/// hundred bytes. A log that has grown is replaced by a whole state, in one go, for which requests
/// wait: O(nodes). That is done when the log has grown by as much as a whole state takes, by 16 MiB
/// at least (or by half of the room that is left); and when it has grown by a quarter of that, and
/// by 256 KiB, and nothing was added for a second. So a mount whose loop is never idle pauses once
/// for tens of thousands of changes, and an idle one keeps little more than its state.
///
/// Half-broken states: where the log has no room for something (the limits of the process leave it
/// 8 MiB), the number `format` becomes 0, and a successor refuses the state. A whole state is tried
/// at once, and then every 10 s; one that fits mends it.
///
/// Threads: the loop's alone, except the numbers.
final class SavedState {
  /// The numbers beside the log.
  enum Number: Int {
    /// The version of everything that is saved: `format`.
    case format
    /// The request that is being carried out; 0 if there is none.
    case request
    /// The request that was being carried out when a driver ended, and how often that was so.
    case suspect
    case suspectDeaths
    /// The thread that announces something at the moment; 0 if there is none.
    case announcer
    /// The number of the last announcement that was made.
    case announced
    /// The number that identifies this mount in the store: `RepeatableChanges.client`.
    case client
    /// When the mount was made, in nanoseconds since 1970.
    case mounted
    /// How many drivers have ended unexpectedly, and how many were replaced by an upgrade.
    case crashes
    case upgrades
    /// When the loop last looked for changes of others, in nanoseconds since 1970: what was made
    /// three seconds earlier was announced, or its announcement is saved. (A directory where
    /// inotify does not work is looked at every 2 s.)
    case looked
    /// The number of the last request that was read, where the kernel cannot send requests again.
    case read
    /// The number of the driver as an author of changes (`Author`), by which changes wait for it;
    /// 0 if it is not known.
    case author
  }

  /// What a frame of the log has.
  enum Frame: UInt8 {
    /// A request, and changes of the trees: `SavedRequest`, `Forest.saveChanges`.
    case trees
    /// The number of an announcement, and the announcement.
    case announcement
    /// The registered defaults of all domains.
    case registered
  }

  /// The version of everything that is saved. A driver takes over only from one of its own version.
  static let format: UInt64 = 19

  let log: SharedLog
  private var frames = ByteWriter()
  /// The memory for changes of the trees, which is used again.
  private var changes = ByteWriter()
  /// The last requests of predecessors, for a new whole state: the kernel may send them again.
  private var earlier: [SavedRequest] = []
  private var announcements: [(number: UInt64, announcement: Announcement)] = []
  private var lastAnnouncement: UInt64 = 0
  /// How many announcements may wait before repeated ones are dropped.
  private var mostAnnouncements = SavedState.leastAnnouncements
  private static let leastAnnouncements = 4096
  private var registered: [UInt8] = []
  /// `RegisteredDefaults.registrations` when they were saved.
  private var savedRegistrations: UInt64 = 0
  /// Bytes of the log after it was last replaced, and when something was last added.
  private var replacedCount = 0
  private var lastCommit = Instant.now
  /// How many requests of predecessors a whole state has. A reply is held for 2 s at most.
  private static let keptRequests = 8192
  /// Whether the log lacks something that it had no room for. Until it is replaced by a whole
  /// state, a successor refuses it.
  private(set) var isIncomplete = false
  /// When a whole state that had no room is tried again.
  private var nextTry = Instant(nanoseconds: 0)
  /// Milliseconds until then.
  private static let patience: Int64 = 10_000

  /// Begins to save in the log; what is in it stays until `replace`.
  init(_ log: SharedLog) { self.log = log }

  subscript(number: Number) -> UInt64 {
    get { log[number.rawValue] }
    set { log[number.rawValue] = newValue }
  }

  // MARK: - What is saved

  /// Adds what has changed in the trees to the next commit.
  /// - Parameter request: the request that has changed them; nil if none has.
  func addChanges(of forest: Forest, by request: SavedRequest?) {
    defer { changes.removeAll() }
    forest.saveChanges(&changes)
    guard !changes.isEmpty else { return }
    add(.trees) { writer in
      writer.append(request ?? SavedRequest(0))
      changes.withBytes { writer.append(raw: $0) }
    }
  }

  /// Adds announcements, in order, to the next commit.
  /// - Returns: the number of the last one, which is noted in `.announced` once they are made.
  func add(_ new: [Announcement]) -> UInt64 {
    dropAnnouncements()
    for announcement in new where announcements.count < CacheInvalidator.mostAnnouncements {
      lastAnnouncement &+= 1
      announcements.append((lastAnnouncement, announcement))
      add(.announcement, lastAnnouncement, announcement)
    }
    return lastAnnouncement
  }

  /// Drops the announcements that were made. If the others are many, of several of one kind for one
  /// name only the last is kept, so that a watcher that is slow does not fill the memory.
  private func dropAnnouncements() {
    let done = self[.announced]
    if let first = announcements.first, first.number <= done {
      announcements.removeAll { $0.number <= done }
    }
    guard announcements.count > mostAnnouncements else { return }
    var seen: Set<[String]> = []
    announcements = announcements.reversed().filter { _, announcement in
      seen.insert([announcement.directory, announcement.name, announcement.kind.word]).inserted
    }.reversed()
    mostAnnouncements = max(Self.leastAnnouncements, 2 * announcements.count)
  }

  private func add(_ kind: Frame, _ number: UInt64, _ announcement: Announcement) {
    add(kind) { writer in
      writer.append(number)
      writer.append(announcement)
    }
  }

  /// Adds the registered defaults, if they have changed since they were saved last.
  func noteRegistered(_ defaults: (any RegisteredDefaults)?) {
    guard let defaults, defaults.registrations != savedRegistrations else { return }
    savedRegistrations = defaults.registrations
    var writer = ByteWriter()
    writer.append(defaults.registeredDefaults)
    registered = writer.bytes
    add(.registered) { $0.append(raw: registered) }
  }

  private func add(_ kind: Frame, _ body: (inout ByteWriter) -> Void) {
    frames.append(kind.rawValue)
    let start = frames.count
    frames.append(0 as UInt32)
    body(&frames)
    frames.overwrite(at: start, with: UInt32(clamping: frames.count - start - 4))
  }

  /// Saves what was added, in one step.
  func commit() {
    guard !frames.isEmpty else { return }
    if !frames.withBytes(log.append), !isIncomplete {
      isIncomplete = true
      self[.format] = 0
    }
    frames.removeAll()
    lastCommit = .now
  }

  // MARK: - Whole states

  /// Whether the log should be replaced by a whole state.
  var isLong: Bool {
    guard isIncomplete || log.count > limit || idleDeadline.map({ $0 <= .now }) == true else {
      return false
    }
    return nextTry <= .now
  }

  /// When a log that has grown, or lacks something, is to be replaced although nothing is added;
  /// nil if it need not be.
  var idleDeadline: Instant? {
    if isIncomplete { return nextTry }
    let growth = max(Self.idleGrowth, replacedCount / 4)
    guard log.count - replacedCount > growth else { return nil }
    return max(lastCommit.advanced(milliseconds: 1000), nextTry)
  }

  /// Bytes of the log at which it is replaced.
  private var limit: Int {
    let growth = max(replacedCount, Self.leastGrowth)
    return replacedCount + min(growth, (log.room - replacedCount) / 2)
  }

  /// Bytes by which the log grows at least before it is replaced.
  private static let leastGrowth = 16 << 20
  /// The same where nothing is added for a second.
  private static let idleGrowth = 256 << 10

  /// Replaces the log by a whole state. Where that has no room, the log goes on, as long as it has
  /// room.
  /// - Parameters:
  ///   - trees: `Forest.saveAll`.
  ///   - requests: those of which the trees have the effects, and that were not answered.
  func replace(trees: [UInt8], _ requests: [SavedRequest] = []) {
    commit()
    addAll()
    for request in earlier + requests { add(.trees) { $0.append(request) } }
    frames.append(Frame.trees.rawValue)
    frames.append(UInt32(clamping: SavedRequest.size + trees.count))
    frames.append(SavedRequest(0))
    let isReplaced = log.replace(with: [frames.bytes, trees])
    frames.removeAll()
    guard isReplaced else {
      nextTry = .now.advanced(milliseconds: Self.patience)
      return
    }
    if isIncomplete { self[.format] = Self.format }
    isIncomplete = false
    replacedCount = log.count
  }

  /// Adds everything but the trees.
  private func addAll() {
    let done = self[.announced]
    for (number, announcement) in announcements where number > done {
      add(.announcement, number, announcement)
    }
    if !registered.isEmpty { add(.registered) { $0.append(raw: registered) } }
  }

  /// Takes over what a predecessor has saved, so that the next whole state has it too.
  func adopt(_ estate: Estate) {
    earlier = estate.requests.values.sorted { $0.number < $1.number }.suffix(Self.keptRequests)
    announcements = estate.announcements
    lastAnnouncement = max(estate.announcements.last?.number ?? 0, self[.announced])
    registered = estate.registered
  }
}

extension Announcement.Kind {
  fileprivate var word: String {
    switch self {
    case .created: "created"
    case .changed: "changed"
    case .removed: "removed"
    }
  }
}

extension ByteWriter {
  mutating func append(_ announcement: Announcement) {
    append(announcement.directory)
    append(announcement.name)
    append(announcement.isDomain ? 1 : 0 as UInt8)
    append(announcement.parent?.rawValue ?? 0)
    switch announcement.kind {
    case .created: append(0 as UInt8)
    case .removed: append(1 as UInt8)
    case .changed(let time):
      append(2 as UInt8)
      append(time.nanoseconds)
    }
  }
}
