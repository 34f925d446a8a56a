import CFUSE
import Glibc
import PreferenceTree

/// A part of a directory's listing, as one READDIRPLUS asks for it.
struct ListingPart {
  let directory: NodeID
  /// The cookie after which the part begins; 0 means the beginning of the listing.
  let cookie: UInt64
  /// Bytes that the kernel has room for.
  let room: Int
}

/// The reply to one READDIRPLUS: as many entries as the kernel has room for.
struct ListingBuffer {
  private let part: ListingPart
  private var bytes: [UInt8]
  private var count = 0

  init(_ part: ListingPart) {
    self.part = part
    bytes = Array(repeating: 0, count: part.room)
  }

  /// The entries, as the kernel reads them.
  var contents: ArraySlice<UInt8> { bytes[..<count] }

  /// Adds `.` and `..`, as far as the part has them, and the items, until there is no more room.
  /// - Parameter find: returns an item with its attributes, which the kernel counts as a look-up;
  ///   nil if it is added without them. Called only for an item that there is room for.
  mutating func fill(
    _ items: Listing.SubSequence, _ find: (ListingItem) -> fuse_entry_param?
  ) {
    for (name, cookie) in [(".", 1 as UInt64), ("..", 2)] where part.cookie < cookie {
      let dots = ListingItem(
        name: name, inode: part.directory.rawValue, type: .directory, cookie: cookie)
      guard add(dots, { _ in nil }) else { return }
    }
    // One after the other: an array of both would be a copy of the whole listing for each request.
    for item in items where !add(item, find) { return }
  }

  /// Adds an item. libfuse's function for this takes a request and does not use it, so it gets
  /// none.
  /// - Returns: false if there is no room for it.
  private mutating func add(
    _ item: ListingItem, _ find: (ListingItem) -> fuse_entry_param?
  ) -> Bool {
    let room = bytes.count - count
    guard fuse_add_direntry_plus(nil, nil, 0, item.name, nil, 0) <= room else { return false }
    var parameters = find(item) ?? Self.withoutAttributes(item)
    count += bytes.withUnsafeMutableBytes { [count] buffer in
      let place = buffer.baseAddress.map { ($0 + count).assumingMemoryBound(to: CChar.self) }
      return fuse_add_direntry_plus(
        nil, place, room, item.name, &parameters, off_t(item.cookie))
    }
    return true
  }

  private static func withoutAttributes(_ item: ListingItem) -> fuse_entry_param {
    var parameters = fuse_entry_param()
    parameters.attr.st_ino = UInt(item.inode)
    parameters.attr.st_mode = FileOwnership.type(item.type)
    return parameters
  }
}
