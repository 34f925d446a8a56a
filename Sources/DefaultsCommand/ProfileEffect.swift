import PreferenceModel
import PreferenceSearch
import PropertyList

/// `profiles check --effect`: what a profile would change here, for the user who asks.
enum ProfileEffect {
  /// Prints a line for each key that would have another value, or could not be changed any more.
  /// - Parameter report: what the owner says of the profile (`OwnerReport.check`).
  /// - Returns: the exit status.
  static func show(_ report: ValueDictionary) throws(Refusal) -> Int32 {
    do throws(EngineError) {
      let engine = try StoreView().engine
      for row in ["forced", "joined", "once"] {
        guard case .dictionary(let domains)? = report[Key(row)] else { continue }
        for case (let name, .dictionary(let settings)) in domains.sorted(by: { $0.key < $1.key }) {
          let domain = DomainName(name.string)
          for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
            let found = try engine.resolve(key, in: domain)
            let line = row == "once" ? once(value, over: found) : forced(value, over: found)
            if let line { Output.write(line: "\(domain) \(key): \(line)") }
          }
        }
      }
      return 0
    } catch {
      throw Refusal("Could not say what the profile would change", error)
    }
  }

  private static func forced(_ value: Value, over found: Resolution?) -> String? {
    guard let found else { return "(none) -> \(text(value)) (managed), cannot be changed" }
    let source = found.location.place.rawValue
    if found.isForced {
      guard found.value != value else { return nil }
      let setter = found.stored.metadata.setter
      guard case .profile(let profile)? = setter else {
        let list = setter.map { "\($0)" } ?? "a managed list"
        return "\(text(found.value)) stays: \(list) forces it, and wins over profiles"
      }
      return "\(text(found.value)) (profile \(profile)) or \(text(value)): "
        + "the last profile by name wins"
    }
    return "\(text(found.value)) (\(source)) -> \(text(value)) (managed), cannot be changed"
  }

  private static func once(_ value: Value, over found: Resolution?) -> String? {
    if let found, found.isForced { return "\(text(found.value)) stays: it is forced" }
    guard found?.value != value else { return nil }
    let old = found.map { "\(text($0.value)) (\($0.location.place.rawValue))" } ?? "(none)"
    return "\(old) -> \(text(value)), once; it can be changed then"
  }

  private static func text(_ value: Value) -> String { ValueDescription.line(of: value, false) }
}
