import PropertyList

/// What the control directory `.prefs` of a mount shows, beside preferences as the search list
/// resolves them.
///
/// Threads: any. A call waits as long as those of `Engine`. `explanation` and `status` also ask the
/// owner, and wait 5 s for it at most. Calls throw where the engine or the owner does.
public protocol ControlService: AnyObject, Sendable {
  /// Returns an engine that shows one place alone. Its `apply` changes that place, whatever the
  /// search list would choose.
  func engine(of place: Place) -> any Engine

  /// An engine whose global domain has two keys for each domain of the user's place,
  /// `<domain>.plist` and `<domain>.json`: the whole domain as one value. Setting a key replaces
  /// the domain in one transaction, and removing it removes the domain.
  var documents: any Engine { get }

  /// An engine whose global domain has a key for each domain: the names of the suites that are kept
  /// for it, one a line. Setting the key keeps those suites and no others.
  var suites: any Engine { get }

  /// An engine whose global domain has two keys for each declaration of a place (nil: of the user),
  /// `<name>.plist` and `<name>.json`, and a report `drift`. Setting a key declares exactly what
  /// the document says, and removing it takes back what that gave.
  func declarations(in place: Place?) -> any Engine

  /// What `null` stands for in the documents of `declarations`.
  var absent: Value { get }

  /// The users for whom the administrator has managed lists, in no order: those with a directory,
  /// and those whose first list has not been written yet. Cost: a listing of each directory.
  func managedUsers() throws(EngineError) -> [String]

  /// The place of the administrator's settings for the user; the user need not exist.
  func managedPlace(of user: String) -> Place

  /// The search list, whose domains and keys `search` and `explain` list.
  var preferences: any Engine { get }

  /// The search list of the domain: for each location, in order, a line with its source, its domain
  /// and the path of its list.
  func searchList(of domain: DomainName) throws(EngineError) -> String

  /// Every place that holds the key, as `defaults explain` writes it; nil if none does.
  func explanation(of key: Key, in domain: DomainName) throws(EngineError) -> String?

  /// The domains that have schemas. Cost: a listing of each directory.
  func schemaDomains() throws(EngineError) -> Set<DomainName>

  /// The keys of a domain's schema; none if it is not in memory.
  func schemaKeys(of domain: DomainName) -> [Key]

  /// What the schema of the domain says of the key, as `defaults describe` writes it; nil if it does
  /// not have the key.
  func description(of key: Key, in domain: DomainName) throws(EngineError) -> String?

  /// The schema of a domain as an XML property list, or as JSON Schema; nil if there is none.
  func schema(of domain: DomainName, isJSON: Bool) throws(EngineError) -> [UInt8]?

  /// The history of the store, and its past.
  var history: any HistoryService { get }

  /// What `status.json` says about this process, the store and its owner.
  func status() throws(EngineError) -> ValueDictionary
}
