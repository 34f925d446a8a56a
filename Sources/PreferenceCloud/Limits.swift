import PropertyList

/// How much a user may keep in the cloud.
public enum CloudLimits {
  /// Bytes that a value may have, as a binary property list: 1 MB.
  public static let largestValue = 1_000_000
  /// Bytes that all values of a user may have together: 16 MiB.
  public static let largestTotal = 16 << 20

  /// Why a change is refused.
  public enum Refusal: Error, Equatable {
    /// EFBIG: the value of this key is too large.
    case tooLarge(CloudKey)
    /// EDQUOT: all values together would be too large.
    case overQuota
  }
}

extension CloudState {
  /// Bytes that the values of this host have, as binary property lists. Cost: O(values).
  public var byteCount: Int {
    keys.reduce(0) { $0 + (value($1).map { Document.binary($0).count } ?? 0) }
  }

  /// Throws if the change would exceed the limits. A change that makes the whole smaller is always
  /// allowed. Cost: O(values).
  public func check(_ changes: [CloudKey: Value?]) throws(CloudLimits.Refusal) {
    var growth = 0
    for (key, new) in changes {
      let size = new.map { Document.binary($0).count } ?? 0
      if size > CloudLimits.largestValue { throw .tooLarge(key) }
      growth += size - (value(key).map { Document.binary($0).count } ?? 0)
    }
    if growth > 0, byteCount + growth > CloudLimits.largestTotal { throw .overQuota }
  }
}
