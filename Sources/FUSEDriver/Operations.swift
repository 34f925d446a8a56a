import CFUSE
import Glibc
import PreferenceTree

/// libfuse's table of callbacks. Each takes its arguments apart and asks the tree; what is not in
/// the table is ENOSYS, which the kernel makes reads and writes of (copy_file_range, lseek with
/// SEEK_DATA) or EOPNOTSUPP (fallocate). Locks are left to the kernel.
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
  answerWithDriver(request) { driver throws(TreeError) in try body(driver.tree) }
}

/// The same, for what the tree alone cannot answer.
func answerWithDriver(
  _ request: fuse_req_t?, _ body: (Driver) throws(TreeError) -> Answer
) {
  serve(request) { driver, reply in
    driver.answer(reply) { () throws(TreeError) in try body(driver) }
  }
}

func bytes(_ name: UnsafePointer<CChar>?) -> [UInt8] {
  guard let name else { return [] }
  return name.withMemoryRebound(to: UInt8.self, capacity: strlen(name)) {
    Array(UnsafeBufferPointer(start: $0, count: strlen(name)))
  }
}
