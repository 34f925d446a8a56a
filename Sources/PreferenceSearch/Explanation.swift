import PreferenceModel
import PropertyList

/// Shows everything in the search list that sets a key: lists, profiles, languages, and the
/// volatile places. The one that counts comes first.
///
/// Threads: any; it has no lock.
public struct Explanation {
  private let search: SearchEngine
  private let layout: StoreLayout
  private let owner: any ReportService

  /// Creates an explanation of the keys of one store.
  /// - Parameters:
  ///   - search: the search list, whose places are asked.
  ///   - layout: the paths of the lists.
  ///   - owner: is asked which configuration profiles set a key.
  public init(_ search: SearchEngine, _ layout: StoreLayout, _ owner: any ReportService) {
    (self.search, self.layout, self.owner) = (search, layout, owner)
  }

  /// Returns two lines for each list, profile or volatile place that has the key: the place with
  /// the value, and the file that it comes from. The value that counts has an asterisk. Returns nil
  /// if no place has the key.
  ///
  /// Throws if a list that would have to be asked cannot be read, or the owner does not answer.
  /// Cost: a look-up in each place; where a managed place has the key, one request to the owner.
  /// - Parameter isAppleText: whether everything but ASCII is escaped, as Apple's command does it.
  public func text(
    of key: Key, in domain: DomainName, isAppleText: Bool
  ) throws(EngineError) -> String? {
    var text = ""
    var reports: [ValueDictionary]?
    for location in try search.locations(for: domain) {
      guard let found = try search.find(key, at: location, for: domain) else { continue }
      var setters: [(value: Value, file: String)] = []
      if found.metadata.profile == nil { setters.append((found.value, file(location))) }
      if location.place.hasProfiles {
        if reports == nil { reports = try profiles() }
        setters += Self.setters(of: key, at: location, reports ?? [])
        // No report names the key: it is the output of joined arrays, or the profiles have just
        // changed.
        if setters.isEmpty { setters = [(found.value, "(a profile)")] }
      }
      for setter in setters {
        let line = ValueDescription.line(of: setter.value, isAppleText)
        let source = location.source(seenFrom: domain)
        let forced = location.place.isForced ? " (forced)" : ""
        let mark = text.isEmpty ? "*" : " "
        text += "\(mark) \(source)\(forced): \(line)\n    \(setter.file)\n"
      }
    }
    return text.isEmpty ? nil : text
  }

  /// The owner's reports on profiles, in the order in which they are applied.
  private func profiles() throws(EngineError) -> [ValueDictionary] {
    guard case .array(let all) = try owner.report(.profiles) else { return [] }
    return all.compactMap { if case .dictionary(let report) = $0 { report } else { nil } }
  }

  /// The values that profiles force for the key in the location, the one that wins first.
  private static func setters(
    of key: Key, at location: Location, _ profiles: [ValueDictionary]
  ) -> [(value: Value, file: String)] {
    profiles.reversed().compactMap { profile in
      guard profile["place"] == .string(location.place.rawValue), profile["over"] == nil,
        case .dictionary(let domains)? = profile["forced"],
        case .dictionary(let values)? = domains[location.domain.key], let value = values[key],
        case .string(let file)? = profile["file"], case .string(let name)? = profile["identifier"]
      else { return nil }
      return (value, "\(file) (profile \(name))")
    }
  }

  /// The path of the location's list; a remark where the place has no lists.
  private func file(_ location: Location) -> String {
    location.place.isPersistent ? layout.path(location) : "(this process)"
  }
}
