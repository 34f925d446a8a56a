import PreferenceModel
import PropertyList
import SystemCalls

/// One of the trees of a mount, as the driver sees it: it carries out the requests about its nodes,
/// but for those that make, remove and rename names (`Forest.changing`).
///
/// `Tree` shows preferences; the comments of its methods say what each request does in detail.
/// `ControlTree` shows directories and reports, and refuses changes with EACCES, those of the past
/// with EROFS; modes and times it takes and forgets.
///
/// Errors: a call about a node that the tree does not know throws ENOENT. A call that changes
/// something throws EACCES, EPERM or the errno that users of such a file expect.
///
/// Threads: all calls must be made by one thread at a time.
public protocol MountedTree: AnyObject {
  /// When `tick` must be called next; nil if not before another call sets it.
  var nextDeadline: Instant? { get }

  /// Returns the root as an entry, and counts the look-up.
  func rootEntry() throws(TreeError) -> Entry
  /// Returns the domains whose lists a request about the node, or about the name in it, needs. The
  /// driver has them read before it makes the request.
  func domainsNeeded(at id: NodeID, _ name: [UInt8]?) -> [DomainName]
  /// Returns what a thread that may wait must prepare before a request about the node, or about the
  /// name in it; nil means nothing.
  func preparationNeeded(at id: NodeID, _ name: [UInt8]?) -> Preparation?
  /// Carries out FUSE_LOOKUP: finds a name. The look-up counts until `forget`.
  func lookup(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) -> LookupResult
  /// Carries out FUSE_FORGET: subtracts look-ups of a node.
  func forget(_ id: NodeID, _ count: UInt64)
  /// Returns what stat(2) shows of the node.
  func attributes(_ id: NodeID) throws(TreeError) -> Attributes
  /// Carries out chmod(2), chown(2), truncate(2) and utimensat(2), and returns the new attributes.
  func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID, now: Moment
  ) throws(TreeError) -> Attributes
  /// Carries out read(2). Returns at most `count` bytes from the offset; none past the end.
  func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8>
  /// Carries out write(2): judges the text at once. Throws EINVAL for text that can never become a
  /// value of the key's type.
  func write(_ id: NodeID, _ write: WriteRequest, now: Moment) throws(TreeError)
  /// Carries out the tree's part of fsync(2), before the journal is made durable. Throws EINVAL for
  /// incomplete text.
  func prepareSynchronize(_ id: NodeID, now: Moment) throws(TreeError)
  /// Returns whether the kernel may cache the directory's listing and give it to other processes.
  func mayKeepListing(_ id: NodeID, now: Moment) throws(TreeError) -> Bool
  /// Carries out readdir(3). Returns the entries after the cookie (0: all), without `.` and `..`.
  /// - Parameter version: the version of the entries that is new enough; nil means the present one
  ///   where the cookie is 0, else that of the last listing.
  func list(
    _ id: NodeID, after cookie: UInt64, since version: UInt64?
  ) throws(TreeError) -> Listing.SubSequence
  /// Returns of which names a listing (FUSE_READDIRPLUS) that goes on after the cookie should give
  /// the attributes. Cost: O(1).
  func attributesGiven(_ id: NodeID, after cookie: UInt64) -> AttributesGiven
  /// Notes that a process looks up a name in the directory, for `attributesGiven`.
  func noteLookup(in parent: NodeID)
  /// Carries out readlink(2).
  func readLink(_ id: NodeID) throws(TreeError) -> [UInt8]

  /// Carries out the close(2) of a file that `Tree.create` made.
  func release(_ id: NodeID, _ handle: HandleID, now: Moment)

  /// Carries out listxattr(2). Returns the names, each with a NUL behind it.
  func extendedAttributeNames(_ id: NodeID) throws(TreeError) -> [UInt8]
  /// Carries out getxattr(2). Throws ENODATA for an unknown name in `user.`, EOPNOTSUPP for others.
  func extendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) -> [UInt8]
  /// Carries out setxattr(2). For the names of `user.prefs.` it succeeds, even where nothing is
  /// changed, but a type that the value cannot have is EINVAL; other names are EOPNOTSUPP.
  func setExtendedAttribute(
    _ id: NodeID, _ name: String, _ value: [UInt8], now: Moment
  ) throws(TreeError)
  /// Carries out removexattr(2). It changes nothing.
  func removeExtendedAttribute(_ id: NodeID, _ name: String) throws(TreeError)

  /// Whether the node is a file whose name is gone, or is another file's now.
  func hasLostName(_ id: NodeID) -> Bool
  /// Makes an entry for a name that is gone, so that the driver's announcer can remove it, and
  /// watchers get an event.
  func ghost(isDirectory: Bool, of file: NodeID?, now: Moment) throws(TreeError) -> Entry
  /// Shows a change of the store that was not made through this tree: invalidates and announces it.
  func changed(_ changeset: Changeset, now: Moment)
  /// Does everything that has become due.
  func tick(now: Moment)
  /// Ends the tree with the mount.
  func finish(now: Moment)
  /// Removes and returns the changes that were made through the tree since the last call, in the
  /// terms of the store.
  func removeChanges() -> [Changeset]
  /// Removes and returns the effects of the calls since the last call.
  func removeEffects() -> [Effect]
}

/// What a write(2) writes, where, and who writes it.
public struct WriteRequest: Sendable {
  /// The bytes.
  public var bytes: [UInt8]
  /// The offset that the kernel gives. With O_APPEND it may not be the end of the text.
  public var offset: Int
  /// Whether the file was opened with O_APPEND.
  public var appending = false
  /// The handle of the creator, for a key that it has not closed yet.
  public var handle = HandleID.none
  /// The id of the thread that writes; 0 if it is not known.
  public var writer: Int32 = 0
  /// Whether the kernel writes pages that a program has mapped (mmap(2)).
  public var isMapped = false

  /// Creates a write of bytes at an offset.
  public init(_ bytes: [UInt8], at offset: Int) { (self.bytes, self.offset) = (bytes, offset) }
}

extension MountedTree {
  public func hasLostName(_ id: NodeID) -> Bool { false }
  public func preparationNeeded(at id: NodeID, _ name: [UInt8]?) -> Preparation? { nil }
}
