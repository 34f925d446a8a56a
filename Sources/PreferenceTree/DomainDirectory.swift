import PreferenceModel
import PropertyList
import SystemCalls

/// The directory of a domain: it has a file for each key of the domain, and scratch files.
final class DomainDirectory: FileDirectory {
  let domain: DomainName
  var listing: ListingState

  /// - Parameter listing: what was known of the entries under the domain's former name.
  init(_ domain: DomainName, _ listing: ListingState = ListingState()) {
    (self.domain, self.listing) = (domain, listing)
  }

  var subject: String { domain.string }
  var scratchParent: ScratchPath.Parent { .domain(domain) }

  func listsNeeded(for name: [UInt8]?, _ tree: Tree) -> (domain: DomainName, key: Key?)? {
    // Only a generated text needs the lists of other domains than its directory's.
    guard tree.options.isGenerated, let name, let text = try? NameCodec.validated(name),
      case .key(let key) = NameCodec.decode(text)
    else { return (domain, nil) }
    return (domain, key)
  }

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

  func lookup(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> LookupResult {
    let path = try keyPath(name, tree.engine)
    let found = try path.map { path throws(TreeError) in try tree.lookup(path, now: now) }
    let meaning = NameCodec.decode(name)
    // Only the name that listings show is invalidated whenever the key comes or goes.
    let isOtherName = (meaning == .none || meaning == .scratch) && path != nil
    if case .found(var entry)? = found {
      if isOtherName { entry.isCacheable = false }
      return .found(entry)
    }
    if let scratch = try tree.lookupScratch(ScratchPath(parent: scratchParent, name: name)) {
      return scratch
    }
    // Nobody notes which shortened names of other domains' keys were asked for.
    if isOtherName { return .missing(isCacheable: false) }
    return found ?? .missing(isCacheable: meaning != .shortened)
  }
}
