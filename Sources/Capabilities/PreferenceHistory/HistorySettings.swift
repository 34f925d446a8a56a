import PreferenceModel
import PropertyList

/// The key `History` of the domain `prefsfs`: what the history keeps, and for how long. An
/// administrator can force it.
public struct HistorySettings: Equatable, Sendable {
  /// The key of the preference.
  public static let key: Key = "History"

  /// The locations that may have the key; the first that has it counts.
  package static var locations: [Location] {
    SearchList.locations(for: .settings).filter {
      $0.domain == .settings && SearchList.persistentPlaces.contains($0.place)
    }
  }

  /// `Days`: for how many days changes are kept.
  public var days = 400
  /// `Megabytes`: how many MiB all files may have together.
  public var megabytes = 64
  /// `Off`: nothing is kept, and what was kept is removed.
  public var isOff = false
  /// `Never`: of which keys no values are kept; patterns by domain, as `Keys` of the cloud has
  /// them.
  public var never = KeyPatterns()

  /// Whether no values are kept at all, because the settings cannot be read or understood.
  private var keepsNoValues = false

  /// The settings that count while those of the user or the administrator cannot be read: what
  /// happens is kept, and no value is.
  public static var unknown: HistorySettings {
    var settings = HistorySettings()
    settings.keepsNoValues = true
    return settings
  }

  /// The settings that count where nobody has set any.
  public init() {}

  /// Reads the value of the key. A number of another type counts as not set. `Off` may be what
  /// `defaults write` makes of YES or 1. Where `Never` is not understood, no values are kept:
  /// somebody has meant some of them.
  public init(_ value: Value?) {
    guard case .dictionary(let values)? = value else { return }
    if let days = values["Days"]?.signed, days > 0 { self.days = Int(clamping: days) }
    if let size = values["Megabytes"]?.signed, size > 0 {
      megabytes = Int(clamping: min(size, 1 << 20))
    }
    isOff = Self.isTrue(values["Off"])
    never = KeyPatterns(values["Never"])
    keepsNoValues = !KeyPatterns.areUnderstood(values["Never"])
  }

  private static func isTrue(_ value: Value?) -> Bool {
    switch value {
    case .boolean(let flag)?: flag
    case .integer(let number)?: number != 0
    case .string(let text)?: ["yes", "true", "1"].contains(text.lowercased())
    default: false
    }
  }

  /// Whether every value of the key is kept: it has no secret's name, no pattern names it, and it is
  /// not of the ledger of declarations, whose documents may have such keys.
  public func keeps(_ key: Key, of domain: DomainName) -> Bool {
    mayKeep(key, of: domain) && !Secret.isName(key)
  }

  /// Whether the value is kept, all of it. A boolean, a number or a date is no secret. A container is
  /// kept whole if no member has a secret's name.
  public func keeps(_ value: Value, of key: Key, in domain: DomainName) -> Bool {
    !hides(value, of: key, in: domain) && value.withoutSecrets == nil
  }

  /// Whether nothing of the value is kept.
  package func hides(_ value: Value, of key: Key, in domain: DomainName) -> Bool {
    !mayKeep(key, of: domain) || value.maybeSecret && Secret.isName(key)
  }

  /// Returns what is kept of a value: without the members that have a secret's name; nil means
  /// nothing.
  package func kept(of value: Value, _ key: Key, in domain: DomainName) -> Value? {
    hides(value, of: key, in: domain) ? nil : value.withoutSecrets ?? value
  }

  /// Returns what the history has of a value of the key. Cost: O(its bytes).
  package func recorded(
    _ stored: StoredValue, of key: Key, in domain: DomainName
  ) -> RecordedValue {
    guard !hides(stored.value, of: key, in: domain) else { return .notKept }
    let whole = RecordedValue(stored)
    guard case .list = whole, let parts = stored.value.withoutSecrets else { return whole }
    return .parts(Document.binary(parts))
  }

  private func mayKeep(_ key: Key, of domain: DomainName) -> Bool {
    !keepsNoValues && domain != .declared && !never.contain(key, of: domain)
  }
}
