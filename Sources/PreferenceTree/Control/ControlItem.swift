import PreferenceModel
import PropertyList

/// What a name in the control directory stands for.
enum ControlItem: Hashable {
  // Directories.
  /// `.prefs` itself.
  case root
  /// `places`; of a mount of the machine's places, the root.
  case places
  /// `declared`, in a mount of the machine's places: the places that can be declared.
  case declaredPlaces
  /// `places/managed-for`: the users.
  case users
  /// `search`: a report for each domain.
  case searches
  /// `explain`: a directory for each domain.
  case explanations
  /// `explain/<domain>`: a report for each key.
  case explained(DomainName)

  /// `describe`: a directory for each domain that has a schema.
  case descriptions
  /// `describe/<domain>`: a report for each key of the schema.
  case described(DomainName)
  /// `schemas`: two documents for each domain that has a schema.
  case schemas

  /// `history`: a directory for each domain with changes.
  case histories
  /// `history/<domain>`: a report for each key with changes.
  case changed(DomainName)
  /// `at`: the days with changes.
  case moments
  /// `at/<moment>`: the domains as the change with that number has left them.
  case moment(UInt64)
  /// `at/<moment>/<domain>`: its keys then.
  case pastDomain(UInt64, DomainName)

  // Reports: files whose text is made when somebody asks for it.
  /// `search/<domain>`: the search list of the domain.
  case search(DomainName)
  /// `explain/<domain>/<key>`: every place that holds the key.
  case explanation(DomainName, Key)
  /// `describe/<domain>/<key>`: what the schema says of the key.
  case description(DomainName, Key)
  /// `schemas/<domain>.plist`, and `.json`: the schema, and the same as JSON Schema.
  case schema(DomainName, isJSON: Bool)
  /// `history/<domain>/<key>`: the changes of a key.
  case changes(DomainName, Key)
  /// `at/<moment>/<domain>/<key>`: the value of a key then.
  case pastKey(UInt64, DomainName, Key)
  /// `status.json`: the state of the mount, the store and its owner.
  case status

  /// `apply`: a document that is written to it sets and removes keys of any domains.
  case apply

  // Roots of other trees.
  /// `places/<place>`, or `places/managed-for/<user>`: one place, with its domains.
  case place(Place)
  /// `domains`: each domain of the user's place as documents.
  case documents
  /// `suites`: the kept suites of each domain.
  case suites
  /// `declared`: the declarations of the user; of a mount of the machine's places,
  /// `declared/<place>`: those of a place.
  case declarations(Place?)

  /// Whether the item is a file whose text is made when somebody asks for it.
  var isReport: Bool {
    switch self {
    case .search, .explanation, .description, .schema, .status, .changes, .pastKey: true
    default: false
    }
  }

  /// Whether the item is a file, and not a directory.
  var isFile: Bool { isReport || self == .apply }

  /// Whether it shows the history or the past, which are their user's alone.
  var isPrivate: Bool {
    switch self {
    case .histories, .changed, .changes, .moments: true
    default: moment != nil
    }
  }

  /// The moment that it belongs to; nil: it is of the present.
  var moment: UInt64? {
    switch self {
    case .moment(let number), .pastDomain(let number, _), .pastKey(let number, _, _): number
    default: nil
    }
  }

  /// The domain whose lists a request about the item needs.
  var domain: DomainName? {
    switch self {
    case .explained(let domain), .search(let domain), .explanation(let domain, _),
      .described(let domain), .description(let domain, _), .schema(let domain, _):
      domain
    default: nil
    }
  }
}
