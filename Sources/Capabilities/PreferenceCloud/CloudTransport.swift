import SystemCalls

/// Carries the requests of a `CloudSession` to a server, and brings what has happened.
///
/// Threads: one, which calls `wait` again and again.
public protocol CloudTransport: AnyObject {
  /// Sends a request. Its answer, or its failure, comes from `wait`.
  /// - Parameter patience: seconds after which a request that makes no progress has failed.
  func call(_ url: String, _ body: [UInt8], token: String?, patience: Int)

  /// Sends the request of a watch, in place of the last watch. The lines of its answer come from
  /// `wait`.
  func watch(_ url: String, _ body: [UInt8], token: String?)

  /// Ends the watch.
  func endWatch()

  /// Ends the request and the watch. `wait` returns nothing about them from now on.
  func disconnect()

  /// Waits until something has happened, one of the descriptors can be read, or the deadline (nil
  /// if none) has passed.
  func wait(until deadline: Instant?, or descriptors: [CInt]) -> [CloudSession.Input]
}
