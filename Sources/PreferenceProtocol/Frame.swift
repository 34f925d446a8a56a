import PreferenceModel

/// How messages lie in the stream between a client and the owner of a store: length (32 bits, of
/// what follows it), kind (8 bits), number of the request that it is or answers (64 bits; 0: none),
/// payload. Numbers are little-endian.
public struct Frame: Sendable {
  /// Which message.
  public let kind: UInt8
  /// Which request it is, or answers.
  public let number: UInt64
  /// The rest.
  public let payload: ArraySlice<UInt8>

  private static let headerSize = 13

  /// The bytes of a frame.
  package static func bytes(
    _ kind: UInt8, _ number: UInt64, _ write: (inout ByteWriter) -> Void
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(0 as UInt32)
    writer.append(kind)
    writer.append(number)
    write(&writer)
    writer.overwrite(at: 0, with: UInt32(clamping: writer.bytes.count - 4))
    return writer.bytes
  }
}

/// A stream that is no sequence of messages: its other end is no program of ours, or of another
/// version.
public struct ProtocolError: Error, CustomStringConvertible {
  /// What was wrong.
  public let description: String

  package init(_ description: String) { self.description = description }
}

/// Takes frames out of a stream as its bytes come.
public struct FrameReader: Sendable {
  /// Bytes that have come and are not taken yet.
  public var bytes: [UInt8] = []
  private var start = 0
  private let largest: Int

  /// - Parameter largest: bytes of a frame; a larger one ends the stream.
  public init(largest: Int) { self.largest = largest }

  /// The next frame that is whole; nil: more bytes are needed. Cost: O(1), but for large rests.
  public mutating func next() throws(ProtocolError) -> Frame? {
    var reader = ByteReader(bytes[start...])
    guard let length = try? reader.number(UInt32.self) else { return shrink() }
    guard length >= 9, Int(length) <= largest else {
      throw ProtocolError("a frame of \(length) bytes; 9 to \(largest) are taken")
    }
    guard let kind = try? reader.number(UInt8.self), let number = try? reader.number(UInt64.self),
      let payload = try? reader.take(Int(length) - 9)
    else { return shrink() }
    start += 4 + Int(length)
    return Frame(kind: kind, number: number, payload: payload)
  }

  /// What was taken goes.
  private mutating func shrink() -> Frame? {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    return nil
  }
}
