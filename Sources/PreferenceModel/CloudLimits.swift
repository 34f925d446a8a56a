import PropertyList

/// How much a user may keep in the cloud.
public enum CloudLimits {
  /// Bytes that a value may have, as a binary property list: 1 MB.
  public static let largestValue = 1_000_000
  /// Bytes that all values of a user may have together: 16 MiB.
  public static let largestTotal = 16 << 20

  /// The refusal of a value that is too large (EFBIG).
  package static func tooLarge(_ key: Key, _ domain: DomainName) -> EngineError {
    EngineError(
      .system(.fileTooLarge), domain: domain, key: key,
      "a value in the cloud has at most 1 MB; defaults cloud remove keeps it on this machine alone")
  }

  /// The refusal of a value for which there is no room (EDQUOT).
  package static func overQuota(_ key: Key, _ domain: DomainName) -> EngineError {
    EngineError(
      .system(.overQuota), domain: domain, key: key,
      "the values in the cloud would have more than 16 MiB together; remove some")
  }
}

/// Counts the bytes of the values in the cloud. One owner has it; it is not thread-safe.
package struct CloudUsage {
  private var sizes: [DomainName: [Key: Int]] = [:]
  /// Bytes of all values.
  package private(set) var total = 0

  /// Counts nothing yet.
  package init() {}

  /// Counts a domain. Cost: O(its values).
  package mutating func add(_ domain: DomainName, _ values: ValueDictionary) {
    for (key, value) in values { note(key, domain, Self.size(value)) }
  }

  /// Throws where the edits, which are the user's, would exceed the limits. A change that makes the
  /// whole smaller is always accepted. Cost: O(the values that are set).
  package func check(_ items: [Changeset.Item]) throws(EngineError) {
    var growth = 0
    for item in items where item.location.place == .cloud {
      guard let key = item.edit.key, let size = Self.size(item.edit) else { continue }
      let domain = item.location.domain
      if size > CloudLimits.largestValue { throw CloudLimits.tooLarge(key, domain) }
      growth += size - (sizes[domain]?[key] ?? 0)
      if growth > 0, total + growth > CloudLimits.largestTotal {
        throw CloudLimits.overQuota(key, domain)
      }
    }
  }

  /// Notes what has changed.
  package mutating func note(_ items: [Changeset.Item]) {
    for item in items where item.location.place == .cloud {
      let domain = item.location.domain
      switch item.edit {
      case .set(let key, _, _), .splice(let key, _):
        note(key, domain, Self.size(item.edit) ?? 0)
      case .remove(let key): note(key, domain, nil)
      case .removeDomain:
        for key in Array((sizes[domain] ?? [:]).keys) { note(key, domain, nil) }
      case .describe, .createDomain: break
      }
    }
  }

  private mutating func note(_ key: Key, _ domain: DomainName, _ size: Int?) {
    total += (size ?? 0) - (sizes[domain]?[key] ?? 0)
    sizes[domain, default: [:]][key] = size
  }

  private static func size(_ edit: Edit) -> Int? {
    switch edit {
    case .set(_, let value, _): size(value)
    case .splice(_, let splice): splice.count
    case .describe, .remove, .createDomain, .removeDomain: nil
    }
  }

  private static func size(_ value: Value) -> Int { Document.binary(value).count }
}
