import CFUSE
import Glibc
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
      list(request, node, room, offset) { buffer, _, item in
        buffer.add(item)
      }
    }
    table.readdirplus = { request, node, room, offset, _ in
      list(request, node, room, offset) { buffer, driver, item in
        buffer.addWithAttributes(item, driver: driver, parent: NodeID(rawValue: node))
      }
    }
    table.fsyncdir = { request, _, _, _ in
      serve(request) { driver, reply in driver.synchronize(reply) {} }
    }
  }

}

private func list(
  _ request: fuse_req_t?, _ node: fuse_ino_t, _ room: Int, _ offset: off_t,
  add: (inout ListingBuffer, Driver, ListingItem) -> Bool
) {
  answerWithDriver(request) { driver throws(TreeError) in
    let directory = NodeID(rawValue: node)
    let items = try driver.forest[directory].list(
      directory, after: UInt64(bitPattern: Int64(offset)), since: driver.listingVersion)
    var buffer = ListingBuffer(request: request, room: room)
    let dots = [(".", 1), ("..", 2)].filter { offset < $0.1 }.map { name, cookie in
      ListingItem(name: name, inode: node, type: .directory, cookie: cookie)
    }
    // One after the other: an array of both would be a copy of the whole listing for each request.
    let hasRoom = dots.allSatisfy { add(&buffer, driver, $0) }
    if hasRoom { for item in items where !add(&buffer, driver, item) { break } }
    return .bytes(buffer.bytes[...])
  }
}

/// The reply to one READDIR: as many entries as the kernel has room for.
struct ListingBuffer {
  private let request: fuse_req_t?
  /// Bytes that the kernel has room for.
  private let room: Int
  private(set) var bytes: [UInt8] = []

  init(request: fuse_req_t?, room: Int) {
    self.request = request
    self.room = room
    bytes.reserveCapacity(room)
  }

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
    return append { request, buffer, size in
      fuse_add_direntry(request, buffer, size, item.name, &status, off_t(item.cookie))
    }
  }

  /// Adds a name with its attributes, which the kernel counts as a look-up. A name that is gone, or
  /// whose value cannot be read or is not in memory, is added without attributes.
  /// - Returns: false if there is no room for it.
  mutating func addWithAttributes(_ item: ListingItem, driver: Driver, parent: NodeID) -> Bool {
    let size = fuse_add_direntry_plus(request, nil, 0, item.name, nil, 0)
    guard bytes.count + size <= room else { return false }
    var parameters = fuse_entry_param()
    let isDot = item.name == "." || item.name == ".."
    let name = Array(item.name.utf8)
    if !isDot, driver.gate.isAtHand(parent, name, driver.forest),
      case .found(let entry)? = try? driver.forest.lookup(parent, name, now: .now)
    {
      parameters = driver.ownership.parameters(entry)
    } else {
      parameters.attr = status(item)
    }
    return append { request, buffer, size in
      fuse_add_direntry_plus(request, buffer, size, item.name, &parameters, off_t(item.cookie))
    }
  }

  private mutating func append(
    _ add: (fuse_req_t?, UnsafeMutablePointer<CChar>?, Int) -> Int
  ) -> Bool {
    let size = add(request, nil, 0)
    guard bytes.count + size <= room else { return false }
    let start = bytes.count
    bytes.append(contentsOf: repeatElement(0, count: size))
    bytes.withUnsafeMutableBytes { buffer in
      let place = buffer.baseAddress.map { ($0 + start).assumingMemoryBound(to: CChar.self) }
      _ = add(request, place, size)
    }
    return true
  }
}
