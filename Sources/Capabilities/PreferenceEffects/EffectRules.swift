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

    fileprivate init(_ name: String, _ place: Place, _ value: Value, _ objection: String?) {
      (self.name, self.place, self.value) = (name, place, value)
      do throws(EffectProblem) {
        if let objection { throw EffectProblem(objection) }
        (rule, problem) = (try EffectRule(name, value), nil)
      } catch {
        (rule, problem) = (nil, error.sentence)
      }
    }
  }

  /// Where rules are read. They run commands, so they are inherited from no other domain, and what
  /// comes from other machines, from programs' arguments or with packages counts for nothing.
  public static let locations = (Place.forced + [.host, .user, .anyUser]).map {
    Location($0, EffectRule.domain)
  }

  /// Whether a change may change the rules. Where the domain is locked, other rules count.
  public static func areChanged(by changeset: Changeset) -> Bool {
    changeset.concerns { locations.contains($0) || DomainLocks.locations.contains($0) }
  }

  /// Reads all rules, by name; of several of one name the first place's counts. A list that cannot
  /// be read has none, unless it may force some. Waits for disks.
  /// - Returns: the rules, and whether all lists could be read: only then is a rule gone that is not
  ///   among them.
  public static func read(
    _ places: some StoredPlaces, _ layout: StoreLayout
  ) throws(EngineError) -> (entries: [Entry], isComplete: Bool) {
    var entries: [String: Entry] = [:]
    var isComplete = true
    let general = layout.isUsersOwn ? nil : "rules count only in the user's own store"
    for location in try places.counting(locations, in: EffectRule.domain) {
      var names: [Key] = []
      do throws(EngineError) {
        names = try places.keys(at: location)
      } catch  where error.reason == .unreadable && !location.place.isForced {
        isComplete = false
      }
      for key in names where entries[key.string] == nil {
        guard let stored = try places.find(key, at: location) else { continue }
        let objection = general ?? objection(to: stored, at: location, layout)
        entries[key.string] = Entry(key.string, location.place, stored.value, objection)
      }
    }
    let sorted = entries.values.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    return (sorted, isComplete)
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
