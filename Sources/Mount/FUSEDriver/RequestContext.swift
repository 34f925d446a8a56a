import PreferenceTree
import SystemCalls

/// What belongs to one request of the kernel, from the moment at which it is carried out until its
/// answer is saved.
struct RequestContext {
  /// What its message says of it. The message lives as long as the request is carried out.
  let header: RequestHeader
  /// The announcement that it is a part of: the driver's own thread has made it.
  let announcement: Announcement?
  /// The error that it is answered with, without reaching a tree; nil if it is carried out.
  var refusal: Errno?
  /// The version of a directory's entries that is new enough for it, because it has waited for a
  /// listing of them.
  var listing: UInt64?
  /// The same request, if the trees have its effects since a predecessor of this driver.
  var saved: SavedRequest?

  /// The announcement that it is a part of, if it is about the announced name.
  func announcement(of name: [UInt8]) -> Announcement? {
    announcement.flatMap { $0.name.utf8.elementsEqual(name) ? $0 : nil }
  }
}
