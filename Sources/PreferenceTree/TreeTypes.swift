import PropertyList
import SystemCalls

/// The number of a node: C: fuse_ino_t. Never used twice in a mount.
public struct NodeID: RawRepresentable, Hashable, Sendable {
  /// The number.
  public let rawValue: UInt64

  /// A node by its number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The root of the mount (FUSE_ROOT_ID).
  public static let root = NodeID(rawValue: 1)
}

/// The number of a handle of a file that its creator has open: C: fuse_file_info.fh. Other opens
/// have none (0).
public struct HandleID: RawRepresentable, Hashable, Sendable {
  /// The number.
  public let rawValue: UInt64

  /// A handle by its number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// No handle.
  public static let none = HandleID(rawValue: 0)
}

/// What a node is (C: st_mode & S_IFMT).
public enum FileType: Sendable {
  /// A preference, or a scratch file.
  case file
  /// A domain, the root, or a scratch directory.
  case directory
  /// A scratch link.
  case link
}

/// What stat(2) shows of a node.
public struct Attributes: Equatable, Sendable {
  /// `st_ino`.
  public var inode: UInt64
  /// What it is.
  public var type: FileType
  /// Permission bits.
  public var mode: UInt32
  /// Bytes; 0 for directories.
  public var size: Int
  /// When the value, or the directory's entries, last changed.
  public var modified: Timestamp
  /// When anything that stat(2) shows, or the contents, last changed: `st_ctim`. It never goes back with
  /// utimensat(2).
  public var changed: Timestamp
  /// Whether a write would be refused.
  public var isReadOnly = false
  /// `st_nlink`: 0 for a file whose name is gone.
  public var links: UInt32 = 1
  /// Whether the attributes stay until the tree says otherwise.
  public var isCacheable = true

  /// Attributes of a node with a name, which changed last when its contents did.
  public init(inode: UInt64, type: FileType, mode: UInt32, size: Int, modified: Timestamp) {
    (self.inode, self.type, self.mode, self.size) = (inode, type, mode, size)
    (self.modified, changed) = (modified, modified)
  }
}

/// A node as a look-up gives it; the look-up counts until `forget`.
public struct Entry: Equatable, Sendable {
  /// The node.
  public var node: NodeID
  /// Its attributes.
  public var attributes: Attributes
  /// Whether the name stays until the tree says otherwise.
  public var isCacheable = true
}

/// The answer to a look-up.
public enum LookupResult: Equatable, Sendable {
  /// There is one.
  case found(Entry)
  /// There is none; `isCacheable`: until the tree says otherwise.
  case missing(isCacheable: Bool)
}

/// One name of a listing.
public struct ListingItem: Equatable, Sendable {
  /// The name.
  public var name: String
  /// `st_ino`.
  public var inode: UInt64
  /// What it is.
  public var type: FileType
  /// Where a listing goes on after this item (C: d_off).
  public var cookie: UInt64

  /// An entry of a directory. Its cookie follows from the name alone, so that a listing goes on at
  /// the right place although entries come and go meanwhile: nothing that stays is shown twice or
  /// left out. 1 and 2 are the cookies of "." and ".."; the kernel's offsets are signed.
  init(_ name: String, inode: UInt64, _ type: FileType) {
    self.init(
      name: name, inode: inode, type: type, cookie: max(3, StableHash.of(name.utf8) >> 1))
  }

  /// A name and where it stands.
  public init(name: String, inode: UInt64, type: FileType, cookie: UInt64) {
    self.name = name
    self.inode = inode
    self.type = type
    self.cookie = cookie
  }
}

/// What the kernel must be told. The driver performs effects in their order: those on attributes
/// before the reply to the request that caused them, the others after it.
public enum Effect: Hashable, Sendable {
  /// The kernel must drop the cached attributes of the node.
  case invalidateAttributes(NodeID)
  /// The kernel must drop the cached pages of the node.
  case invalidateContents(NodeID)
  /// The kernel must look the name up again.
  case invalidateEntry(parent: NodeID, name: String)
  /// The reply must wait until the other mounts of the store have settled the change of this
  /// version, so that everyone reads the new value once the request has returned.
  case awaitSettlement(version: UInt64)
  /// Watchers must get an event for a change that did not come through the mount.
  case announce(Announcement)
}

/// What watchers are told, by names: `domain` is the directory's, `key` the file's in it; without
/// a key the domain itself came or went.
public struct Announcement: Hashable, Sendable {
  /// What happened.
  public enum Kind: Hashable, Sendable {
    /// IN_CREATE.
    case created
    /// IN_MODIFY and IN_CLOSE_WRITE; with the new modification time.
    case changed(Timestamp)
    /// IN_DELETE.
    case removed
  }

  /// The file name of the domain.
  public let domain: String
  /// The file name of the key.
  public let key: String?
  /// What happened.
  public let kind: Kind

  /// An announcement.
  public init(domain: String, key: String?, _ kind: Kind) {
    (self.domain, self.key, self.kind) = (domain, key, kind)
  }
}

/// What chmod, chown, truncate and utimensat ask for.
public struct AttributeChange: Sendable {
  /// truncate(2).
  public var size: Int?
  /// Whether owner or group would become another than they are.
  public var changesOwner = false
  /// chmod(2): permission bits.
  public var mode: UInt32?
  /// utimensat(2): the modification time; that of access is shown as the same.
  public var modified: Timestamp?

  /// Nothing.
  public init() {}
}

/// How a file is made: what open(2) was asked for.
public struct CreationFlags: Sendable {
  /// O_EXCL.
  public var exclusively = false
  /// O_TRUNC.
  public var truncating = false
  /// O_RDWR: with O_EXCL the file is a scratch file, whatever its name.
  public var readsToo = false
  /// The permission bits that were asked for. They are kept where they forbid the owner to write (tar makes
  /// files so); the usual ones are those of every key.
  public var mode: UInt32 = 0o600

  /// O_CREAT alone.
  public init() {}
}

/// What renameat2(2) adds to a rename.
public enum RenameMode: Sendable {
  /// A target is replaced.
  case replace
  /// RENAME_NOREPLACE: a target is EEXIST.
  case keep
  /// RENAME_EXCHANGE: both change places.
  case exchange
}

/// How a mount shows and takes preferences.
public struct TreeOptions: Sendable {
  /// `-o format=`: how arrays and dictionaries are shown.
  public var style = ValueText.Style.automatic
  /// `-o new=string`: every new key is a string.
  public var createsStrings = false
  /// `-o list=all`: listings show inherited keys too.
  public var listsInherited = false

  /// The defaults.
  public init() {}
}
