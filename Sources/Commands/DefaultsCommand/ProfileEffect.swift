import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess

/// `profiles check --effect`: what a profile changes here, for the user who asks or another one. Of
/// a profile that is installed, what its removal changes.
struct ProfileEffect {
  private let engine: SearchEngine
  private let explanation: Explanation
  private let user: String
  /// The profile's identifier.
  private let profile: String

  private init(_ profile: String, _ user: String?) throws(EngineError) {
    let store = try StoreView(ofUser: user)
    let layout = StoreLayout(store.surroundings)
    engine = store.engine
    explanation = Explanation(engine, layout, store.places)
    self.user = layout.userName.isEmpty ? "the user" : layout.userName
    self.profile = profile
  }

  /// Prints a line for each key that would have another value, or could not be changed any more.
  /// - Parameters:
  ///   - report: what the owner says of the profile (`OwnerReport.check`).
  ///   - user: the user; nil means the one who asks.
  /// - Returns: the exit status.
  static func show(_ report: ValueDictionary, _ user: String?) throws(Refusal) -> Int32 {
    try Refusal.wrapping("Could not say what the profile would change") {
      () throws(EngineError) in
      guard case .string(let profile)? = report["identifier"] else { return 0 }
      let effect = try ProfileEffect(profile, user)
      for row in ["forced", "joined", "once"] {
        guard case .dictionary(let domains)? = report[Key(row)] else { continue }
        for case (let name, .dictionary(let settings)) in domains.sorted(by: { $0.key < $1.key }) {
          let domain = DomainName(name.string)
          if row == "joined" {
            for key in settings.keys.sorted() {
              Output.write(line: "\(domain) \(key): gets the profile's elements, cannot be changed")
            }
          } else {
            try effect.show(settings, domain, isOnce: row == "once")
          }
        }
      }
      return 0
    }
  }

  private func show(
    _ settings: ValueDictionary, _ domain: DomainName, isOnce: Bool
  ) throws(EngineError) {
    for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
      let found = try engine.resolve(key, in: domain)
      let line: String?
      if isOnce {
        line = once(value, over: found)
      } else if let found, found.isForced {
        line = try forced(value, key, domain, over: found)
      } else {
        line = "\(text(found)) -> \(text(value)) (managed), cannot be changed"
      }
      if let line { Output.write(line: "\(domain) \(key): \(line)") }
    }
  }

  /// The line of a key that is forced already.
  private func forced(
    _ value: Value, _ key: Key, _ domain: DomainName, over found: Resolution
  ) throws(EngineError) -> String? {
    let setter = found.stored.metadata.setter
    guard case .profile(let other)? = setter else {
      let list = setter.map { "\($0)" } ?? "a managed list"
      return found.value == value
        ? nil : "\(text(found.value)) stays: \(list) forces it, and wins over profiles"
    }
    if other == profile {
      let label = "(profile \(profile))"
      let rest = try explanation.holders(of: key, in: domain).first { !$0.file.hasSuffix(label) }
      let old = rest.map { "\(text($0.value)) (\($0.source))" } ?? "(none)"
      return "\(text(found.value)) (managed) -> \(old) when the profile is removed"
    }
    guard found.value != value else { return nil }
    return "\(text(found.value)) (profile \(other)) or \(text(value)): "
      + "the last profile by name wins"
  }

  private func once(_ value: Value, over found: Resolution?) -> String? {
    if let found, found.isForced { return "\(text(found.value)) stays: it is forced" }
    guard found?.value != value else { return nil }
    return "\(text(found)) -> \(text(value)), once; \(user) can change it"
  }

  private func text(_ found: Resolution?) -> String {
    found.map { "\(text($0.value)) (\($0.location.place.rawValue))" } ?? "(none)"
  }

  private func text(_ value: Value) -> String { ValueDescription.line(of: value, false) }
}
