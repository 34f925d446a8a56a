import CFUSE
import Glibc
import PreferenceTree

/// libfuse's table of callbacks: each takes its arguments apart and asks the tree. A request
/// without a callback gets ENOSYS. The kernel then does without it: it reads and writes for
/// copy_file_range, and treats a file as without holes for lseek with SEEK_DATA. File locks have no
/// callbacks, so the kernel keeps them itself.
enum Operations {
  static var table: fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    addSession(&table)
    addNames(&table)
    addChangesOfNames(&table)
    addAttributes(&table)
    addHandles(&table)
    addContents(&table)
    addDirectories(&table)
    addExtendedAttributes(&table)
    return table
  }
}

// These are free functions, because a C function pointer captures nothing, not even the type that
// its closure stands in.

/// Calls `body` with the driver of a request and the request's one reply.
func serve(
  _ request: fuse_req_t?, _ body: (Driver, consuming Reply) -> Void
) {
  guard let request, let data = fuse_req_userdata(request) else { return }
  body(Unmanaged<Driver>.fromOpaque(data).takeUnretainedValue(), Reply(request))
}

/// Answers a request about a node with the result of `body`, which asks the node's tree.
func answer(
  _ request: fuse_req_t?, _ node: fuse_ino_t,
  _ body: (any MountedTree, NodeID) throws(TreeError) -> Answer
) {
  answerWithDriver(request) { driver, _ throws(TreeError) in
    let node = NodeID(rawValue: UInt64(node))
    return try body(driver.forest[node], node)
  }
}

/// Answers a request with the result of `body`, which needs more of the driver than one tree.
func answerWithDriver(
  _ request: fuse_req_t?, _ body: (Driver, RequestContext) throws(TreeError) -> Answer
) {
  serve(request) { driver, reply in
    driver.answer(reply) { context throws(TreeError) in try body(driver, context) }
  }
}

/// Returns the bytes of a C string, without its NUL; none for nil.
func bytes(_ name: UnsafePointer<CChar>?) -> [UInt8] {
  guard let name else { return [] }
  return name.withMemoryRebound(to: UInt8.self, capacity: strlen(name)) {
    Array(UnsafeBufferPointer(start: $0, count: strlen(name)))
  }
}
