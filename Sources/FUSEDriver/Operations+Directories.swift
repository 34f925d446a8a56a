import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

extension Operations {
  static func addDirectories(_ table: inout fuse_lowlevel_ops) {
    table.mkdir = { request, parent, name, _ in
      answerWithDriver(request) { driver throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        if let entry = try driver.createdEntry(request, parent, name) { return .made(entry) }
        return .made(try driver.forest[parent].makeDirectory(parent, name, now: .now))
      }
    }
    table.rmdir = { request, parent, name in
      answerWithDriver(request) { driver throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        if try !driver.isGhost(request, parent, name) {
          try driver.forest[parent].removeDirectory(parent, name, now: .now)
        }
        return .done
      }
    }
    table.opendir = { request, node, _ in
      answer(request, node) { tree, node throws(TreeError) in
        .directory(keepsListing: try tree.mayKeepListing(node, now: .now))
      }
    }
    table.releasedir = { request, node, _ in answer(request, node) { _, _ in .done } }
    table.readdir = { request, node, room, offset, _ in
      list(request, node, room, offset) { buffer, _, item, _ in
        buffer.add(item)
      }
    }
    table.readdirplus = { request, node, room, offset, _ in
      list(request, node, room, offset) { buffer, driver, item, isWanted in
        buffer.addWithAttributes(
          item, isWanted, driver: driver, parent: NodeID(rawValue: node))
      }
    }
    table.fsyncdir = { request, _, _, _ in
      serve(request) { driver, reply in driver.synchronize(reply) {} }
    }
  }

}

private func list(
  _ request: fuse_req_t?, _ node: fuse_ino_t, _ room: Int, _ offset: off_t,
  add: (inout ListingBuffer, Driver, ListingItem, _ wantsAttributes: Bool) -> Bool
) {
  answerWithDriver(request) { driver throws(TreeError) in
    let (directory, cookie) = (NodeID(rawValue: node), UInt64(bitPattern: Int64(offset)))
    let tree = driver.forest[directory]
    let items = try tree.list(directory, after: cookie, since: driver.listingVersion)
    let isWanted = tree.givesAttributes(directory, after: cookie)
    var buffer = ListingBuffer(request: request, room: room)
    let dots = [(".", 1), ("..", 2)].filter { offset < $0.1 }.map { name, cookie in
      ListingItem(name: name, inode: node, type: .directory, cookie: cookie)
    }
    // One after the other: an array of both would be a copy of the whole listing for each request.
    let hasRoom = dots.allSatisfy { add(&buffer, driver, $0, false) }
    if hasRoom { for item in items where !add(&buffer, driver, item, isWanted) { break } }
    return .bytes(buffer.contents)
  }
}

/// The reply to one READDIR: as many entries as the kernel has room for.
struct ListingBuffer {
  private let request: fuse_req_t?
  private var bytes: [UInt8]
  private var count = 0
  private let now = Moment.now
  /// Domains whose lists are at hand: those that the look-up of the last name needed.
  private var atHand: [DomainName] = []

  /// - Parameter room: bytes that the kernel has room for.
  init(request: fuse_req_t?, room: Int) {
    self.request = request
    bytes = Array(repeating: 0, count: room)
  }

  /// The entries, as the kernel reads them.
  var contents: ArraySlice<UInt8> { bytes[..<count] }

  private func status(_ item: ListingItem) -> stat {
    var status = stat()
    status.st_ino = UInt(item.inode)
    status.st_mode = FileOwnership.type(item.type)
    return status
  }

  /// Adds a name.
  /// - Returns: false if there is no room for it.
  mutating func add(_ item: ListingItem) -> Bool {
    var status = status(item)
    return append { request, place, room in
      fuse_add_direntry(request, place, room, item.name, &status, off_t(item.cookie))
    }
  }

  /// Adds a name with its attributes, where they are wanted; the kernel counts that as a look-up. A
  /// name that is gone, or whose value cannot be read or is not in memory, is added without them.
  /// - Returns: false if there is no room for it.
  mutating func addWithAttributes(
    _ item: ListingItem, _ isWanted: Bool, driver: Driver, parent: NodeID
  ) -> Bool {
    let size = fuse_add_direntry_plus(request, nil, 0, item.name, nil, 0)
    guard count + size <= bytes.count else { return false }
    var parameters = fuse_entry_param()
    let name = Array(item.name.utf8)
    if isWanted, driver.gate.isAtHand(parent, name, driver.forest, &atHand),
      case .found(let entry)? = try? driver.forest[parent].lookup(parent, name, now: now)
    {
      parameters = driver.ownership.parameters(entry)
    } else {
      parameters.attr = status(item)
    }
    return append { request, place, room in
      fuse_add_direntry_plus(request, place, room, item.name, &parameters, off_t(item.cookie))
    }
  }

  /// Adds what the body writes to the place.
  /// - Parameter add: writes an entry where the room suffices, and returns its size.
  /// - Returns: false if there is no room for it.
  private mutating func append(
    _ add: (fuse_req_t?, UnsafeMutablePointer<CChar>?, Int) -> Int
  ) -> Bool {
    let room = bytes.count - count
    let size = bytes.withUnsafeMutableBytes { [request, count] buffer in
      let place = buffer.baseAddress.map { ($0 + count).assumingMemoryBound(to: CChar.self) }
      return add(request, place, room)
    }
    guard size <= room else { return false }
    count += size
    return true
  }
}
