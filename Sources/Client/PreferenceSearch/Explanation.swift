import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Shows everything in the search list that sets a key, the one that counts first: lists, fragments,
/// profiles, and the volatile places.
public struct Explanation {
  private let search: SearchEngine
  private let layout: StoreLayout
  private let owner: any ReportService
  /// Whether the disk may be asked for the path of a schema.
  private let asksDisk: Bool

  /// Something that sets a key.
  public struct Holder: Equatable, Sendable {
    /// The row of the search list, e.g. `user` or `global`.
    public let source: String
    /// Whether it is forced.
    public let isForced: Bool
    /// Whether the domain is locked: nothing of the user's is among the holders.
    public let isLocked: Bool
    /// Whether it is a list in the container of a Mac's sandboxed program.
    public let isContained: Bool
    /// What it sets.
    public let value: Value
    /// The list, fragment or profile that it is from, or `(this process)`.
    public let file: String
  }

  /// - Parameters:
  ///   - owner: is asked which profiles and fragments set the key.
  ///   - asksDisk: whether the caller may wait for a disk: for the path of a schema.
  public init(
    _ search: SearchEngine, _ layout: StoreLayout, _ owner: any ReportService,
    asksDisk: Bool = true
  ) {
    (self.search, self.layout, self.owner) = (search, layout, owner)
    self.asksDisk = asksDisk
  }

  /// Everything that sets the key, in the order of the search list: the first one counts.
  public func holders(of key: Key, in domain: DomainName) throws(EngineError) -> [Holder] {
    var holders: [Holder] = []
    var reports: [ValueDictionary]?
    let isLocked = try search.isLocked(domain)
    for location in try search.locations(for: domain) {
      guard let found = try search.find(key, at: location, for: domain) else { continue }
      let (file, isContained) = list(location)
      var setters = [(value: found.value, file: file)]
      if found.metadata.isOfFile {
        setters = try fragments(at: location, key, found)
      } else if location.place.isManaged {
        if reports == nil { reports = try rows(of: .profiles) }
        let (winner, others) = Self.setters(of: key, at: location, found, reports ?? [])
        if let winner { setters[0].file = winner }
        setters += others
      }
      let source = location.source(seenFrom: domain)
      holders += setters.map {
        Holder(
          source: source, isForced: location.place.isForced, isLocked: isLocked,
          isContained: isContained, value: $0.value, file: $0.file)
      }
    }
    return holders
  }

  /// Two lines for each holder: its place and value, and the file that it comes from. The value
  /// that counts has an asterisk.
  /// - Parameter isAppleText: as of `ValueDescription.line`.
  public static func text(of holders: [Holder], isAppleText: Bool) -> String {
    var text = ""
    for holder in holders {
      let line = ValueDescription.line(of: holder.value, isAppleText)
      let facts = [
        (holder.isContained, "container"), (holder.isForced, "forced"), (holder.isLocked, "locked"),
      ]
      let words = facts.filter(\.0).map(\.1)
      let forced = words.isEmpty ? "" : " (\(words.joined(separator: ", ")))"
      let mark = text.isEmpty ? "*" : " "
      // Names of suites, profiles and files are from outside.
      text += "\(mark) \(holder.source)\(forced): \(line)".printable() + "\n"
      text += "    \(holder.file)".printable() + "\n"
    }
    return text
  }

  private func rows(of report: OwnerReport) throws(EngineError) -> [ValueDictionary] {
    guard case .array(let all) = try owner.report(report) else { return [] }
    return all.compactMap(\.dictionary)
  }

  /// The fragments that set the key at the location, and its list if that does, the one that counts
  /// first.
  private func fragments(
    at location: Location, _ key: Key, _ found: StoredValue
  ) throws(EngineError) -> [(value: Value, file: String)] {
    let all = fragments().filter { $0.location == location }.compactMap { fragment in
      fragment.values[key].map { (value: $0, file: fragment.file) }
    }
    // They may have changed since.
    guard case .file(let path)? = found.metadata.setter, all.isEmpty else { return all }
    return [(found.value, path)]
  }

  /// The fragments of all locations, and what each sets; of a location the one that counts first.
  /// Where a fragment sets a key that the list has, the list follows.
  package func fragments() -> [(location: Location, file: String, values: ValueDictionary)] {
    // An owner of an earlier version does not know them.
    let rows = (try? rows(of: .fragments)) ?? []
    return rows.compactMap { row in
      guard case .string(let name)? = row["place"], let place = Place(rawValue: name),
        case .string(let domain)? = row["domain"], case .string(let file)? = row["file"],
        case .dictionary(let values)? = row["values"]
      else { return nil }
      return (Location(place, DomainName(domain)), file, values)
    }
  }

  /// The file of the profile that the value is from (nil if it is from a list), and what other
  /// profiles set the key to, the last one first.
  private static func setters(
    of key: Key, at location: Location, _ found: StoredValue, _ profiles: [ValueDictionary]
  ) -> (winner: String?, others: [(value: Value, file: String)]) {
    var winner: String?
    var others: [(value: Value, file: String)] = []
    for profile in profiles.reversed() {
      guard profile["place"] == .string(location.place.rawValue), profile["over"] == nil,
        case .string(let file)? = profile["file"], case .string(let name)? = profile["identifier"]
      else { continue }
      let label = "\(file) (profile \(name))"
      if found.metadata.setter == .profile(name), winner == nil {
        // The value may be joined from several profiles, so it need not be the profile's own.
        winner = label
      } else if case .dictionary(let domains)? = profile["forced"],
        case .dictionary(let values)? = domains[location.domain.key], let value = values[key]
      {
        others.append((value, label))
      }
    }
    if winner == nil, case .profile(let name)? = found.metadata.setter {
      winner = "(profile \(name))"
    }
    if case .group(let path)? = found.metadata.setter { winner = path }
    return (winner, others)
  }

  /// The path of the list that holds the location, and whether it lies in a container.
  private func list(_ location: Location) -> (file: String, isContained: Bool) {
    guard location.place.hasFiles else { return ("(this process)", false) }
    guard asksDisk || !layout.needsDisk(for: location) else {
      let isSchema = location.place == .schema
      return (isSchema ? "(the schema)" : "(a list, perhaps in a container)", false)
    }
    let (path, container) = layout.list(at: location)
    return (path, container != nil)
  }
}
