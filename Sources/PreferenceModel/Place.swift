/// A place where values of a domain are kept: a row of the search list, without the domain.
public enum Place: String, Sendable, CaseIterable {
  /// The administrator's lists. The keys that they hold are forced.
  case managed
  /// The `-key value` arguments of this process; they belong to no domain.
  case arguments
  /// Current user, current host.
  case host
  /// Current user, any host. Writes go here, except for keys that the host place holds.
  case user
  /// Any user, current host.
  case anyUser = "any-user"
  /// The registered defaults of this process.
  case registered

  /// Whether the place's lists are the machine's, which every user reads.
  public var isEverybodys: Bool { self == .managed || self == .anyUser }
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
  /// inherited from.
  public func source(seenFrom domain: DomainName) -> String {
    guard self.domain != domain else { return place.rawValue }
    guard self.domain == .global else { return "suite:\(self.domain)" }
    switch place {
    case .managed, .arguments, .registered: return place.rawValue
    case .host: return "global-host"
    case .user: return "global"
    case .anyUser: return "any-user-global"
    }
  }
}

extension Location: CustomStringConvertible {
  /// e.g. "com.example.app (user)".
  public var description: String { "\(domain) (\(place.rawValue))" }
}

/// The order in which the places are asked for a key. The first that holds the key wins.
public enum SearchList {
  /// The locations that are asked for a domain's keys, in order (NSUserDefaults.h).
  /// - Parameter suites: the domains that were added to it, first added first.
  public static func locations(
    for domain: DomainName, suites: [DomainName] = []
  ) -> [Location] {
    let isGlobal = domain == .global
    var list = [Location(.managed, domain)]
    if !isGlobal { list.append(Location(.managed, .global)) }
    list += [Location(.arguments, .global), Location(.host, domain), Location(.user, domain)]
    for suite in suites.reversed() { list += [Location(.host, suite), Location(.user, suite)] }
    if !isGlobal { list += [Location(.host, .global), Location(.user, .global)] }
    list.append(Location(.anyUser, domain))
    if !isGlobal { list.append(Location(.anyUser, .global)) }
    list.append(Location(.registered, domain))
    if !isGlobal { list.append(Location(.registered, .global)) }
    return list
  }

  /// The places that are kept in lists. A domain exists where one of them has it.
  public static let persistentPlaces: [Place] = [.managed, .host, .user, .anyUser]
}
