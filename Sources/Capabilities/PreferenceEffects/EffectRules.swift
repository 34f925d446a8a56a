import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// The rules of a store.
public enum EffectRules {
  /// A rule, or what could be one.
  public struct Entry: Sendable {
    /// The key.
    public let name: String
    /// The place that it is from.
    public let place: Place
    /// Its value.
    public let value: Value
    /// The rule; nil if it does not count.
    public let rule: EffectRule?
    /// Why it does not count.
    public let problem: String?
  }

  /// Where rules are read. They run commands, so they are inherited from no other domain, and what
  /// comes from other machines, from programs' arguments or with packages counts for nothing.
  public static let locations = (Place.forced + [.host, .user, .anyUser]).map {
    Location($0, EffectRule.domain)
  }

  /// Whether a change may change the rules.
  public static func areChanged(by changeset: Changeset) -> Bool {
    changeset.concerns { $0.domain == EffectRule.domain && locations.contains($0) }
  }

  /// Whether there is a rule that counts. Waits for disks.
  public static func areThere(
    _ places: some StoredPlaces, _ layout: StoreLayout
  ) throws(EngineError) -> Bool {
    for location in locations where try !names(at: location, places).isEmpty {
      return try read(places, layout).contains { $0.rule != nil }
    }
    return false
  }

  /// Reads all rules, by name; of several of one name the first place's counts. A list that cannot
  /// be read has none, unless it may force some. Waits for disks.
  public static func read(
    _ places: some StoredPlaces, _ layout: StoreLayout
  ) throws(EngineError) -> [Entry] {
    var entries: [String: Entry] = [:]
    let general = layout.isUsersOwn ? nil : "rules count only in the user's own store"
    for location in locations {
      for key in try names(at: location, places) where entries[key.string] == nil {
        guard let stored = try places.find(key, at: location) else { continue }
        let objection = general ?? objection(to: stored, at: location, layout)
        entries[key.string] = entry(key.string, location.place, stored.value, objection)
      }
    }
    return entries.values.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  /// Whether all lists of rules can be read. A rule that `read` does not have is gone only then.
  /// Waits for disks.
  public static func areReadable(_ places: some StoredPlaces) throws(EngineError) -> Bool {
    for location in locations {
      do throws(EngineError) {
        _ = try places.keys(at: location)
      } catch  where error.reason == .unreadable {
        return false
      }
    }
    return true
  }

  private static func names(
    at location: Location, _ places: some StoredPlaces
  ) throws(EngineError) -> [Key] {
    do throws(EngineError) {
      return try places.keys(at: location)
    } catch  where error.reason == .unreadable && !location.place.isForced {
      return []
    }
  }

  private static func entry(
    _ name: String, _ place: Place, _ value: Value, _ objection: String?
  ) -> Entry {
    do throws(EffectProblem) {
      if let objection { throw EffectProblem(objection) }
      let rule = try EffectRule(name, value)
      return Entry(name: name, place: place, value: value, rule: rule, problem: nil)
    } catch {
      return Entry(name: name, place: place, value: value, rule: nil, problem: error.sentence)
    }
  }

  /// Why the value may be somebody else's: root with a user's HOME runs none of that user's rules.
  private static func objection(
    to stored: StoredValue, at location: Location, _ layout: StoreLayout
  ) -> String? {
    switch stored.metadata.setter {
    case .file(let path)?, .group(let path)?: return EffectTrust.objection(to: path)
    case .profile?:
      let directory = layout.directory(location.place)
      let names = ((try? Files.names(in: directory)) ?? nil) ?? []
      return names.filter { $0.hasSuffix(".mobileconfig") }.lazy.compactMap {
        EffectTrust.objection(to: "\(directory)/\($0)")
      }.first
    case nil: return EffectTrust.objection(to: layout.path(location))
    }
  }
}
