import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// What a request is answered with.
enum Answer: Sendable {
  case error(Errno)
  case done
  case entry(Entry)
  /// There is no such name; the kernel may keep that answer if `isCacheable`.
  case missing(isCacheable: Bool)
  case attributes(Attributes)
  /// The answer to a SETATTR. The kernel stores its attributes even if it was told meanwhile to
  /// drop them, because somebody else has changed the file again. So they are valid for this answer
  /// alone, as are those of `made`, and of `created` unless that is a new scratch file. The kernel
  /// also takes over the modification time without dropping pages (fs/fuse/dir.c,
  /// fuse_do_setattr). With the time of the present text, the next GETATTR would bring nothing new,
  /// and an old page would stay. So `send` puts a time there that no GETATTR answers with.
  ///
  /// The attributes of a file that was just cut to nothing (`isAboutToChange`) are an exception:
  /// they are valid for 25 ms. No page stays of such a file, and the write(2) that mostly follows
  /// has the kernel drop size and times. So overwrites that follow each other take three requests;
  /// without the exception, five. If somebody else changes the file before the kernel has stored
  /// the answer, and no write(2) follows, the file is empty in this mount for those 25 ms, as right
  /// after a truncation that came later. They end before the tree gives the truncation up (50 ms).
  case changed(Attributes)
  case made(Entry)
  case created(Entry, HandleID)
  case bytes(ArraySlice<UInt8>)
  case written(Int)
  /// opendir(3), and whether the kernel may keep the listing.
  case directory(keepsListing: Bool)
  /// readlink(2).
  case link([UInt8])
  case space(statvfs)
  /// getxattr(2), listxattr(2): the bytes, or their number if `room` is 0; ERANGE if they do not
  /// fit.
  case attribute([UInt8], room: Int)
  /// FUSE_FORGET has no answer.
  case none
}

/// The one reply to a request. `send` consumes it, so that a second reply does not compile. A reply
/// that is dropped unsent becomes EIO.
///
/// Any thread may send it: libfuse writes a reply with one system call and locks what it shares.
struct Reply: ~Copyable, @unchecked Sendable {
  private let request: fuse_req_t

  init(_ request: fuse_req_t) { self.request = request }

  deinit { fuse_reply_err(request, EIO) }

  /// Sends the answer; the kernel drops it if it no longer waits for it (an interrupted request).
  consuming func send(_ answer: Answer, ownership: FileOwnership) {
    let request = self.request
    discard self
    switch answer {
    case .error(let errno): fuse_reply_err(request, errno.rawValue)
    case .done: fuse_reply_err(request, 0)
    case .none: fuse_reply_none(request)
    case .entry(let entry):
      var parameters = ownership.parameters(entry)
      fuse_reply_entry(request, &parameters)
    case .missing(let isCacheable):
      var parameters = fuse_entry_param()
      parameters.entry_timeout = isCacheable ? FileOwnership.forever : 0
      fuse_reply_entry(request, &parameters)
    case .attributes(let attributes):
      var status = ownership.status(attributes)
      fuse_reply_attr(request, &status, attributes.isCacheable ? FileOwnership.forever : 0)
    case .changed(let attributes) where attributes.isAboutToChange:
      var status = ownership.status(attributes)
      fuse_reply_attr(request, &status, FileOwnership.briefly)
    case .changed(let attributes):
      var status = ownership.status(attributes)
      status.st_mtim.tv_nsec += status.st_mtim.tv_nsec == 0 ? 1 : -1
      fuse_reply_attr(request, &status, 0)
    case .made(let entry):
      var parameters = ownership.parameters(entry)
      parameters.attr_timeout = 0
      fuse_reply_entry(request, &parameters)
    case .created(let entry, let handle):
      var parameters = ownership.parameters(entry)
      if !entry.isNewScratch { parameters.attr_timeout = 0 }
      var info = fuse_file_info()
      info.fh = handle.rawValue
      fuse_reply_create(request, &parameters, &info)
    case .written(let count): fuse_reply_write(request, count)
    case .directory(let keepsListing):
      var info = fuse_file_info()
      info.cache_readdir = keepsListing ? 1 : 0
      info.keep_cache = keepsListing ? 1 : 0
      fuse_reply_open(request, &info)
    case .bytes(let bytes): Self.send(bytes, request)
    case .link(let target): fuse_reply_readlink(request, String(decoding: target, as: UTF8.self))
    case .attribute(let bytes, let room): Self.send(bytes, room: room, request)
    case .space(let space):
      var numbers = space
      fuse_reply_statfs(request, &numbers)
    }
  }

