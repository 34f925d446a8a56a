// Objects that are quick to decode. A packed dictionary decodes them at each look-up.

extension BinaryList {
  /// The longest text or data that is decoded at each look-up, in bytes or UTF-16 units.
  private static let longest = 512
  /// The same in a container.
  private static let longestItem = 64
  /// The most items, keys included, of a container that is decoded at each look-up.
  private static let mostItems = 16

  /// Reads the object, if it is a scalar, a short text or data, or a container of a few of them.
  /// Throws where `BinaryReader.object` throws; an object that is costly to decode is not looked at
  /// further.
  /// - Returns: how many values it counts for (`BinaryReader.weight`); nil if it is costly to
  ///   decode.
  func lightWeight(at offset: Int) throws(FormatError) -> Int? {
    switch bytes[offset] >> 4 {
    case 0xA, 0xD: try containerWeight(at: offset)
    default: try leafWeight(at: offset, longest: Self.longest)
    }
  }

  @inline(__always)
  private func leafWeight(at offset: Int, longest: Int) throws(FormatError) -> Int? {
    switch bytes[offset] >> 4 {
    case 0...3:
      _ = try scalar(at: offset)
      return 1
    case 4:
      let count = try extent(at: offset, unit: 1).count
      return count <= longest ? 1 + count / 64 : nil
    case 5:
      guard try extent(at: offset, unit: 1).count <= longest else { return nil }
      return try ascii(at: offset).map { 1 + $0.count / 64 }
    case 6:
      guard try extent(at: offset, unit: 2).count <= longest else { return nil }
      return 1 + (try decode(at: offset).weight)
    default: return nil
    }
  }

  private func containerWeight(at offset: Int) throws(FormatError) -> Int? {
    let (start, keys, count) = try container(at: offset)
    guard count <= Self.mostItems else { return nil }
    var weight = 1
    for index in 0..<count {
      let item = try item(start, index)
      if index < keys, bytes[item] & 0xF0 != 0x50 { return nil }
      guard let more = try leafWeight(at: item, longest: Self.longestItem) else { return nil }
      weight += more
    }
    return weight
  }

  /// Where the references of an array or dictionary begin, how many of them are keys, which come
  /// first, and how many there are.
  private func container(
    at offset: Int
  ) throws(FormatError) -> (start: Int, keys: Int, count: Int) {
    guard bytes[offset] >> 4 == 0xD else {
      let (start, count) = try extent(at: offset, unit: layout.referenceSize)
      return (start, 0, count)
    }
    let (start, count) = try extent(at: offset, unit: 2 * layout.referenceSize)
    return (start, count, 2 * count)
  }

  /// The offset of the object to which a reference of a container refers.
  private func item(_ start: Int, _ index: Int) throws(FormatError) -> Int {
    try self.offset(of: reference(at: start + index * layout.referenceSize))
  }

  /// Returns an object that has a light weight.
  func light(at offset: Int) throws(FormatError) -> Value {
    switch bytes[offset] >> 4 {
    case 0...3: return try scalar(at: offset)
    case 0xA:
      let (start, _, count) = try container(at: offset)
      return .array(
        try [Value](capacity: count) { items throws(FormatError) in
          for index in 0..<count { items.append(try light(at: item(start, index))) }
        })
    case 0xD:
      let (start, keys, _) = try container(at: offset)
      var maker = KeyMaker()
      return .dictionary(
        try ValueDictionary(firstOf: keys) { index throws(FormatError) in
          let offset = try item(start, index)
          guard let name = try ascii(at: offset) else { throw failure(offset, "an odd key") }
          return (maker.key(name), try light(at: item(start, keys + index)))
        })
    default: return try decode(at: offset).value
    }
  }
}
