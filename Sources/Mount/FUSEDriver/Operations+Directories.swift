import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

extension Operations {
  static func addDirectories(_ table: inout fuse_lowlevel_ops) {
    table.mkdir = { request, parent, name, _ in
      answerWithDriver(request) { driver, context throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        if let entry = try driver.createdEntry(context, parent, name) { return .made(entry) }
        let tree = try driver.forest.changing(parent, name)
        return .made(try tree.makeDirectory(parent, name, now: .now))
      }
    }
    table.rmdir = { request, parent, name in
      answerWithDriver(request) { driver, context throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        if try !driver.isGhost(context, parent, name) {
          try driver.forest.changing(parent, name).removeDirectory(parent, name, now: .now)
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
    // Without a `readdir`, libfuse has every listing come as a READDIRPLUS; the tree decides if it
    // gives attributes. The kernel would ask for them only at the beginning of a directory, and
    // after a look-up.
    table.readdirplus = { request, node, room, offset, _ in
      answerWithDriver(request) { driver, context throws(TreeError) in
        let part = ListingPart(
          directory: NodeID(rawValue: node), cookie: UInt64(bitPattern: Int64(offset)), room: room)
        return .bytes(try driver.makeListing(part, since: context.listing).contents)
      }
    }
    table.fsyncdir = { request, _, _, _ in
      serve(request) { driver, reply in driver.synchronize(reply) {} }
    }
  }
}