  private static func send(_ bytes: ArraySlice<UInt8>, _ request: fuse_req_t) {
    bytes.withUnsafeBytes { buffer in
      _ = fuse_reply_buf(
        request, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
    }
  }

  private static func send(_ bytes: [UInt8], room: Int, _ request: fuse_req_t) {
    if room == 0 {
      fuse_reply_xattr(request, bytes.count)
    } else if room < bytes.count {
      fuse_reply_err(request, ERANGE)
    } else {
      send(bytes[...], request)
    }
  }
}

/// A reply that is sent later, by any thread. It is a class, because arrays and closures can hold
/// copyable values only.
final class HeldReply: Sendable {
  private let reply: Mutex<Reply?>

  init(_ reply: consuming Reply) { self.reply = Mutex(consume reply) }

  /// Sends the reply; does nothing if it was sent already.
  func send(_ answer: Answer, _ ownership: FileOwnership) {
    reply.withLock { $0.take() }?.send(answer, ownership: ownership)
  }
}

/// The replies that wait for other mounts to settle. libfuse's session must live until they are
/// sent. Each is held for 2 s at most, whatever becomes of the owner of the store.
///
/// Threads: any may send; the loop holds them, and calls `sendLate`. Locks: `state`, for one look.
final class HeldReplies: Sendable {
  private struct Held {
    var reply: HeldReply
    var answer: Answer
    var deadline: Instant
    /// The node of a request whose reply waits for other mounts; nil if it waits for something
    /// else.
    var changed: NodeID?
    /// The number of that request.
    var request: UInt64
  }

  private struct State {
    var held: [UInt64: Held] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Mutex(State())
  private let ownership: FileOwnership
  private let ended: Wakeup

  /// - Parameter ended: rung when the last held reply was sent.
  init(_ ownership: FileOwnership, ended: Wakeup) {
    (self.ownership, self.ended) = (ownership, ended)
  }

  /// Milliseconds that a reply is held.
  private static let longest: Int64 = 2000

  /// Whether no reply is held.
  var areSent: Bool { state.withLock { $0.held.isEmpty } }

  /// The nodes of the requests whose replies wait for other mounts. The kernel may keep pages of
  /// them locked until those are sent.
  var changed: Set<NodeID> { state.withLock { Set($0.held.values.compactMap(\.changed)) } }

  /// The numbers of the requests that wait for other mounts, and their answers.
  var requests: [(UInt64, Answer)] {
    state.withLock { $0.held.values.map { ($0.request, $0.answer) } }
  }

  /// Whether no reply is held that waits for other mounts.
  var areChangesSent: Bool { state.withLock { !$0.held.values.contains { $0.changed != nil } } }

  /// When `sendLate` must be called; nil if no reply is held.
  var deadline: Instant? { state.withLock { $0.held.values.map(\.deadline).min() } }

