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
  case missing(isRemembered: Bool)
  case attributes(Attributes)
  /// Of something that the request made or changed. The kernel takes these attributes even where it was told
  /// meanwhile to drop them: where others use the store they are good for this answer alone.
  case changed(Attributes)
  case made(Entry)
  case created(Entry, HandleID)
  case bytes(ArraySlice<UInt8>)
  case written(Int)
  /// opendir(3).
  case directory(keepsListing: Bool)
  /// readlink(2).
  case link([UInt8])
  case space(StoreSpace)
  /// getxattr(2), listxattr(2): the bytes, or their number when `room` is 0.
  case attribute([UInt8], room: Int)
  /// FUSE_FORGET has no answer.
  case none
}

/// The one reply to a request. `send` consumes it, so that a second one does not compile; one that
/// is dropped unsent is EIO.
///
/// Any thread may send it: libfuse writes a reply with one system call and locks what it shares.
struct Reply: ~Copyable, @unchecked Sendable {
  private let request: fuse_req_t

  init(_ request: fuse_req_t) { self.request = request }

  deinit { fuse_reply_err(request, EIO) }

  /// Sends the answer. What the kernel no longer waits for (an interrupted request) is dropped.
  /// - Parameter isShared: whether others use the store; asked for what the request made or changed alone.
  consuming func send(
    _ answer: Answer, owner: Owner, isShared: @autoclosure () -> Bool = true
  ) {
    let request = self.request
    discard self
    switch answer {
    case .error(let errno): fuse_reply_err(request, errno.rawValue)
    case .done: fuse_reply_err(request, 0)
    case .none: fuse_reply_none(request)
    case .entry(let entry):
      var parameters = owner.parameters(entry)
      fuse_reply_entry(request, &parameters)
    case .missing(let isRemembered):
      var parameters = fuse_entry_param()
      parameters.entry_timeout = isRemembered ? Owner.forever : 0
      fuse_reply_entry(request, &parameters)
    case .attributes(let attributes):
      var status = owner.status(attributes)
      fuse_reply_attr(request, &status, attributes.isSettled ? Owner.forever : 0)
    case .changed(let attributes):
      var status = owner.status(attributes)
      fuse_reply_attr(request, &status, !attributes.isSettled || isShared() ? 0 : Owner.forever)
    case .made(let entry):
      var parameters = owner.parameters(entry)
      if isShared() { parameters.attr_timeout = 0 }
      fuse_reply_entry(request, &parameters)
    case .created(let entry, let handle):
      var parameters = owner.parameters(entry)
      if isShared() { parameters.attr_timeout = 0 }
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
      var numbers = statvfs(space)
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

/// A reply that is sent later, by whichever thread; a class, because arrays and closures hold copyable
/// things only.
final class HeldReply: Sendable {
  private let reply: Mutex<Reply?>

  init(_ reply: consuming Reply) { self.reply = Mutex(consume reply) }

  /// Sends it; a second time does nothing.
  func send(_ answer: Answer, _ owner: Owner) {
    reply.withLock { $0.take() }?.send(answer, owner: owner)
  }
}

/// The replies that are held: the session must live until they are sent. None is for longer than two
/// seconds, whatever becomes of the owner of the store.
final class HeldReplies: Sendable {
  private struct Held {
    var reply: HeldReply
    var answer: Answer
    var deadline: Instant
  }

  private struct State {
    var held: [UInt64: Held] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Mutex(State())
  private let owner: Owner
  private let ended: Wakeup

  /// - Parameter ended: rung when there are none any more.
  init(_ owner: Owner, ended: Wakeup) { (self.owner, self.ended) = (owner, ended) }

  private static let longest: Int64 = 2000

  var areSent: Bool { state.withLock { $0.held.isEmpty } }

  /// When `sendLate` must be called.
  var deadline: Instant? { state.withLock { $0.held.values.map(\.deadline).min() } }

  /// Holds a reply; the number is for `send`.
  func hold(_ reply: consuming Reply, _ answer: Answer) -> UInt64 {
    let held = Held(
      reply: HeldReply(reply), answer: answer,
      deadline: Instant.now.advanced(milliseconds: Self.longest))
    return state.withLock { state in
      state.lastNumber += 1
      state.held[state.lastNumber] = held
      return state.lastNumber
    }
  }

  /// Sends a reply, if it is still held.
  func send(_ number: UInt64) {
    let (held, isLast) = state.withLock { state in
      (state.held.removeValue(forKey: number), state.held.isEmpty)
    }
    held?.reply.send(held?.answer ?? .error(.inputOutput), owner)
    if held != nil, isLast { ended.ring() }
  }

  /// Sends those that were held for long enough.
  func sendLate(_ now: Instant) {
    let late = state.withLock { $0.held.filter { $0.value.deadline <= now }.map(\.key) }
    for number in late { send(number) }
  }
}

/// Whose files they are, and how nodes become what the kernel takes.
public struct Owner: Sendable {
  /// `-o uid=`, or the user of the process.
  public var user = getuid()
  /// `-o gid=`, or the group of the process.
  public var group = getgid()
  /// `-o umask=`: the permission bits that no file and no directory has; all others have them all, whatever
  /// chmod(2) has set, as with other file systems. nil: each has its own mode.
  public var mask: mode_t?

  /// The user of the process.
  public init() {}

  /// Seconds that entries and attributes are good for: what changes is taken back explicitly.
  static let forever: Double = 86400 * 365

  /// C: S_IFREG and its kin.
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
    // 1 says of a directory that its links do not count subdirectories, as btrfs has it.
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
    guard let mask, attributes.type != .link else { return mode_t(attributes.mode) }
    let all: mode_t =
      attributes.type == .directory ? 0o777 : attributes.isReadOnly ? 0o444 : 0o666
    return all & ~mask
  }

  func parameters(_ entry: Entry) -> fuse_entry_param {
    var parameters = fuse_entry_param()
    parameters.ino = entry.node.rawValue
    parameters.attr = status(entry.attributes)
    parameters.attr_timeout = entry.attributes.isSettled ? Self.forever : 0
    parameters.entry_timeout = entry.isRemembered ? Self.forever : 0
    return parameters
  }
}

extension statvfs {
  fileprivate init(_ space: StoreSpace) {
    self.init()
    f_bsize = UInt(space.blockSize)
    f_frsize = UInt(space.blockSize)
    f_blocks = fsblkcnt_t(space.blocks)
    f_bfree = fsblkcnt_t(space.free)
    f_bavail = fsblkcnt_t(space.available)
    f_namemax = 255
  }
}
