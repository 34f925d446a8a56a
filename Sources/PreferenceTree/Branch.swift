import PreferenceModel
import PropertyList
import SystemCalls

/// One of the trees of a mount, as the driver sees it: it carries out the requests about its nodes.
///
/// `Tree` shows preferences, and its calls say what each request does. `ControlTree` shows
/// directories and reports that cannot be changed; it gets the refusals below.
///
/// Threads: all calls must be made by one thread at a time.
public protocol Branch: AnyObject {
  /// The node of the root.
  var rootNode: NodeID { get }
  /// Whether there are other trees in the mount, which must see the changes.
  var hasNeighbours: Bool { get set }
  /// When `tick` must be called next; nil: not before another call sets it.
  var nextDeadline: Instant? { get }

  /// Returns the root as an entry, and counts the look-up.
  func rootEntry() throws(TreeError) -> Entry
  func domainsNeeded(at id: NodeID, _ name: [UInt8]?) -> [DomainName]
  func lookup(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) -> LookupResult
  func forget(_ id: NodeID, _ count: UInt64)
  func attributes(_ id: NodeID) throws(TreeError) -> Attributes
  func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID, now: Moment
  ) throws(TreeError) -> Attributes
  func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8>
  func write(_ id: NodeID, _ write: WriteRequest, now: Moment) throws(TreeError)
  func prepareSynchronize(_ id: NodeID, now: Moment) throws(TreeError)
  func mayKeepListing(_ id: NodeID, now: Moment) throws(TreeError) -> Bool
  func list(_ id: NodeID, after cookie: UInt64) throws(TreeError) -> ArraySlice<ListingItem>
  func readLink(_ id: NodeID) throws(TreeError) -> [UInt8]

  func create(
    _ parent: NodeID, _ name: [UInt8], _ flags: CreationFlags, now: Moment
  ) throws(TreeError) -> (entry: Entry, handle: HandleID)
  func release(_ id: NodeID, _ handle: HandleID, now: Moment)
  func makeDirectory(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) -> Entry
  func makeLink(
    _ parent: NodeID, _ name: [UInt8], to target: [UInt8], now: Moment
  ) throws(TreeError) -> Entry
  func link(
    _ id: NodeID, _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry
  func unlink(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError)
  func removeDirectory(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError)
  func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Moment
  ) throws(TreeError)

  func extendedAttributeNames(_ id: NodeID) throws(TreeError) -> [UInt8]
  func extendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) -> [UInt8]
  func setExtendedAttribute(
    _ id: NodeID, _ name: String, _ value: [UInt8], now: Moment
  ) throws(TreeError)
  func removeExtendedAttribute(_ id: NodeID, _ name: String) throws(TreeError)

  func ghost(isDirectory: Bool, now: Moment) throws(TreeError) -> Entry
  func changed(_ changeset: Changeset, now: Moment)
  func tick(now: Moment)
  func finish(now: Moment)
  func removeChanges() -> [Changeset]
  func removeEffects() -> [Effect]
}

/// A write(2).
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

  /// Creates a write of bytes at an offset.
  public init(_ bytes: [UInt8], at offset: Int) { (self.bytes, self.offset) = (bytes, offset) }
}

extension Tree: Branch {
  public var rootNode: NodeID { table.root.id }

  public func rootEntry() throws(TreeError) -> Entry { try entry(table.root) }

  public func write(_ id: NodeID, _ write: WriteRequest, now: Moment) throws(TreeError) {
    try self.write(
      id, write.bytes, at: write.offset, appending: write.appending, handle: write.handle,
      writer: write.writer, now: now)
  }
}
