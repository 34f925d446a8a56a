import PreferenceModel
import PropertyList

/// The names in the control directory, and what they stand for.
struct ControlNames {
  /// Whether the mount shows the machine's places alone.
  let isMachine: Bool
  /// Knows the users, domains and keys that directories list.
  let service: any ControlService

  /// The item that the root of the tree is.
  var root: ControlItem { isMachine ? .places : .root }

  /// The fixed names of a directory.
  private func fixed(_ directory: ControlItem) -> [(String, ControlItem)] {
    switch directory {
    case .root:
      [
        ("places", .places), ("domains", .documents), ("suites", .suites), ("search", .searches),
        ("explain", .explanations), ("describe", .descriptions), ("schemas", .schemas),
        ("declared", .declarations(nil)),
        ("history", .histories), ("at", .moments),
        ("status.json", .status), ("apply", .apply),
      ]
    case .places:
      (isMachine ? [Place.managed, .anyUser] : Self.places).map { ($0.rawValue, .place($0)) }
        + [("managed-for", .users)] + (isMachine ? [("declared", .declaredPlaces)] : [])
    case .declaredPlaces:
      [Place.managed, .anyUser].map { ($0.rawValue, .declarations($0)) }
    default: []
    }
  }

  private static let places: [Place] = [
    .managed, .arguments, .cloud, .host, .user, .anyUser, .vendor, .registered,
  ]

  /// The names that a directory lists, in no order. Throws where the service does. Cost: for users,
  /// domains and keys, a listing of directories.
  func entries(_ directory: ControlItem) throws(TreeError) -> [(name: String, item: ControlItem)] {
    try asTreeError { () throws(EngineError) in
      switch directory {
      case .users:
        try service.managedUsers().filter(Self.isUser).map {
          (NameCodec.encode(Key($0)), .place(service.managedPlace(of: $0)))
        }
      case .searches:
        try service.preferences.domains().map { (NameCodec.encode($0.key), .search($0)) }
      case .explanations:
        try service.preferences.domains().map { (NameCodec.encode($0.key), .explained($0)) }
      case .explained(let domain):
        try service.preferences.keys(of: domain).map {
          (NameCodec.encode($0), .explanation(domain, $0))
        }
      case .descriptions:
        try service.schemaDomains().map { (NameCodec.encode($0.key), .described($0)) }
      case .described(let domain):
        service.schemaKeys(of: domain).map { (NameCodec.encode($0), .description(domain, $0)) }
      case .schemas:
        try service.schemaDomains().flatMap { domain in
          [(".plist", false), (".json", true)].map {
            (NameCodec.encode(domain.key) + $0, .schema(domain, isJSON: $1))
          }
        }
      case .histories:
        try service.history.changedDomains().map { (NameCodec.encode($0.key), .changed($0)) }
      case .changed(let domain):
        try service.history.changedKeys(of: domain).map {
          (NameCodec.encode($0), .changes(domain, $0))
        }
      case .moments: try days()
      case .moment(let number):
        try past(number).domains().map { (NameCodec.encode($0.key), .pastDomain(number, $0)) }
      case .pastDomain(let number, let domain):
        try past(number, domain).keys(of: domain).map {
          (NameCodec.encode($0), .pastKey(number, domain, $0))
        }
      default: fixed(directory).map { (name: $0.0, item: $0.1) }
      }
    }
  }

