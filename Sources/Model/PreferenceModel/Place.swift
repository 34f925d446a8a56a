/// A place where values of a domain are kept: a row of the search list, without the domain.
public enum Place: Hashable, Sendable {
  /// The administrator's settings for the user of the store. The keys that they have are forced.
  case ownManaged
  /// The administrator's settings for every user of the machine. The keys that they have are
  /// forced.
  case managed
  /// The administrator's settings for another user, by that user's name. They are no part of this
  /// store's search list.
  case managedFor(String)
  /// The `-key value` arguments of this process; they belong to no domain.
  case arguments
  /// The keys that are the same on every machine of the user.
  case cloud
  /// What this host knows of the records of the cloud. It is no part of the search list: the
  /// program that carries changes to the server and back keeps it, in the transactions that change
  /// `cloud`.
  case cloudRecords
  /// Current user, current host.
  case host
  /// Current user, any host. Writes go here, except for keys of the cloud, and those that the host
  /// place holds.
  case user
  /// Any user, current host.
  case anyUser
  /// What the packages of the machine give as defaults, in lists that are never written.
  case vendor
  /// The schemas of domains: what their keys are (`PreferenceSchemas`). A location of it holds the
  /// schema itself. The search list does not ask for its keys, but for the defaults that it gives.
  case schema
  /// The values of a language, by its name in `AppleLanguages`: names of days, formats and so on.
  case language(String)
  /// The registered defaults of this process.
  case registered

  /// Whether the place's lists are the machine's, and not in a directory of the user's.
  public var isMachineWide: Bool { hasAdditions || self == .schema }

  /// Whether the place's values are kept in lists.
  public var isPersistent: Bool { hasPreferences || self == .cloudRecords }

  /// Whether the place's lists have preferences of some user, and not what this host notes of them.
  public var hasPreferences: Bool { hasAdditions || isOwn }

  /// Whether the keys of the place are forced in this store.
  public var isForced: Bool { self == .ownManaged || self == .managed }

  /// Whether the place is one of the administrator's, for this user, for another one or for all.
  /// Only these have configuration profiles.
  public var isManaged: Bool { if case .managedFor = self { true } else { isForced } }

  /// Whether the place has files.
  public var hasFiles: Bool { isPersistent || self == .schema }

  /// Whether the place's files are never written.
  public var isFixed: Bool { self == .vendor || self == .schema }

  /// Whether files beside the place's lists add values to it (`PlaceAdditions`).
  public var hasAdditions: Bool { isManaged || self == .anyUser || self == .vendor }

  /// The places whose keys are forced, the one that wins first.
  public static let forced: [Place] = [.ownManaged, .managed]

  /// The places that the user's changes go to, the one that wins first.
  public static let own: [Place] = [.cloud, .host, .user]

  /// The places whose lists are the machine's and force nothing, the one that wins first.
  public static let shared: [Place] = [.anyUser, .vendor]

  /// Whether the user's changes may go to the place.
  public var isOwn: Bool { self == .cloud || self == .host || self == .user }
}

// Not RawRepresentable: its == and hash(into:) would make the name of the place for each look-up.
extension Place {
  private static let others = "managed-for:"
  private static let language = "language:"

  /// The name of the place in the journal, in messages and in texts, e.g. `any-user` or
  /// `managed-for:ada`.
  public var rawValue: String {
    switch self {
    case .ownManaged: "own-managed"
    case .managed: "managed"
    case .managedFor(let user): Self.others + user
    case .arguments: "arguments"
    case .cloud: "cloud"
    case .cloudRecords: "cloud-records"
    case .host: "host"
    case .user: "user"
    case .anyUser: "any-user"
    case .vendor: "vendor"
    case .schema: "schema"
    case .language(let name): Self.language + name
    case .registered: "registered"
    }
  }

  /// Creates the place with that name; nil if no place has it.
  public init?(rawValue name: String) {
    switch name {
    case "user": self = .user
    case "host": self = .host
    case "cloud": self = .cloud
    case "cloud-records": self = .cloudRecords
    case "any-user": self = .anyUser
    case "vendor": self = .vendor
    case "schema": self = .schema
    case "managed": self = .managed
    case "own-managed": self = .ownManaged
    case "arguments": self = .arguments
    case "registered": self = .registered
    case _ where name.hasPrefix(Self.others):
      let user = String(name.dropFirst(Self.others.count))
      guard Self.isUserName(user) else { return nil }
      self = .managedFor(user)
    case _ where name.hasPrefix(Self.language):
      self = .language(String(name.dropFirst(Self.language.count)))
    default: return nil
    }
  }

