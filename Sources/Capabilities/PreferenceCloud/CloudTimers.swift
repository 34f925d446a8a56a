import SystemCalls

extension CloudSession {
  /// When a connection does something without being asked. Each connection begins with new ones.
  struct Timers: Sendable {
    /// When the server was heard last; 0 if never.
    var heard = Instant(nanoseconds: 0)
    /// When the server is asked whether it is there; nil if nobody listens yet.
    var heartbeat: Instant?
    /// When the request on its way must have been answered; nil if it has its own limit.
    var answer: Instant?
    /// When a new token is asked for; nil if it need not wait.
    var renewal: Instant?
    /// Whether the next request must be answered soon.
    var isProbing = false
    /// Whether people were told that the server does not answer.
    var isSilent = false

    /// Milliseconds after which a server is asked that sends nothing, and which it has for the
    /// answer. A random part of up to a third
    /// is cut, so that the hosts that heard of one change do not ask at the same moment.
    static let heartbeat: Int64 = 15_000
    /// Milliseconds after which people are told that the question was not answered.
    static let silence: Int64 = 5000
    /// Milliseconds that an answer may take where the network has changed, or somebody waits.
    static let probe: Int64 = 2000
    /// Milliseconds in which one change of the network follows another one: an address, its route.
    static let settling: Int64 = 300
  }
}
