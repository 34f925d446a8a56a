import CFUSE
import CLinux
import Glibc
import PreferenceTree
import SystemCalls

extension Operations {
  /// Adds the agreement with the kernel at the start of a session (FUSE_INIT).
  static func addSession(_ table: inout fuse_lowlevel_ops) {
    table.`init` = { _, connection in
      guard let connection else { return }
      // O_TRUNC must come as a SETATTR, because there is no OPEN.
      connection.pointee.want &= ~UInt32(FUSE_CAP_ATOMIC_O_TRUNC)
    }
  }

  /// Adds the requests that turn names into nodes, and that forget nodes.
  static func addNames(_ table: inout fuse_lowlevel_ops) {
    table.lookup = { request, parent, name in
      answerWithDriver(request) { driver, context throws(TreeError) in
        try driver.lookup(context, NodeID(rawValue: parent), bytes(name))
      }
    }
    table.forget = { request, node, count in
      answer(request, node) { tree, node in
        tree.forget(node, count)
        return .none
      }
    }
    table.forget_multi = { request, count, items in
      answerWithDriver(request) { driver, _ in
        for item in UnsafeBufferPointer(start: items, count: count) {
          let node = NodeID(rawValue: item.ino)
          driver.forest[node].forget(node, item.nlookup)
        }
        return .none
      }
    }
  }

  /// Adds the requests that remove and rename names, and that make names by link(2), symlink(2) and
  /// mknod(2).
  static func addChangesOfNames(_ table: inout fuse_lowlevel_ops) {
    table.unlink = { request, parent, name in
      answerWithDriver(request) { driver, context throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        if try !driver.isGhost(context, parent, name) {
          try driver.forest.changing(parent, name).unlink(parent, name, now: .now)
        }
        return .done
      }
    }
    table.rename = { request, oldParent, oldName, newParent, newName, flags in
      answerWithDriver(request) { driver, _ throws(TreeError) in
        guard flags & ~(prefsfs_rename_noreplace | prefsfs_rename_exchange) == 0 else {
          throw .invalid("rename with unknown flags")
        }
        let mode: RenameMode =
          flags & prefsfs_rename_exchange != 0
          ? .exchange
          : flags & prefsfs_rename_noreplace != 0 ? .keep : .replace
        try driver.forest.rename(
          NodeID(rawValue: oldParent), bytes(oldName), to: NodeID(rawValue: newParent),
          bytes(newName), mode, now: .now)
        return .done
      }
    }
    table.link = { request, node, parent, name in
      answerWithDriver(request) { driver, _ throws(TreeError) in
        .made(
          try driver.forest.link(
            NodeID(rawValue: node), NodeID(rawValue: parent), bytes(name), now: .now))
      }
    }
    table.symlink = { request, target, parent, name in
      answerWithDriver(request) { driver, _ throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        let tree = try driver.forest.changing(parent, name)
        return .made(try tree.makeLink(parent, name, to: bytes(target), now: .now))
      }
    }
    table.readlink = { request, node in
      answer(request, node) { tree, node throws(TreeError) in
        .link(try tree.readLink(node))
      }
    }
    table.mknod = { request, parent, name, mode, _ in
      answerWithDriver(request) { driver, _ throws(TreeError) in
        guard mode & S_IFMT == S_IFREG else { return .error(.notPermitted) }
        var how = CreationFlags()
        how.exclusively = true
        how.mode = mode
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        let tree = try driver.forest.changing(parent, name)
        let (entry, handle) = try tree.create(parent, name, how, now: .now)
        tree.release(entry.node, handle, now: .now)
        return .made(entry)
      }
    }
  }
}
