import CFUSE
import Glibc
import PreferenceTree
import SystemCalls

extension Operations {
  static func addAttributes(_ table: inout fuse_lowlevel_ops) {
    table.getattr = { request, node, _ in
      answer(request, node) { tree, node throws(TreeError) in
        .attributes(try tree.attributes(node))
      }
    }
    table.setattr = { request, node, status, which, info in
      answerWithDriver(request) { driver, context throws(TreeError) in
        let node = NodeID(rawValue: node)
        let tree = driver.forest[node]
        if context.announcement != nil {
          return .changed(try tree.attributes(node))
        }
        let change = change(which, status, ownership: driver.ownership)
        // open(2) with O_TRUNC and truncate(2) come without a handle.
        let isStale = info == nil && change.size != nil && tree.hasLostName(node)
        if driver.writers.staleNames.refuses(isStale, context.header.thread) { throw .stale }
        let handle = HandleID(rawValue: info?.pointee.fh ?? 0)
        return .changed(
          try tree.setAttributes(node, change, handle: handle, now: .now))
      }
    }
    table.statfs = { request, _ in
      serve(request) { driver, reply in driver.answerSpace(reply) }
    }
  }

  /// Adds the requests around opening and closing; see "No open" in `Driver`.
  static func addHandles(_ table: inout fuse_lowlevel_ops) {
    table.open = { request, node, _ in answer(request, node) { _, _ in .error(.noFunction) } }
    table.flush = { request, node, _ in answer(request, node) { _, _ in .error(.noFunction) } }
    table.create = { request, parent, name, mode, info in
      answerWithDriver(request) { driver, context throws(TreeError) in
        let (parent, name) = (NodeID(rawValue: parent), bytes(name))
        driver.writers.staleNames.noteProgress(of: context.header.thread)
        if let entry = try driver.createdEntry(context, parent, name) {
          return .created(entry, .none)
        }
        let flags = info?.pointee.flags ?? 0
        var how = CreationFlags()
        how.exclusively = flags & O_EXCL != 0
        how.truncating = flags & O_TRUNC != 0
        how.readsToo = flags & O_ACCMODE == O_RDWR
        how.mode = mode
        let tree = try driver.forest.changing(parent, name)
        let (entry, handle) = try tree.create(parent, name, how, now: .now)
        return .created(entry, handle)
      }
    }
    table.release = { request, node, info in
      answer(request, node) { tree, node in
        tree.release(node, HandleID(rawValue: info?.pointee.fh ?? 0), now: .now)
        return .done
      }
    }
  }

  static func addContents(_ table: inout fuse_lowlevel_ops) {
    // Only that of the announcer succeeds: it has the kernel tell watchers of a change.
    table.fallocate = { request, _, _, _, _, _ in
      answerWithDriver(request) { _, context in
        context.announcement == nil ? .error(.notSupported) : .done
      }
    }
    table.read = { request, node, count, offset, _ in
      answer(request, node) { tree, node throws(TreeError) in
        .bytes(try tree.read(node, at: Int(offset), count: count))
      }
    }
    table.write = { request, node, data, count, offset, info in
      answerWithDriver(request) { driver, context throws(TreeError) in
        var write = WriteRequest(
          Array(UnsafeRawBufferPointer(start: data, count: count)), at: Int(offset))
        write.isMapped = info?.pointee.writepage == 1
        write.appending = (info?.pointee.flags ?? 0) & O_APPEND != 0 && !write.isMapped
        write.handle = HandleID(rawValue: info?.pointee.fh ?? 0)
        write.writer = context.header.thread
        driver.writers.staleNames.noteProgress(of: context.header.thread)
        let node = context.header.node
        try driver.forest[node].write(node, write, now: .now)
        return .written(count)
      }
    }
    table.fsync = { request, node, _, _ in
      serve(request) { driver, reply in
        driver.synchronize(reply) { () throws(TreeError) in
          let node = NodeID(rawValue: node)
          try driver.forest[node].prepareSynchronize(node, now: .now)
        }
      }
    }
  }
}

private func change(
  _ which: CInt, _ status: UnsafeMutablePointer<stat>?, ownership: FileOwnership
) -> AttributeChange {
  var change = AttributeChange()
  guard let status = status?.pointee else { return change }
  if which & FUSE_SET_ATTR_SIZE != 0 { change.size = Int(status.st_size) }
  change.changesOwner =
    which & FUSE_SET_ATTR_UID != 0 && status.st_uid != ownership.user
    || which & FUSE_SET_ATTR_GID != 0 && status.st_gid != ownership.group
  if which & FUSE_SET_ATTR_MODE != 0 { change.mode = status.st_mode & 0o7777 }
  if which & FUSE_SET_ATTR_MTIME_NOW != 0 {
    change.modified = .now
  } else if which & FUSE_SET_ATTR_MTIME != 0 {
    change.modified = Timestamp(status.st_mtim)
  }
  return change
}

/// Has the kernel look a name up again that it has found in its cache, and whose file has lost it:
/// ESTALE does that, once for each system call (fs/namei.c). A program that opens its descriptor of
/// a removed file by /proc gets the same file again, and goes on with that.
///
/// Threads: the loop's alone.
struct StaleNames {
  /// The thread that was last told to look again, and has done nothing since; 0 if there is none.
  private var thread: pid_t = 0

  /// Whether the request of a thread is refused with ESTALE.
  /// - Parameter isStale: whether its file has no name.
  mutating func refuses(_ isStale: Bool, _ thread: pid_t) -> Bool {
    let isRetry = self.thread == thread
    self.thread = isStale && !isRetry ? thread : isRetry ? 0 : self.thread
    return isStale && !isRetry
  }

  /// Notes another request of a thread: what it is told to look up again next is another name.
  mutating func noteProgress(of thread: pid_t) { if self.thread == thread { self.thread = 0 } }
}
