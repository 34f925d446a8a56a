import PreferenceModel

/// A message as it lies in the stream between a client and the owner of a store. It has a length
/// (32 bits, of what follows it), a kind (8 bits), the number of the request that it is or answers
/// (64 bits; 0 if none), and a payload. Numbers are little-endian.
///
/// The programs at both ends may be of different versions, so messages grow at their ends alone:
/// - A new field is written behind the others. Its reader gives the value that it has where the
///   message ends before it (`ByteReader.isAtEnd`).
/// - What is behind the fields that a reader knows is ignored.
/// - A request of an unknown kind is refused, and the connection goes on. A message of an unknown
///   kind that answers no request is ignored.
public struct Frame: Sendable {
  /// The kind of the message.
  public let kind: UInt8
  /// The number of the request that the message is, or answers; 0 if there is none.
  public let number: UInt64
  /// The content of the message.
  public let payload: ArraySlice<UInt8>

  private static let headerSize = 13

  /// Returns the bytes of a frame, whose payload `write` appends.
  package static func bytes(
    _ kind: UInt8, _ number: UInt64, _ write: (inout ByteWriter) -> Void
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(0 as UInt32)
    writer.append(kind)
    writer.append(number)
    write(&writer)
    writer.overwrite(at: 0, with: UInt32(clamping: writer.count - 4))
    return writer.bytes
  }
}

/// The stream is not a sequence of messages: its other end is not one of our programs, or is one of
/// another version.
public struct ProtocolError: Error, CustomStringConvertible {
  /// What was wrong.
  public let description: String

  package init(_ description: String) { self.description = description }
}

/// Splits a stream into frames as its bytes come.
public struct FrameReader: Sendable {
  /// The bytes that have come; append to them. Those of frames that were returned are dropped
  /// later.
  public var bytes: [UInt8] = []
  private var start = 0
  private let largest: Int

  /// - Parameter largest: how many bytes a frame may have; a larger one is an error.
  public init(largest: Int) { self.largest = largest }

  /// Removes and returns the next complete frame; nil where more bytes are needed. Cost: O(1), and
  /// O(the rest) where the bytes end in an incomplete frame.
  public mutating func next() throws(ProtocolError) -> Frame? {
    var reader = ByteReader(bytes[start...])
    guard let length = try? reader.number(UInt32.self) else { return shrink() }
    guard length >= 9, Int(length) <= largest else {
      throw ProtocolError("received a frame of \(length) bytes; 9 to \(largest) bytes are accepted")
    }
    guard let kind = try? reader.number(UInt8.self), let number = try? reader.number(UInt64.self),
      let payload = try? reader.removeNext(Int(length) - 9)
    else { return shrink() }
    start += 4 + Int(length)
    return Frame(kind: kind, number: number, payload: payload)
  }

  /// Drops the bytes of frames that were returned.
  private mutating func shrink() -> Frame? {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    return nil
  }
}
