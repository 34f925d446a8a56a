import PreferenceModel
import PropertyList
import SystemCalls

/// The directory of a domain: it has a file for each key of the domain, and scratch files.
final class DomainDirectory: Directory {
  let domain: DomainName
  var listing: ListingState

  /// - Parameter listing: what was known of the entries under the domain's former name.
  init(_ domain: DomainName, _ listing: ListingState = ListingState()) {
    (self.domain, self.listing) = (domain, listing)
  }

  var subject: String { domain.string }
  var scratchParent: ScratchPath.Parent { .domain(domain) }
  var names: ListingPlan.Names { .keys(of: domain) }

  func keyPath(_ name: String, _ engine: any Engine) throws(TreeError) -> KeyPath? {
    switch NameCodec.decode(name) {
    case .key(let key): return KeyPath(domain: domain, key: key)
    case .shortened:
      let keys = try asTreeError { () throws(EngineError) in
        try engine.keys(of: domain).union(engine.inheritedKeys(of: domain))
      }
      guard let key = keys.first(where: { NameCodec.encode($0) == name }) else { return nil }
      // A key of its own: this one may lie in the block of its list.
      return KeyPath(domain: domain, key: Key(key.string))
    case .none: return NameCodec.keyOfEscaped(name).map { KeyPath(domain: domain, key: $0) }
    case .scratch:
      let key = Key(name)
      guard NameCodec.patternName(of: key) != nil,
        (try? engine.resolve(key, in: domain)) != nil
      else { return nil }
      return KeyPath(domain: domain, key: key)
    }
  }
}