  /// Whether the text can be a user's name, and thus the name of a directory of managed lists.
  public static func isUserName(_ text: String) -> Bool {
    !text.isEmpty && text != "." && text != ".." && text.utf8.count <= 255
      && !text.utf8.contains(0x2F) && !text.utf8.contains(0)
  }
}

/// A domain in one place: the contents of one property list, or of one volatile table.
public struct Location: Hashable, Sendable {
  /// The place.
  public let place: Place
  /// The domain.
  public let domain: DomainName

  /// Creates the location of a domain in a place.
  public init(_ place: Place, _ domain: DomainName) {
    self.place = place
    self.domain = domain
  }

  /// The text of `user.prefs.source` for a key of `domain` that was found here: the place, its
  /// global form where the key is inherited from the global domain, or the suite that it is
  /// inherited from. Both managed places of the search list are `managed`.
  public func source(seenFrom domain: DomainName) -> String {
    if place == .ownManaged { return Place.managed.rawValue }
    guard self.domain != domain else { return place.rawValue }
    guard self.domain == .global else { return "suite:\(self.domain)" }
    switch place {
    case .ownManaged, .managed, .managedFor, .arguments, .cloud, .cloudRecords, .language,
      .registered:
      return place.rawValue
    case .host: return "global-host"
    case .user: return "global"
    case .anyUser: return "any-user-global"
    case .vendor: return "vendor-global"
    case .schema: return "schema-global"
    }
  }
}

extension Location: CustomStringConvertible {
  /// e.g. "com.example.app (user)".
  public var description: String { "\(domain) (\(place.rawValue))" }
}

/// The order in which the places are asked for a key. The first that holds the key wins.
public enum SearchList {
  /// The locations that are asked for a domain's keys, in order (NSUserDefaults.h), without suites.
  public static func locations(for domain: DomainName) -> [Location] {
    forced(domain) + [Location(.arguments, .global)] + stored(domain, suites: [])
      + registered(domain)
  }

  /// The locations that can force a key of the domain, the one that wins first: the beginning of
  /// the search list, before the arguments.
  public static func forced(_ domain: DomainName) -> [Location] {
    if domain == .global { return forcedGlobally }
    return [
      Location(.ownManaged, domain), Location(.managed, domain), Location(.ownManaged, .global),
      Location(.managed, .global),
    ]
  }

  /// The locations that are asked where a change of a key of the domain goes: those that can force
  /// the key, then those of the user that precede the user's list.
  static func beforeUser(_ domain: DomainName) -> [Location] {
    forced(domain) + [Location(.cloud, domain), Location(.host, domain)]
  }

  private static let forcedGlobally = [
    Location(.ownManaged, .global), Location(.managed, .global),
  ]

  /// The locations that are kept in lists and that an argument precedes, in order.
  public static func stored(_ domain: DomainName, suites: [DomainName]) -> [Location] {
    let inherited: [DomainName] = domain == .global ? [] : [.global]
    let added: [DomainName] = suites.reversed()
    let own = ([domain] + added + inherited).flatMap { name in
      Place.own.map { Location($0, name) }
    }
    let shared = [domain] + inherited
    return own + Place.shared.flatMap { place in shared.map { Location(place, $0) } }
  }

  /// The locations of registered defaults, in order: the end of the search list. The languages
  /// stand before them.
  public static func registered(_ domain: DomainName) -> [Location] {
    let global = Location(.registered, .global)
    return domain == .global ? [global] : [Location(.registered, domain), global]
  }

  /// The locations of the schemas whose defaults are asked for last.
  public static func schemas(_ domain: DomainName) -> [Location] {
    let global = Location(.schema, .global)
    return domain == .global ? [global] : [Location(.schema, domain), global]
  }

  /// The places that are kept in lists. A domain exists where one of them has it.
  public static let persistentPlaces: [Place] = Place.forced + Place.own + Place.shared
}
