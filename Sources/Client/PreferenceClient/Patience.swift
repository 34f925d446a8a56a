import SystemCalls

/// How long a client waits for the owner of its store.
enum Patience {
  /// Milliseconds until a request that is not answered fails with ETIMEDOUT.
  static let usual: Int64 = 5000
  /// Milliseconds that a read waits for notices that are missing.
  static let read: Int64 = 200

  /// When a request that is made now fails with ETIMEDOUT.
  static var end: Instant { Instant.now.advanced(milliseconds: usual) }
}
