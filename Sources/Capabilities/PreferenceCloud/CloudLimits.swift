import PreferenceModel
import PropertyList

/// How much a user may keep in the cloud.
public enum CloudLimits {
  /// Bytes that a value may have, as a binary property list: 1 MB.
  public static let largestValue = 1_000_000
  /// Bytes that all values of a user may have together: 16 MiB.
  public static let largestTotal = 16 << 20

  /// Bytes that a key's name may have in UTF-8.
  public static let longestName = 1000

  /// The refusal of a value that is too large (EFBIG).
  static func tooLarge(_ key: Key, _ domain: DomainName) -> EngineError {
    EngineError(
      .system(.fileTooLarge), domain: domain, key: key,
      "in the cloud a value has at most 1 MB and a name 1000 bytes; "
        + "prefs cloud remove keeps it on this machine alone")
  }

  /// The refusal of a value for which there is no room (EDQUOT).
  static func overQuota(_ key: Key, _ domain: DomainName) -> EngineError {
    EngineError(
      .system(.overQuota), domain: domain, key: key,
      "the values in the cloud would have more than 16 MiB together; remove some")
  }
}

/// Counts the bytes of the values in the cloud, as binary property lists, with their names. It is
/// not thread-safe.
public struct CloudUsage: Sendable {
  private var sizes: [DomainName: [Key: Int]] = [:]
  /// Bytes of all values.
  public private(set) var total = 0

  /// Counts nothing yet.
  public init() {}

  /// Counts a domain. Cost: O(its values).
  public mutating func add(_ domain: DomainName, _ values: ValueDictionary) {
    for (key, value) in values { note(key, domain, Self.size(key, value)) }
  }

  /// Returns the usage after the items. Throws where the user's items exceed the limits: EFBIG for
  /// a value, EDQUOT for the whole, unless it becomes smaller; and `.changedMeanwhile` for a splice
  /// that does not fit the value. Cost: O(the values that are
  /// changed, and the number of keys of their domains).
  /// - Parameters:
  ///   - items: all that change in one transaction.
  ///   - isUsers: whether the item is a change of the user's; others bring what the server has.
  ///   - find: a key's value now.
  package func after(
    _ items: [Changeset.Item], isUsers: (Int) -> Bool,
    find: (Key, Location) throws(EngineError) -> StoredValue?
  ) throws(EngineError) -> CloudUsage {
    var after = self
    var last: (key: Key, domain: DomainName)?
    for (index, item) in items.enumerated() where item.location.place == .cloud {
      let domain = item.location.domain
      switch item.edit {
      case .set(let key, let value, _):
        after.note(key, domain, Self.size(key, value))
      case .splice(let key, let splice):
        guard let old = try find(key, item.location), old.accepts(splice) else {
          throw .changedMeanwhile(key, domain)
        }
        after.note(key, domain, Self.size(key, old.applying(splice, time: .now).value))
      case .remove(let key): after.note(key, domain, nil)
      case .removeDomain: after.remove(domain)
      case .describe, .createDomain: continue
      }
      guard isUsers(index), let key = item.edit.key, let size = after.sizes[domain]?[key] else {
        continue
      }
      let name = key.string.utf8.count
      if size - name > CloudLimits.largestValue || name > CloudLimits.longestName {
        throw CloudLimits.tooLarge(key, domain)
      }
      last = (key, domain)
    }
    if let last, after.total > CloudLimits.largestTotal, after.total > total {
      throw CloudLimits.overQuota(last.key, last.domain)
    }
    return after
  }

  private mutating func note(_ key: Key, _ domain: DomainName, _ size: Int?) {
    total += (size ?? 0) - (sizes[domain]?[key] ?? 0)
    sizes[domain, default: [:]][key] = size
  }

  private mutating func remove(_ domain: DomainName) {
    total -= (sizes.removeValue(forKey: domain) ?? [:]).values.reduce(0, +)
  }

  private static func size(_ key: Key, _ value: Value) -> Int {
    Document.binary(value).count + key.string.utf8.count
  }
}
