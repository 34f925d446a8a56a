import PreferenceModel
import PropertyList
import SystemCalls

/// The number by which the kernel knows a node (C: fuse_ino_t). A mount never uses a number twice.
public struct NodeID: RawRepresentable, Hashable, Sendable {
  /// The number.
  public let rawValue: UInt64

  /// Creates the identifier with this number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The root of the mount (FUSE_ROOT_ID).
  public static let root = NodeID(rawValue: 1)

  /// The lowest of the bits that say which tree of the mount the node belongs to.
  static let treeShift: UInt64 = 48

  /// The number of the node's tree.
  var tree: UInt64 { rawValue >> Self.treeShift }
}

/// The number of a file handle (C: fuse_file_info.fh). Only the creator of a new key has a handle;
/// all other opens have `none`.
public struct HandleID: RawRepresentable, Hashable, Sendable {
  /// The number.
  public let rawValue: UInt64

  /// Creates the identifier with this number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// No handle.
  public static let none = HandleID(rawValue: 0)
}

/// The file type of a node (C: st_mode & S_IFMT).
public enum FileType: Sendable {
  /// A preference, or a scratch file.
  case file
  /// The root, a domain, or a scratch directory.
  case directory
  /// A scratch file that is a symbolic link.
  case link
}

/// What stat(2) shows of a node.
public struct Attributes: Equatable, Sendable {
  /// `st_ino`.
  public var inode: UInt64
  /// The file type.
  public var type: FileType
  /// Permission bits.
  public var mode: UInt32
  /// Bytes of the text; 0 for directories.
  public var size: Int
  /// When the value or its text, or the directory's entries, last changed (`st_mtim`).
  public var modified: Timestamp
  /// When the contents, or anything that stat(2) shows, last changed (`st_ctim`). utimensat(2) does
  /// not set it back.
  public var changed: Timestamp
  /// Whether a write would be refused.
  public var isReadOnly = false
  /// Whether only the mount's own user may look at it, whatever the options of the mount say.
  public var isPrivate = false
  /// `st_nlink`: 0 for a file whose name is gone.
  public var links: UInt32 = 1
  /// Whether the kernel may cache the attributes until the tree invalidates them.
  public var isCacheable = true
  /// Whether they answer a truncation to nothing, which a write(2) mostly follows.
  public var isAboutToChange = false

  /// Creates the attributes of a node that has a name and that last changed when its contents did.
  public init(inode: UInt64, type: FileType, mode: UInt32, size: Int, modified: Timestamp) {
    (self.inode, self.type, self.mode, self.size) = (inode, type, mode, size)
    (self.modified, changed) = (modified, modified)
  }
}

/// The node that a look-up found. The look-up counts until `Tree.forget`.
public struct Entry: Equatable, Sendable {
  /// The node.
  public var node: NodeID
  /// Its attributes.
  public var attributes: Attributes
  /// Whether the kernel may cache the name until the tree invalidates the entry.
  public var isCacheable = true
  /// Whether the node is a scratch file that this request has made. Nobody knows it before the
  /// kernel has this answer, so the attributes cannot be out of date by then.
  public var isNewScratch = false

  /// Creates an entry.
  public init(node: NodeID, attributes: Attributes, isCacheable: Bool = true) {
    (self.node, self.attributes, self.isCacheable) = (node, attributes, isCacheable)
  }
}

/// The answer to a look-up.
public enum LookupResult: Equatable, Sendable {
  /// The name exists.
  case found(Entry)
  /// The name does not exist. `isCacheable`: whether the kernel may cache that until the tree
  /// invalidates the entry.
  case missing(isCacheable: Bool)
}

/// One name of a listing.
public struct ListingItem: Equatable, Sendable {
  /// The name.
  public var name: String
  /// `st_ino`.
  public var inode: UInt64
  /// The file type.
  public var type: FileType
  /// The offset from which a listing continues after this item (C: d_off).
  public var cookie: UInt64

  /// Creates an entry of a directory. Its cookie follows from the name alone, so that a listing
  /// continues at the right entry although entries come and go meanwhile: no entry that stays is
  /// listed twice or left out. 1 and 2 are the cookies of "." and ".."; the kernel's offsets are
  /// signed.
  init(_ name: String, inode: UInt64, _ type: FileType) {
    self.init(
      name: name, inode: inode, type: type, cookie: max(3, StableHash.of(name.utf8) >> 1))
  }

  /// Creates an item with the given cookie.
  public init(name: String, inode: UInt64, type: FileType, cookie: UInt64) {
    self.name = name
    self.inode = inode
    self.type = type
    self.cookie = cookie
  }
}

/// What the driver must do outside the tree because of a call: first `invalidateAttributes`, before
/// the reply to the request that caused them, then the others, in their order.
public enum Effect: Hashable, Sendable {
  /// Invalidates the kernel's cached attributes of the node.
  case invalidateAttributes(NodeID)
  /// Invalidates the kernel's cached pages of the node.
  case invalidateContents(NodeID)
  /// Invalidates the kernel's cached look-up of the name.
  case invalidateEntry(parent: NodeID, name: String)
  /// Delays the reply until the other mounts of the store have settled for this version, so that
  /// every process reads the new value once the request has returned.
  case awaitSettlement(version: UInt64)
  /// Makes an inotify event for a change that did not come through the mount.
  case announce(Announcement)
}

/// An inotify event that the driver makes on the mount. It names the file of a key that came,
/// changed or went, or the directory of a domain that came or went.
public struct Announcement: Hashable, Sendable {
  /// What happened.
  public enum Kind: Hashable, Sendable {
    /// IN_CREATE.
    case created
    /// IN_MODIFY and IN_CLOSE_WRITE. The value is the new modification time.
    case changed(Timestamp)
    /// IN_DELETE.
    case removed
  }

