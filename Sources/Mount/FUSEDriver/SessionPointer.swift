/// A pointer to libfuse's session. Its functions may be called from any thread: the session locks
/// what its threads share, and a notification is one write(2).
struct SessionPointer: @unchecked Sendable {
  let raw: OpaquePointer?

  init(_ raw: OpaquePointer?) { self.raw = raw }
}
