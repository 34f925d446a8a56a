import CFUSE
import CLinux
import Glibc
import PreferenceTree
import SystemCalls

/// libfuse's table of callbacks. Each takes its arguments apart and asks the tree; what is not in
/// the table is ENOSYS, which the kernel makes reads and writes of (copy_file_range, lseek with
/// SEEK_DATA) or EOPNOTSUPP (fallocate). Locks are left to the kernel.
enum Operations {
  static var table: fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    addNames(&table)
    addFiles(&table)
    addDirectories(&table)
    addExtendedAttributes(&table)
    return table
  }

  private static func addNames(_ table: inout fuse_lowlevel_ops) {
    table.`init` = { _, connection in
      guard let connection else { return }
      // O_TRUNC must come as a SETATTR, because there is no OPEN.
      connection.pointee.want &= ~UInt32(FUSE_CAP_ATOMIC_O_TRUNC)
    }
    table.lookup = { request, parent, name in
      answer(request) { tree throws(TreeError) in
        switch try tree.lookup(NodeID(rawValue: parent), bytes(name), now: .now) {
        case .found(let entry): .entry(entry)
        case .missing(let isRemembered): .missing(isRemembered: isRemembered)
        }
      }
    }
    table.forget = { request, node, count in
      answer(request) { tree in
        tree.forget(NodeID(rawValue: node), count)
        return .none
      }
    }
    table.forget_multi = { request, count, items in
      answer(request) { tree in
        for item in UnsafeBufferPointer(start: items, count: count) {
          tree.forget(NodeID(rawValue: item.ino), item.nlookup)
        }
        return .none
      }
    }
    table.unlink = { request, parent, name in
      answer(request) { tree throws(TreeError) in
        try tree.unlink(NodeID(rawValue: parent), bytes(name), now: .now)
        return .done
      }
    }
    table.rename = { request, oldParent, oldName, newParent, newName, flags in
      answer(request) { tree throws(TreeError) in
        guard flags & ~(prefsfs_rename_noreplace | prefsfs_rename_exchange) == 0 else {
          throw .invalid("rename with unknown flags")
        }
        let mode: RenameMode =
          flags & prefsfs_rename_exchange != 0
          ? .exchange : flags & prefsfs_rename_noreplace != 0 ? .keep : .replace
        try tree.rename(
          NodeID(rawValue: oldParent), bytes(oldName), to: NodeID(rawValue: newParent),
          bytes(newName), mode, now: .now)
        return .done
      }
    }
    // Hard links, symbolic links and device nodes have no place in the tree (SPEC section 4).
    table.link = { request, _, _, _ in answer(request) { _ in .error(.notPermitted) } }
    table.symlink = { request, _, _, _ in answer(request) { _ in .error(.notSupported) } }
    table.mknod = { request, parent, name, mode, _ in
      answer(request) { tree throws(TreeError) in
        guard mode & S_IFMT == S_IFREG else { return .error(.notPermitted) }
        let (entry, handle) = try tree.create(
          NodeID(rawValue: parent), bytes(name), exclusively: true, now: .now)
        tree.release(entry.node, handle)
        return .entry(entry)
      }
    }
  }

  private static func addFiles(_ table: inout fuse_lowlevel_ops) {
    table.getattr = { request, node, _ in
      answer(request) { tree throws(TreeError) in
        .attributes(try tree.attributes(NodeID(rawValue: node)))
      }
    }
    table.setattr = { request, node, status, which, info in
      serve(request) { driver, reply in
        driver.answer(reply) { () throws(TreeError) in
          let change = change(which, status, owner: driver.owner)
          let handle = HandleID(rawValue: info?.pointee.fh ?? 0)
          return .attributes(
            try driver.tree.setAttributes(
              NodeID(rawValue: node), change, handle: handle, now: .now))
        }
      }
    }
    table.open = { request, _, _ in answer(request) { _ in .error(.noFunction) } }
    table.flush = { request, _, _ in answer(request) { _ in .error(.noFunction) } }
    table.create = { request, parent, name, _, info in
      answer(request) { tree throws(TreeError) in
        let flags = info?.pointee.flags ?? 0
        let (entry, handle) = try tree.create(
          NodeID(rawValue: parent), bytes(name), exclusively: flags & O_EXCL != 0,
          truncating: flags & O_TRUNC != 0, now: .now)
        return .created(entry, handle)
      }
    }
    table.release = { request, node, info in
      answer(request) { tree in
        tree.release(NodeID(rawValue: node), HandleID(rawValue: info?.pointee.fh ?? 0))
        return .done
      }
    }
    table.read = { request, node, count, offset, _ in
      answer(request) { tree throws(TreeError) in
        .bytes(try tree.read(NodeID(rawValue: node), at: Int(offset), count: count))
      }
    }
    table.write = { request, node, data, count, offset, info in
      answer(request) { tree throws(TreeError) in
        let bytes = Array(UnsafeRawBufferPointer(start: data, count: count))
        let isAppend = (info?.pointee.flags ?? 0) & O_APPEND != 0 && info?.pointee.writepage == 0
        try tree.write(
          NodeID(rawValue: node), bytes, at: Int(offset), appending: isAppend,
          handle: HandleID(rawValue: info?.pointee.fh ?? 0), now: .now)
        return .written(count)
      }
    }
    table.fsync = { request, node, _, _ in
      serve(request) { driver, reply in
        driver.synchronize(reply) { () throws(TreeError) in
          try driver.tree.prepareSynchronize(NodeID(rawValue: node), now: .now)
        }
      }
    }
    table.statfs = { request, _ in
      serve(request) { driver, reply in driver.answer(reply) { .space(driver.engine.space()) } }
    }
  }

}

// Free functions, because a C function pointer captures nothing, not even the type that its
// closure stands in.

/// The driver of a request, and the request's one reply.
func serve(
  _ request: fuse_req_t?, _ body: (Driver, consuming Reply) -> Void
) {
  guard let request, let data = fuse_req_userdata(request) else { return }
  body(Unmanaged<Driver>.fromOpaque(data).takeUnretainedValue(), Reply(request))
}

/// Answers a request with what `body` gives.
func answer(
  _ request: fuse_req_t?, _ body: (Tree) throws(TreeError) -> Answer
) {
  serve(request) { driver, reply in
    driver.answer(reply) { () throws(TreeError) in try body(driver.tree) }
  }
}

func bytes(_ name: UnsafePointer<CChar>?) -> [UInt8] {
  guard let name else { return [] }
  return name.withMemoryRebound(to: UInt8.self, capacity: strlen(name)) {
    Array(UnsafeBufferPointer(start: $0, count: strlen(name)))
  }
}

private func change(
  _ which: CInt, _ status: UnsafeMutablePointer<stat>?, owner: Owner
) -> AttributeChange {
  var change = AttributeChange()
  guard let status = status?.pointee else { return change }
  if which & FUSE_SET_ATTR_SIZE != 0 { change.size = Int(status.st_size) }
  change.changesOwner =
    which & FUSE_SET_ATTR_UID != 0 && status.st_uid != owner.user
    || which & FUSE_SET_ATTR_GID != 0 && status.st_gid != owner.group
  return change
}
