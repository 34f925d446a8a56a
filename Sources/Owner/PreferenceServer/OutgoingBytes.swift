/// The bytes of messages that wait until the client receives them.
///
/// Not thread-safe.
struct OutgoingBytes {
  /// The bytes, and before them some that were sent.
  private(set) var bytes: [UInt8] = []
  private var sent = 0
  /// Large answers that are not sent as a whole yet: where each ends in `bytes`, and its size.
  private var largeAnswers: [(end: Int, size: Int)] = []

  /// An answer of more bytes than this is a list that the client has asked for.
  private static let large = 1 << 20

  /// Bytes that may wait. While there are more, the client's requests are not received.
  static let most = 64 << 20

  var isWaiting: Bool { sent < bytes.count }

  /// Whether more than `most` bytes wait.
  var isFull: Bool { bytes.count - sent > Self.most }

  /// Whether more than `most` bytes wait beside large answers, of which there are no more than
  /// requests: the client does not receive what it is sent.
  var isOverfull: Bool {
    let answers = largeAnswers.reduce(0) { $0 + min($1.size, $1.end - sent) }
    return bytes.count - sent - answers > Self.most
  }

  var next: ArraySlice<UInt8> { bytes[sent...] }

  /// Adds a message. Cost: O(message) on average; O(1) if nothing waits.
  mutating func append(_ message: [UInt8], isAnswer: Bool) {
    if !isWaiting {
      (bytes, sent) = (message, 0)
    } else {
      if sent > bytes.count / 2 { removeSent() }
      bytes += message
    }
    if isAnswer, message.count > Self.large { largeAnswers.append((bytes.count, message.count)) }
  }

  private mutating func removeSent() {
    bytes.removeFirst(sent)
    for index in largeAnswers.indices { largeAnswers[index].end -= sent }
    sent = 0
  }

  /// Notes that so many of the next bytes were sent.
  mutating func didSend(_ count: Int) {
    sent += count
    largeAnswers.removeAll { $0.end <= sent }
    if !isWaiting { removeAll() }
  }

  mutating func removeAll() { self = OutgoingBytes() }
}
