import Glibc

extension [Key: Value] {
  /// The items in the order of their keys' UTF-8 bytes.
  ///
  /// Sorts numbers, not the items, and compares in one buffer that holds the bytes of all keys:
  /// half of a list's writing time went into counting references while items changed places.
  var sortedItems: [(key: Key, value: Value)] {
    let items = Array(self)
    guard items.count > 1 else { return items }
    var bytes: [UInt8] = []
    var ends: [Int] = [0]
    bytes.reserveCapacity(items.count * 24)
    ends.reserveCapacity(items.count + 1)
    for item in items {
      item.key.string.withBytes { bytes.append(contentsOf: $0) }
      ends.append(bytes.count)
    }
    var order = Array(0..<items.count)
    bytes.withUnsafeBytes { bytes in
      ends.withUnsafeBufferPointer { ends in
        order.sort { left, right in
          let (leftCount, rightCount) = (ends[left + 1] - ends[left], ends[right + 1] - ends[right])
          guard let base = bytes.baseAddress else { return false }
          let result = memcmp(
            base + ends[left], base + ends[right], Swift.min(leftCount, rightCount))
          return result != 0 ? result < 0 : leftCount < rightCount
        }
      }
    }
    return order.map { items[$0] }
  }
}
