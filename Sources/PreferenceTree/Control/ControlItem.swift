import PreferenceModel
import PropertyList

/// What a name in the control directory stands for.
enum ControlItem: Hashable {
  // Directories.
  /// `.prefs` itself.
  case root
  /// `places`; of a mount of the machine's places, the root.
  case places
  /// `places/managed-for`: the users.
  case users
  /// `search`: a report for each domain.
  case searches
  /// `explain`: a directory for each domain.
  case explanations
  /// `explain/<domain>`: a report for each key.
  case explained(DomainName)

  // Reports: files whose text is made when somebody asks for it.
  /// `search/<domain>`: the search list of the domain.
  case search(DomainName)
  /// `explain/<domain>/<key>`: every place that holds the key.
  case explanation(DomainName, Key)
  /// `status.json`: the state of the mount, the store and its owner.
  case status

  // Roots of other trees.
  /// `places/<place>`, or `places/managed-for/<user>`: one place, with its domains.
  case place(Place)
  /// `domains`: each domain of the user's place as documents.
  case documents
  /// `suites`: the kept suites of each domain.
  case suites

  /// Whether the item is a file whose text is made when somebody asks for it.
  var isReport: Bool {
    switch self {
    case .search, .explanation, .status: true
    default: false
    }
  }

  /// The domain whose lists a request about the item needs.
  var domain: DomainName? {
    switch self {
    case .explained(let domain), .search(let domain), .explanation(let domain, _): domain
    default: nil
    }
  }
}

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
        ("explain", .explanations), ("status.json", .status),
      ]
    case .places:
      (isMachine ? [Place.managed, .anyUser] : Self.places).map { ($0.rawValue, .place($0)) }
        + [("managed-for", .users)]
    default: []
    }
  }

  private static let places: [Place] = [
    .managed, .arguments, .cloud, .host, .user, .anyUser, .registered,
  ]

  /// The names that a directory lists, in no order. Throws where the service does. Cost: for users,
  /// domains and keys, a listing of directories.
  func entries(_ directory: ControlItem) throws(TreeError) -> [(name: String, item: ControlItem)] {
    try asTreeError { () throws(EngineError) in
      switch directory {
      case .users:
        try service.managedUsers().filter(Self.isUser).map {
          ($0, .place(service.managedPlace(of: $0)))
        }
      case .searches: try service.domains().map { (NameCodec.encode($0.key), .search($0)) }
      case .explanations: try service.domains().map { (NameCodec.encode($0.key), .explained($0)) }
      case .explained(let domain):
        try service.keys(of: domain).map { (NameCodec.encode($0), .explanation(domain, $0)) }
      default: fixed(directory).map { (name: $0.0, item: $0.1) }
      }
    }
  }

  /// What the name stands for; nil if it stands for nothing. A name of `explain/<domain>` always
  /// stands for a key: whether a place holds it, the report says.
  func item(_ name: String, in directory: ControlItem) throws(TreeError) -> ControlItem? {
    switch directory {
    case .users: return Self.isUser(name) ? .place(service.managedPlace(of: name)) : nil
    case .searches, .explanations:
      guard case .key(let key) = NameCodec.decode(name) else { return nil }
      let domain = DomainName(key.string)
      let isThere = try asTreeError { () throws(EngineError) in
        try service.domains().contains(domain)
      }
      guard isThere else { return nil }
      return directory == .searches ? .search(domain) : .explained(domain)
    case .explained(let domain):
      guard case .key(let key) = NameCodec.decode(name) else { return nil }
      return .explanation(domain, key)
    default: return fixed(directory).first { $0.0 == name }?.1
    }
  }

  /// Whether the name is one that a user may have. Every such name can be looked up, because an
  /// administrator manages users whom this machine does not know yet.
  private static func isUser(_ name: String) -> Bool {
    guard let first = name.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: ".") else {
      return false
    }
    return name.utf8.count <= 64 && Place.isUserName(name)
      && name.utf8.allSatisfy { byte in
        Character(Unicode.Scalar(byte)).isLetter || Character(Unicode.Scalar(byte)).isNumber
          || "_-.@$".utf8.contains(byte)
      }
  }
}
