import PreferenceModel

/// Makes the origins of the changes that a process asks for, by which an owner tells a repeated
/// request. A change for a request of the kernel has an origin that a successor of the process finds
/// again (`RepeatableChanges`).
struct Origins: Sendable {
  /// A request of the kernel that changes are made for.
  private struct KernelRequest {
    let number: UInt64
    /// How many changes were carried out for it.
    var changes: UInt64 = 0
    /// Whether the next change is the one that it asks for.
    var isDecisive = false
  }

  /// The number of the process and its successors.
  private let client: UInt64
  /// Random, because an owner remembers the serials of a predecessor of the process.
  private var lastSerial = UInt64.random(in: 1..<1 << 60)
  /// The request of the kernel that changes are made for.
  private var request: KernelRequest?

  init(client: UInt64) { self.client = client }

  /// Returns a new origin for a change.
  mutating func next() -> Origin {
    if let request {
      let change = request.isDecisive ? 0 : request.changes + 1
      return Origin(client: client, request: request.number, change: change)
    }
    lastSerial += 1
    return Origin(client: client, serial: lastSerial)
  }

  /// Notes that a change with an origin of `next` was carried out. A call of an engine may make
  /// several: the first of them is the one that its request asks for.
  mutating func noteCarriedOut() {
    request?.changes += 1
    request?.isDecisive = false
  }

  /// The next changes are made for the request of the kernel.
  mutating func begin(request: UInt64) { self.request = KernelRequest(number: request) }

  /// Notes whether the next change is the one that the request asks for.
  mutating func setDecisive(_ isDecisive: Bool) { request?.isDecisive = isDecisive }

  /// No changes are made for the request any more.
  mutating func endRequest() { request = nil }
}
