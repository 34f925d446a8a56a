import PreferenceModel
import PropertyList

/// Shows everything in the search list that sets a key, the one that counts first: lists, profiles,
/// and the volatile places.
public struct Explanation {
  private let search: SearchEngine
  private let layout: StoreLayout
  private let owner: any ReportService

  /// - Parameter owner: is asked which configuration profiles set the key.
  public init(_ search: SearchEngine, _ layout: StoreLayout, _ owner: any ReportService) {
    (self.search, self.layout, self.owner) = (search, layout, owner)
  }

  /// Two lines for each holder: its place and value, and the file that it comes from; nil if no
  /// place holds the key. The value that counts has an asterisk.
  /// - Parameter isAppleText: as of `ValueDescription.line`.
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
        // The profiles changed at this moment.
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

  private func profiles() throws(EngineError) -> [ValueDictionary] {
    guard case .array(let all) = try owner.report(.profiles) else { return [] }
    return all.compactMap { if case .dictionary(let report) = $0 { report } else { nil } }
  }

  /// What profiles set the key to in the location, the one that wins first.
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

  /// The path of the list that holds the location.
  private func file(_ location: Location) -> String {
    location.place.isPersistent ? layout.path(location) : "(this process)"
  }
}
