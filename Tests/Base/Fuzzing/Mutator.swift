/// Changes bytes at random, for tests without a coverage-guided fuzzer. The same seed gives the
/// same changes.
public struct Mutator {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  /// Returns the next random number (SplitMix64).
  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns a random number from 0 to one less than the bound.
  public mutating func number(below bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

  /// Byte values at which readers tend to break.
  private static let edges: [UInt8] = [0, 1, 0x0F, 0x10, 0x13, 0x5F, 0x7F, 0x80, 0xD1, 0xDF, 0xFF]

  /// Returns the bytes with one to eight changes; some of them copy a part of the other input.
  public mutating func mutate(_ bytes: [UInt8], with other: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0...number(below: 8) { change(&bytes, other) }
    return bytes
  }

  private mutating func change(_ bytes: inout [UInt8], _ other: [UInt8]) {
    guard !bytes.isEmpty else {
      bytes = other
      return
    }
    let start = number(below: bytes.count)
    let end = min(bytes.count, start + 1 + number(below: 16))
    switch number(below: 8) {
    case 0: bytes[start] = UInt8(truncatingIfNeeded: next())
    case 1: bytes[start] ^= 1 << UInt8(number(below: 8))
    case 2: bytes[start] = Self.edges[number(below: Self.edges.count)]
    case 3: bytes.removeSubrange(start..<end)
    case 4: bytes.insert(contentsOf: Array(bytes[start..<end]), at: number(below: bytes.count))
    case 5: bytes.insert(UInt8(truncatingIfNeeded: next()), at: start)
    case 6: bytes.removeSubrange(end...)
    default:
      let from = number(below: other.count)
      let part = other[from..<min(other.count, from + 1 + number(below: 32))]
      bytes.replaceSubrange(start..<end, with: part)
    }
  }
}
