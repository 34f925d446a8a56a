/// The entries of a directory at one moment, in the order of their cookies, without `.` and `..`.
public struct Listing: RandomAccessCollection, Sendable {
  private let items: [ListingItem]

  /// Creates a listing of the items, which may be in any order.
  init(_ items: [ListingItem] = []) { self.items = items.sorted { $0.cookie < $1.cookie } }

  public var startIndex: Int { 0 }
  public var endIndex: Int { items.count }
  public subscript(position: Int) -> ListingItem { items[position] }

  /// Returns the items after the cookie (0: all). Cost: O(log items).
  func after(_ cookie: UInt64) -> SubSequence {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].cookie <= cookie { low = middle + 1 } else { high = middle }
    }
    return self[low...]
  }
}

/// Says which names of a part of a listing come with attributes.
public enum AttributesGiven: Sendable {
  case none
  case all
  /// The first name of the part comes without attributes.
  case allButFirst

  /// Whether the attributes of a name are given.
  public func includes(isFirst: Bool) -> Bool {
    switch self {
    case .none: false
    case .all: true
    case .allButFirst: !isFirst
    }
  }
}

/// What is known of a directory's entries as a whole: how often they have changed, and the last
/// listing of them.
struct ListingState {
  /// Raised by each change of the entries.
  private(set) var version: UInt64 = 1
  /// The last listing, and the version that it shows.
  private var last: (listing: Listing, version: UInt64)?
  /// How many entries the last listing had; nil if there was none yet.
  private(set) var lastCount: Int?

  /// The most entries of a listing that is kept after it was read to its end. The kernel keeps what
  /// it has read.
  static let mostKept = 1000

  /// Whether a name was looked up since a process began to read the directory.
  private var isLookedInto = false

  /// The most entries of a directory of which a listing always gives the attributes.
  static let mostWithAttributes = 5000

  mutating func entriesChanged() { version += 1 }

  /// Notes that a process looks up a name.
  mutating func noteLookup() { isLookedInto = true }

  /// Of which names a listing after the cookie gives the attributes. That takes time for each name,
  /// and saves a process that looks at the files a request for each. Of a large directory it gives
  /// them at the beginning, without the first name, and after that if a process looks a name up: a
  /// process that looks at each file asks for the first one, whose attributes it was not given,
  /// unless the kernel knows them. With cookie 0, look-ups from before are forgotten.
  mutating func attributesGiven(after cookie: UInt64) -> AttributesGiven {
    let isSmall = (lastCount ?? 0) <= Self.mostWithAttributes
    if cookie == 0 {
      isLookedInto = false
      return isSmall ? .all : .allButFirst
    }
    return isLookedInto || isSmall ? .all : .none
  }

  /// Keeps a listing, unless there is a newer one.
  mutating func put(_ listing: Listing, version: UInt64) {
    guard ((last?.version ?? 0)...self.version).contains(version) else { return }
    lastCount = listing.count
    last = (listing, version)
  }

  /// The oldest version that a process may see. One that begins to read (cookie 0) sees the entries
  /// as they are. One that goes on sees the last listing, which is no older than the one that it
  /// began with.
  func least(after cookie: UInt64) -> UInt64 { cookie == 0 ? version : 0 }

  /// The last listing, if it shows that version or a later one.
  func listing(since version: UInt64) -> Listing? {
    last.flatMap { $0.version >= version ? $0.listing : nil }
  }

  /// Drops a large listing, because a process has read it to its end.
  mutating func dropIfLarge() {
    if let last, last.listing.count > Self.mostKept { self.last = nil }
  }
}