  /// The path of the directory that has the name, from the mount point; "" is the mount point.
  public let directory: String
  /// The node of that directory; nil if the kernel has forgotten it.
  public let parent: NodeID?
  /// The name of the key's file, or of the domain's directory.
  public let name: String
  /// Whether the name is a domain's.
  public let isDomain: Bool
  /// What happened.
  public let kind: Kind
  /// The file that had the removed name, for those who watch it (IN_DELETE_SELF); nil if the kernel
  /// does not know it.
  public let removed: NodeID?

  /// Creates an announcement.
  public init(
    _ directory: String, _ parent: NodeID?, name: String, isDomain: Bool = false, _ kind: Kind,
    removed: NodeID? = nil
  ) {
    (self.directory, self.parent, self.name) = (directory, parent, name)
    (self.isDomain, self.kind, self.removed) = (isDomain, kind, removed)
  }
}

/// A change of attributes: what chmod(2), chown(2), truncate(2) and utimensat(2) ask for. nil
/// leaves an attribute as it is.
public struct AttributeChange: Sendable {
  /// truncate(2): the new size in bytes.
  public var size: Int?
  /// chown(2): whether the user or group of the file would change.
  public var changesOwner = false
  /// chmod(2): the new permission bits.
  public var mode: UInt32?
  /// utimensat(2): the new modification time. stat(2) shows it as the access time too.
  public var modified: Timestamp?

  /// Creates a change that changes nothing.
  public init() {}
}

/// The flags of an open(2) that makes a file.
public struct CreationFlags: Sendable {
  /// O_EXCL.
  public var exclusively = false
  /// O_TRUNC.
  public var truncating = false
  /// O_RDWR. Together with O_EXCL it makes a scratch file, whatever the name is.
  public var readsToo = false
  /// The permission bits that open(2) asks for. A key gets them only if they forbid its user to
  /// write (tar makes files so); otherwise it gets the usual ones, 0600.
  public var mode: UInt32 = 0o600

  /// Creates the flags of O_CREAT alone.
  public init() {}
}

/// What a rename does if the new name exists.
public enum RenameMode: Sendable {
  /// rename(2): it replaces the file of the new name.
  case replace
  /// RENAME_NOREPLACE: it is refused with EEXIST.
  case keep
  /// RENAME_EXCHANGE: the two files exchange their names.
  case exchange
}

/// What decides how a tree shows and makes preferences: mostly options of the mount.
public struct TreeOptions: Sendable {
  /// `-o format=`: how arrays and dictionaries are shown.
  public var style = ValueText.Style.automatic
  /// `-o new=string`: every new key is a string.
  public var createsStrings = false
  /// `-o list=all`: listings show inherited keys too.
  public var listsInherited = false
  /// `-o schemas=off`: schemas do not refuse what is written.
  public var judges = true
  /// Whether the text of a file is made anew after each change of many keys. Its events are then
  /// announced later, once for all changes, and only if the kernel knows the file. The control
  /// directory sets it, for documents, kept suites and declarations.
  public var isGenerated = false
  /// Whether programs watch the generated texts, which nobody can change. Their events then come
  /// after 10 ms, and not after a second. Their user may open them for writing, though each write is
  /// refused: a file that cannot be opened so has no IN_CLOSE_WRITE (`Announcer`).
  public var isWatched = false
  /// The type that text is read as, for every key of the tree, new ones too; nil if each key has
  /// its own. No mount option sets it: the control directory does, for documents, kept suites and
  /// declarations.
  public var kind: Kind?
  /// What `null` of JSON stands for in such a text; nil if it is refused. The control directory
  /// sets it, for declarations.
  public var null: Value?

  /// Creates the default options.
  public init() {}
}

/// Where a tree stands in a mount, and what its root shows.
public struct TreePosition: Sendable {
  /// What the names in the root mean.
  public enum Root: Sendable {
    /// Domains: a directory for each.
    case domains
    /// The keys of this domain: a file for each.
    case keys(of: DomainName)
  }

  /// The number of the tree in its mount. It is a part of the numbers of all of the tree's nodes.
  public let number: UInt64
  /// The path of the root from the mount point; "" for the tree at the mount point.
  public let path: String
  /// What the root shows.
  public let root: Root

  /// Creates the position of the tree at the mount point.
  public init() { self.init(number: 0, path: "", .domains) }

  /// Creates a position.
  public init(number: UInt64, path: String, _ root: Root) {
    (self.number, self.path, self.root) = (number, path, root)
  }

  var rootNode: NodeID { NodeID(rawValue: number << NodeID.treeShift | NodeID.root.rawValue) }

  /// `st_ino` of the root.
  var rootInode: UInt64 {
    number == 0 ? NodeID.root.rawValue : StableHash.of("\(path)\0".utf8) | 1 << 62
  }

  /// The path of a domain's directory from the mount point.
  func directory(of domain: DomainName) -> String {
    switch root {
    case .domains:
      path.isEmpty ? NameCodec.encode(domain.key) : "\(path)/\(NameCodec.encode(domain.key))"
    case .keys: path
    }
  }

  /// The path of a scratch file from the mount point; nil for one in a scratch directory.
  func path(of scratch: ScratchPath) -> String? {
    let directory: String
    switch scratch.parent {
    case .root: directory = path
    case .domain(let domain): directory = self.directory(of: domain)
    case .directory: return nil
    }
    return directory.isEmpty ? scratch.name : "\(directory)/\(scratch.name)"
  }
}