  /// Holds a reply.
  /// - Parameters:
  ///   - changed: the node of a request whose reply waits for other mounts.
  ///   - request: the number of that request.
  /// - Returns: its number, for `send`.
  func hold(
    _ reply: consuming Reply, _ answer: Answer, changed: NodeID? = nil, _ request: UInt64 = 0
  ) -> UInt64 {
    let held = Held(
      reply: HeldReply(reply), answer: answer,
      deadline: Instant.now.advanced(milliseconds: Self.longest), changed: changed,
      request: request)
    return state.withLock { state in
      state.lastNumber += 1
      state.held[state.lastNumber] = held
      return state.lastNumber
    }
  }

  /// Sends a reply, if it is still held.
  /// - Parameter answer: nil means the one that it is held with.
  func send(_ number: UInt64, _ answer: Answer? = nil) {
    let (held, isLast) = state.withLock { state in
      (state.held.removeValue(forKey: number), state.held.isEmpty)
    }
    held?.reply.send(answer ?? held?.answer ?? .error(.inputOutput), ownership)
    if held != nil, isLast { ended.signal() }
  }

  /// Sends all replies, without waiting any longer for other mounts.
  func sendAll() {
    for number in state.withLock({ Array($0.held.keys) }) { send(number) }
  }

  /// Sends the replies that were held for 2 s.
  func sendLate(_ now: Instant) {
    let late = state.withLock { $0.held.filter { $0.value.deadline <= now }.map(\.key) }
    for number in late { send(number) }
  }
}

/// The user, group and permission mask that files are shown with; turns the tree's attributes into
/// what libfuse takes.
public struct FileOwnership: Sendable {
  /// `-o uid=`, or the user of the process.
  public var user = getuid()
  /// `-o gid=`, or the group of the process.
  public var group = getgid()
  /// `-o umask=`: the permission bits that are taken from every file and directory. Each then shows
  /// all its other bits (a read-only file those for reading), whatever chmod(2) has set, as with
  /// other file systems. It is nil if each shows its own mode.
  public var mask: mode_t?

  /// The user and group of the process, without a mask.
  public init() {}

  /// Seconds for which the kernel may keep entries and attributes: a year, because the driver
  /// invalidates them when they change.
  static let forever: Double = 86400 * 365

  /// Seconds for which it may keep attributes that a write(2) mostly follows: less than the 50 ms
  /// after which the tree gives a truncation up (`TextEditor.patience`).
  static let briefly: Double = 0.025

  /// Returns the file type bits of `st_mode`: S_IFREG, S_IFDIR or S_IFLNK.
  static func type(_ type: FileType) -> mode_t {
    switch type {
    case .file: S_IFREG
    case .directory: S_IFDIR
    case .link: S_IFLNK
    }
  }

  func status(_ attributes: Attributes) -> stat {
    var status = stat()
    status.st_ino = UInt(attributes.inode)
    status.st_mode = Self.type(attributes.type) | mode(attributes)
    // A directory with 1 link tells programs not to count its subdirectories by its links, as on
    // btrfs.
    status.st_nlink = nlink_t(attributes.links)
    status.st_uid = user
    status.st_gid = group
    status.st_size = off_t(attributes.size)
    status.st_blksize = 4096
    status.st_blocks = blkcnt_t((attributes.size + 511) / 512)
    let time = attributes.modified.timespec
    (status.st_atim, status.st_mtim) = (time, time)
    status.st_ctim = attributes.changed.timespec
    return status
  }

  private func mode(_ attributes: Attributes) -> mode_t {
    guard let mask, attributes.type != .link, !attributes.isPrivate else {
      return mode_t(attributes.mode)
    }
    let all: mode_t =
      attributes.type == .directory ? 0o777 : attributes.isReadOnly ? 0o444 : 0o666
    return all & ~mask
  }

  func parameters(_ entry: Entry) -> fuse_entry_param {
    var parameters = fuse_entry_param()
    parameters.ino = entry.node.rawValue
    parameters.attr = status(entry.attributes)
    parameters.attr_timeout = entry.attributes.isCacheable ? Self.forever : 0
    parameters.entry_timeout = entry.isCacheable ? Self.forever : 0
    return parameters
  }
}
