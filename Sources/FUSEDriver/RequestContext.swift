import Glibc
import PreferenceTree
import SystemCalls

/// What belongs to one request of the kernel, from the moment at which it is carried out until its
/// answer is saved.
struct RequestContext {
  /// Its number, without the mark of a request that is sent again.
  let number: UInt64
  let operation: Operation
  let node: NodeID
  /// The thread that made it: see `RequestHeader`.
  let thread: pid_t
  /// The announcement that it is a part of: the driver's own thread has made it.
  let announcement: Announcement?
  /// The error that it is answered with, without reaching a tree; nil: it is carried out.
  var refusal: Errno?
  /// The version of a directory's entries that is new enough for it, because it has waited for a
  /// listing of them.
  var listing: UInt64?
  /// The answer that a predecessor of this driver has saved, or that is known of its change.
  var answer: SavedAnswer?
  /// Whether a predecessor has made its change, which is repeated so that the trees follow.
  var isRepetition = false

  init(_ header: RequestHeader, _ announcement: Announcement?) {
    (number, operation, node) = (header.number, header.operation, header.node)
    (thread, self.announcement) = (header.thread, announcement)
  }

  /// Whether its answer is saved: it changes something, or counts a look-up.
  var isSaved: Bool { operation.isChange || operation == .lookup }

  /// The announcement that it is a part of, if it is about the announced name.
  func announcement(of name: [UInt8]) -> Announcement? {
    announcement.flatMap { $0.name.utf8.elementsEqual(name) ? $0 : nil }
  }
}
