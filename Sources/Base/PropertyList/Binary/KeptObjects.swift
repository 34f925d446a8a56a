/// Pairs of a binary list's root dictionary that cannot be read, with every object that they refer
/// to, as they are written to another list.
///
/// The bytes of an object stay as they are, but for the numbers by which a container refers to
/// objects, and their width. An object of a type that is not known here ends where the next one
/// begins. One that is cut off, or lies outside of the list, lies outside of the new one, too: no
/// reader could tell what it was.
struct KeptObjects {
  struct Object {
    /// Its bytes, up to the references.
    var bytes: Range<Int>
    /// The numbers in the new list, or nil for no object there.
    var references: [Int?] = []
    /// Whether it is cut off, or outside of the list.
    var isOutside: Bool { bytes.isEmpty }
  }

  /// The list that has the objects. Its bytes must be valid while this is in use.
  let list: BinaryList
  /// The objects by their numbers in the new list, from 1 on. The root is number 0.
  private(set) var objects: [Object] = []
  /// The pairs, by the numbers of the new list.
  private(set) var pairs: [(key: Int?, value: Int?)] = []
  /// How many bytes the objects have together.
  private(set) var size = 0
  /// The numbers in the new list, by those in the old one.
  private var numbers: [Int: Int]
  /// The objects that are still to be looked at, by their numbers in the old list.
  private var waiting: [Int] = []

  /// Nil where the objects overlap, so that together they are larger than the list. Cost: O(n log n).
  /// - Parameter pairs: by the numbers of the list; nil means a number that is out of range.
  init?(_ list: BinaryList, _ pairs: [(key: Int?, value: Int?)]) {
    self.list = list
    numbers = [list.layout.top: 0]
    self.pairs = pairs.map { (number($0.key), number($0.value)) }
    let starts = list.starts
    // `objects` grows in the order of the numbers, which `waiting` has.
    while waiting.count > objects.count {
      guard let object = object(waiting[objects.count], starts) else { return nil }
      objects.append(object)
    }
  }

  /// The number in the new list.
  private mutating func number(_ old: Int?) -> Int? {
    guard let old else { return nil }
    if let known = numbers[old] { return known }
    waiting.append(old)
    numbers[old] = waiting.count
    return waiting.count
  }

  /// Nil where it takes more bytes than the objects of a list can have.
  private mutating func object(_ old: Int, _ starts: [Int]) -> Object? {
    guard let offset = try? list.offset(of: old), let shape = list.shape(at: offset) else {
      return Object(bytes: 0..<0)
    }
    let end = shape.end ?? starts.next(after: offset) ?? list.layout.offsetTable
    // Its count is cut off. In front of another object it could become that object's first bytes.
    let (type, low) = (list.bytes[offset] >> 4, list.bytes[offset] & 15)
    let isCounted = low == 15 && (0x4...0x7 ~= type || 0xA...0xD ~= type)
    if shape.end == nil, end == offset + 1, isCounted { return Object(bytes: 0..<0) }
    size += end - offset + shape.references * list.layout.referenceSize
    guard size <= list.bytes.count else { return nil }
    var object = Object(bytes: offset..<end)
    for index in 0..<shape.references {
      let old = try? list.reference(at: end + index * list.layout.referenceSize)
      object.references.append(number(old))
    }
    return object
  }
}

extension BinaryList {
  /// The numbers of a pair's key and value; nil for one that is out of range.
  func references(_ position: Int, of root: (start: Int, count: Int)) -> (key: Int?, value: Int?) {
    let place = root.start + position * layout.referenceSize
    return (
      try? reference(at: place), try? reference(at: place + root.count * layout.referenceSize)
    )
  }

  /// The offsets of the objects, sorted.
  fileprivate var starts: [Int] {
    (0..<layout.objectCount).compactMap { try? offset(of: $0) }.sorted()
  }

  /// Where an object's references begin, or where it ends if it has none, and how many there are;
  /// nil where it is cut off. The end of an object of a type that is not known is nil.
  fileprivate func shape(at offset: Int) -> (end: Int?, references: Int)? {
    let (type, low) = (bytes[offset] >> 4, Int(bytes[offset] & 15))
    let counted = offset + 1 < layout.offsetTable && bytes[offset + 1] >> 4 == 1
    let fixed: Int
    switch type {
    case 0x1, 0x2: fixed = 1 + 1 << low
    case 0x3 where low == 3: fixed = 9
    case 0x8: fixed = 2 + low
    case 0x4...0x7, 0xA...0xD:
      // Something else than a count.
      if low == 15, !counted { return (nil, 0) }
      let isContainer = type >= 0xA
      let unit = isContainer ? layout.referenceSize : type == 6 ? 2 : 1
      guard let (start, count) = try? extent(at: offset, unit: type == 0xD ? 2 * unit : unit)
      else { return nil }
      let references = type == 0xD ? 2 * count : count
      return isContainer ? (start, references) : (start + count * unit, 0)
    default: return (nil, 0)
    }
    return fixed <= layout.offsetTable - offset ? (offset + fixed, 0) : nil
  }
}

extension [Int] {
  /// The first number of a sorted array that is larger.
  fileprivate func next(after number: Int) -> Int? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] > number { high = middle } else { low = middle + 1 }
    }
    return low < count ? self[low] : nil
  }
}
