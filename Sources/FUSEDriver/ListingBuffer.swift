import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

/// A part of a directory's listing, as one READDIRPLUS asks for it.
struct ListingPart {
  let directory: NodeID
  /// The cookie after which the part begins; 0: the beginning of the listing.
  let cookie: UInt64
  /// Bytes that the kernel has room for.
  let room: Int
}

/// The reply to one READDIRPLUS: as many entries as the kernel has room for.
struct ListingBuffer {
  private let part: ListingPart
  private var bytes: [UInt8]
  private var count = 0
  private let now = Moment.now
  /// Domains whose lists are at hand: those that the look-up of the last name needed.
  private var atHand: [DomainName] = []

  init(_ part: ListingPart) {
    self.part = part
    bytes = Array(repeating: 0, count: part.room)
  }

  /// The entries, as the kernel reads them.
  var contents: ArraySlice<UInt8> { bytes[..<count] }

  /// Adds `.` and `..`, as far as the part has them, and the items, until there is no more room.
  /// - Parameter add: adds an item; returns false if there is no room for it.
  mutating func fill(
    _ items: Listing.SubSequence, _ add: (inout ListingBuffer, ListingItem) -> Bool
  ) {
    for (name, cookie) in [(".", 1 as UInt64), ("..", 2)] where part.cookie < cookie {
      let dots = ListingItem(
        name: name, inode: part.directory.rawValue, type: .directory, cookie: cookie)
      guard add(&self, dots) else { return }
    }
    // One after the other: an array of both would be a copy of the whole listing for each request.
    for item in items where !add(&self, item) { return }
  }

  private func status(_ item: ListingItem) -> stat {
    var status = stat()
    status.st_ino = UInt(item.inode)
    status.st_mode = FileOwnership.type(item.type)
    return status
  }

  /// Adds a name without attributes.
  /// - Returns: false if there is no room for it.
  mutating func addWithoutAttributes(_ item: ListingItem) -> Bool {
    var parameters = fuse_entry_param()
    parameters.attr = status(item)
    return append(item, &parameters)
  }

  /// Adds a name with its attributes; the kernel counts that as a look-up. A name that is gone, or
  /// whose value cannot be read or is not in memory, is added without them.
  /// - Returns: false if there is no room for it.
  mutating func addWithAttributes(_ item: ListingItem, _ driver: Driver) -> Bool {
    let size = fuse_add_direntry_plus(nil, nil, 0, item.name, nil, 0)
    guard count + size <= bytes.count else { return false }
    let (parent, name) = (part.directory, Array(item.name.utf8))
    guard driver.gate.isAtHand(parent, name, driver.forest, &atHand),
      case .found(let entry)? = try? driver.forest[parent].lookup(parent, name, now: now)
    else { return addWithoutAttributes(item) }
    var parameters = driver.ownership.parameters(entry)
    return append(item, &parameters)
  }

  private mutating func append(_ item: ListingItem, _ parameters: inout fuse_entry_param) -> Bool {
    append { place, room in
      fuse_add_direntry_plus(nil, place, room, item.name, &parameters, off_t(item.cookie))
    }
  }

  /// Adds what the body writes to the place.
  /// - Parameter add: writes an entry where the room suffices, and returns its size. libfuse's
  ///   function for this takes a request and does not use it, so it gets none.
  /// - Returns: false if there is no room for it.
  private mutating func append(_ add: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> Bool {
    let room = bytes.count - count
    let size = bytes.withUnsafeMutableBytes { [count] buffer in
      let place = buffer.baseAddress.map { ($0 + count).assumingMemoryBound(to: CChar.self) }
      return add(place, room)
    }
    guard size <= room else { return false }
    count += size
    return true
  }
}
