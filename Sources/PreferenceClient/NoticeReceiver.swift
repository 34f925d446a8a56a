import SystemCalls

/// The connections of a process that has a loop of its own (a mount): in place of a thread for each
/// link, the loop waits for `descriptor` beside its other descriptors, and then receives what has
/// come. So a change of another program wakes one thread here, and not two.
///
/// Threads: any. No lock; epoll(7) has its own.
public final class NoticeReceiver: Sendable {
  private let descriptors: DescriptorSet

  init() throws(SystemError) { descriptors = try DescriptorSet() }

  /// Can be read when a connection has something to receive, or has ended. It stays the same over
  /// the connections to all owners.
  var descriptor: CInt { descriptors.number }

  /// Adds the socket of a connection, until it is closed.
  func add(_ socket: borrowing Socket) throws(SystemError) { try descriptors.add(socket.number) }

  /// Removes the socket of a connection that has ended, so that `descriptor` no longer stays
  /// readable because of it.
  func remove(_ socket: borrowing Socket) { descriptors.remove(socket.number) }
}