  /// What the name stands for; nil if it stands for nothing. A name of `explain/<domain>` always
  /// stands for a key: whether a place holds it, the report says. Cost: for domains, that of
  /// `entries`.
  func item(_ name: String, in directory: ControlItem) throws(TreeError) -> ControlItem? {
    let meaning = NameCodec.decode(name)
    let key: Key? = if case .key(let found) = meaning { found } else { nil }
    switch directory {
    case .root where Self.isHistory(name) && service.history.isOff: return nil
    case .users:
      guard let user = key?.string, Self.isUser(user) else { return nil }
      return .place(service.managedPlace(of: user))
    case .moments:
      return try asTreeError { () throws(EngineError) in
        try service.history.number(ofMoment: name).map { .moment($0) }
      }
    case .schemas where !name.hasSuffix(".plist") && !name.hasSuffix(".json"): return nil
    // A key that is not listed opens by its name.
    case .explained(let domain): if let key { return .explanation(domain, key) }
    case .described(let domain): if let key { return .description(domain, key) }
    case .changed(let domain): if let key { return .changes(domain, key) }
    case .pastDomain(let number, let domain): if let key { return .pastKey(number, domain, key) }
    // There may be many, and a listing of them would be made for each.
    case .moment(let number) where key != nil && key.map(NameCodec.encode) == name:
      let domain = DomainName(key?.string ?? "")
      let isThere = try asTreeError { () throws(EngineError) in try past(number).hasDomain(domain) }
      return isThere ? .pastDomain(number, domain) : nil
    default: break
    }
    switch meaning {
    case .key, .shortened: break
    // Tools look for such names everywhere, and a listing may have to wait for a list.
    case .scratch, .none: if directory != .schemas { return nil }
    }
    // By bytes: strings are equal, too, where one has another spelling of a character.
    if let listed = try entries(directory).first(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
      return listed.item
    }
    return key.flatMap { unlisted(DomainName($0.string), in: directory) }
  }

  /// The domain that a request about the name needs; nil: none, or that of the directory.
  func domainNeeded(for name: String, in directory: ControlItem) -> DomainName? {
    // Whether it is a domain that only defaults make is known when its schema is in memory.
    if directory == .searches || directory == .explanations,
      case .key(let key) = NameCodec.decode(name)
    {
      return DomainName(key.string)
    }
    return (try? item(name, in: directory))?.domain
  }

  /// What the name of a domain stands for that only defaults make, of a schema or registered ones:
  /// such a domain is not listed, but opens by its name.
  private func unlisted(_ domain: DomainName, in directory: ControlItem) -> ControlItem? {
    switch directory {
    case .searches: service.preferences.isUnmade(domain) ? .search(domain) : nil
    case .explanations: service.preferences.isUnmade(domain) ? .explained(domain) : nil
    default: nil
    }
  }

  /// Whether the name in the control directory leads to the history or the past, which are there
  /// unless the settings say that nothing is kept.
  static func isHistory(_ name: String) -> Bool { name == "history" || name == "at" }

  /// What must be in memory for a request about an item, or about a name in it; nil: nothing.
  func historyNeeded(_ item: ControlItem, _ name: [UInt8]?) -> HistoryNeed? {
    let name = name.flatMap { String(utf8: $0[...]) }
    switch item {
    case .root: return name.map(Self.isHistory) == true ? .moments : nil
    case .moments: return .moments
    case .histories, .changed, .changes: return .changes
    case .moment(let number):
      if case .key(let key)? = name.map(NameCodec.decode) {
        return .moment(number, DomainName(key.string))
      }
      // The domain that a shortened name means is known when the names of the domains are.
      guard let name, case .pastDomain(_, let domain)? = try? self.item(name, in: item) else {
        return .moment(number, nil)
      }
      return .moment(number, domain)
    case .pastDomain(let number, let domain), .pastKey(let number, let domain, _):
      return .moment(number, domain)
    default: return nil
    }
  }

  /// The engine of a moment, for the names of its domains or for one of them.
  func past(_ number: UInt64, _ domain: DomainName? = nil) throws(EngineError) -> any Engine {
    try service.history.engine(ofMoment: number, domain)
  }

  /// The days with changes that can be looked up.
  private func days() throws(EngineError) -> [(name: String, item: ControlItem)] {
    try service.history.days().map { (name: $0.key, item: .moment($0.value)) }
  }

  /// Whether the name is one that a user may have. Every such name can be looked up, because an
  /// administrator manages users whom this machine does not know yet.
  private static func isUser(_ name: String) -> Bool {
    guard let first = name.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: ".") else {
      return false
    }
    return name.utf8.count <= 64 && Place.isUserName(name) && name.utf8.allSatisfy { $0 >= 0x20 }
  }
}
