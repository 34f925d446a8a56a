import PreferenceModel
import PreferenceProtocol
import SystemCalls

// Requests that a client writes into memory which both processes have (`SharedRing`).

/// A client's ring, as the owner has it.
struct RingRequests: Sendable {
  private let ring: SharedRing
  private var reader = FrameReader(largest: Request.largest)

  init(_ ring: SharedRing) { self.ring = ring }

  /// Whether there is nothing that the client has written since the last `take`.
  var isEmpty: Bool { ring.isEmpty }

  /// Takes what the client has written.
  mutating func take() throws(ProtocolError) {
    // An empty array keeps its capacity: the memory of a large request would stay.
    if reader.bytes.isEmpty { reader.bytes = [] }
    guard ring.take(into: &reader.bytes) else {
      throw ProtocolError("the numbers of its ring make no sense")
    }
  }

  /// The next request that was taken; nil: there is none.
  mutating func next() throws(ProtocolError) -> Frame? { try reader.next() }

  /// See `SharedRing`.
  func beginWait() -> Bool { ring.beginWait() }

  /// See `SharedRing`.
  func endWait() { ring.endWait() }
}

extension Connection {
  /// Begins to carry out what the client writes into its ring, whose descriptor came with the
  /// request `ring`.
  func beginRing() throws(ProtocolError) {
    let file = state.withLock { state in
      defer { state.file = nil }
      return state.ring == nil ? state.file : nil
    }
    guard let file, let ring = try? SharedRing(reading: file.value) else {
      throw ProtocolError("its ring is not one of ours")
    }
    state.withLock { $0.ring = RingRequests(ring) }
    _ = try serveRing()
  }

  /// Whether there are requests in the ring that can be carried out.
  var hasRingRequests: Bool { state.withLock { $0.hasRingRequests } }

  /// Says that the server's thread is going to wait, and that the client has to wake it.
  /// - Returns: whether it may wait: nothing in the ring can be carried out at present.
  func beginWait() -> Bool {
    state.withLock { $0.ring?.beginWait() ?? true || !$0.hasRingRequests }
  }

  /// Says that the server's thread is awake.
  func endWait() { state.withLock { $0.ring?.endWait() } }

  /// Carries out the requests in the ring, in batches: the answers of a batch, and the notices of
  /// its changes, are sent together, so that the client wakes up once for all of them.
  /// - Returns: whether there was a request.
  func serveRing() throws(ProtocolError) -> Bool {
    let isReady = try state.withLock { state throws(ProtocolError) in
      guard state.ring?.isEmpty == false else { return false }
      try state.ring?.take()
      return true
    }
    guard isReady else { return false }
    while try serveBatch() {}
    return true
  }

  /// The most requests of a batch. The client reads none of their changes before the last of them
  /// is carried out.
  private static let mostInBatch = 32

  /// - Returns: whether there may be more.
  private func serveBatch() throws(ProtocolError) -> Bool {
    state.withLock { $0.isBatch = true }
    defer { endBatch() }
    for _ in 0..<Self.mostInBatch {
      let next = try state.withLock { state throws(ProtocolError) in try state.ring?.next() }
      guard let next else { return false }
      try serve(next)
    }
    return true
  }

  /// Sends what the batch has to send, and has the store forget the changes that are over.
  private func endBatch() {
    let answered = state.withLock { state in
      state.isBatch = false
      flush(&state)
      defer { state.answered = [] }
      return state.isDelivered ? state.answered : []
    }
    for origin in answered { server.places.noteAnswered(origin) }
  }
}

extension Connection.State {
  fileprivate var hasRingRequests: Bool { ring?.isEmpty == false && !hasEnded && !isFull }
}
