import PropertyList

/// The name of a domain, which is a named set of keys, e.g. `com.example.app`. Names are equal when
/// their UTF-8 bytes are.
public struct DomainName: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
  /// The name as a key, which compares by bytes.
  public let key: Key

  /// Creates the name from its text.
  public init(_ name: String) { key = Key(name) }

  /// Creates the name from its text.
  public init(stringLiteral value: String) { key = Key(value) }

  /// Creates the name from what people and documents call the domain: the global one has several
  /// names, and the name of a list, with `.plist`, is the name of its domain too.
  package init(named name: String) {
    if name.hasSuffix(".plist"), name.utf8.count > 6 {
      self.init(named: String(name.dropLast(6)))
    } else if Self.globalNames.contains(name) {
      self = .global
    } else {
      self.init(name)
    }
  }

  /// What Apple's `defaults` and CFPreferences call the global domain, beside its name.
  private static let globalNames: Set<String> = [
    "Apple Global Domain", "kCFPreferencesAnyApplication", ".GlobalPreferences", "-g",
    "-globalDomain",
  ]

  /// The name as text.
  public var string: String { key.string }

  /// The global domain, whose keys every other domain inherits.
  public static let global: DomainName = "NSGlobalDomain"

  /// The domain of this program's own settings, which are those of one machine.
  public static let settings: DomainName = "prefsfs"

  /// The domain that has the declarations of a place, and what was there before them.
  public static let declared: DomainName = "prefsfs.declared"

  /// The domain of the settings of the cloud.
  public static let cloudSettings: DomainName = "prefsfs.cloud"

  /// The domain of the rules that say what happens when a value changes.
  public static let effects: DomainName = "prefsfs.effects"

  /// Why documents set keys of the domain only with consent; nil if other keys are meant.
  public var consentReason: String? {
    switch self {
    case .effects: "it sets rules of \(self), which run commands"
    // What was there before a declaration comes back.
    case .declared: "it sets \(self), which brings rules of prefsfs.effects, which run commands"
    // Also to whom a password is sent, and from which file it is read.
    case .cloudSettings: "it sets \(self), which says what leaves this machine, and where to"
    default: nil
    }
  }

  /// Whether keys of the domain may be in the cloud. The settings of this program, `prefsfs` and
  /// `prefsfs.*`, are those of one machine: some of them choose what leaves it, or what it runs.
  public var mayBeInCloud: Bool { self != .settings && !string.utf8.starts(with: "prefsfs.".utf8) }

  /// Whether a list can have the name: it must be usable as a file name, and must not be the file
  /// name of the global domain.
  public var canNameList: Bool {
    key.withBytes { name in
      !name.isEmpty && name.count <= 200 && name.allSatisfy { $0 != 0x2F && $0 != 0 }
    } && self != ".GlobalPreferences" && self != "." && self != ".."
  }

  public static func < (left: DomainName, right: DomainName) -> Bool { left.key < right.key }

  /// See `Key._rawHashValue(seed:)`.
  // swift-format-ignore: NoLeadingUnderscores
  public func _rawHashValue(seed: Int) -> Int { key._rawHashValue(seed: seed) }
}

extension DomainName: CustomStringConvertible {
  /// The name itself.
  public var description: String { string }
}
