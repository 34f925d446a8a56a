/// Where values of a domain are kept: the rows of the search list without the domain.
public enum Place: String, Sendable, CaseIterable {
  /// The administrator's lists: what they hold is forced.
  case managed
  /// `-key value` arguments of this process; they have no domain.
  case arguments
  /// Current user, current host.
  case host
  /// Current user, any host: where writes go.
  case user
  /// Any user, current host.
  case anyUser = "any-user"
  /// Registered defaults of this process.
  case registered

  /// Whether its lists are the machine's, which every user reads.
  public var isEverybodys: Bool { self == .managed || self == .anyUser }
}

/// A domain in one place: what one property list, or one volatile table, holds.
public struct Location: Hashable, Sendable {
  /// Where.
  public let place: Place
  /// Which domain.
  public let domain: DomainName

  /// A domain in a place.
  public init(_ place: Place, _ domain: DomainName) {
    self.place = place
    self.domain = domain
  }

  /// What `user.prefs.source` shows in a domain that found a key here: the place, or its global
  /// form where the key is inherited from the global domain, or the suite that it is inherited from.
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

/// The order in which places are asked for a key; the first that holds it wins.
public enum SearchList {
  /// The locations for a domain, first hit first (NSUserDefaults.h).
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

  /// The places that make a key the domain's own: what a listing of the domain shows.
  public static let ownPlaces: [Place] = [.managed, .host, .user, .anyUser, .registered]

  /// The places whose lists make a domain exist.
  public static let persistentPlaces: [Place] = [.managed, .host, .user, .anyUser]
}
