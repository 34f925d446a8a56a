import PreferenceDeclarations
import PreferenceModel
import PreferenceSchemaForms
import PreferenceSchemas
import PreferenceSearch
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// What the control directory of a mount shows. It asks a search engine and the owner of the store.
///
/// Threads: any. Calls wait as `ControlService` says. One lock, held for a look.
public final class StoreControl: ControlService {
  let search: SearchEngine
  let owner: any ReportService
  private let layout: StoreLayout
  private let about: ValueDictionary
  let past: StoreHistory
  /// The other users whose managed places were asked for.
  private let users = Mutex<Set<String>>([])
  private let directories: ManagedDirectories

  /// Creates what the control directory of one mount shows.
  /// - Parameters:
  ///   - search: the search list of the mount.
  ///   - owner: is asked about the store and its profiles.
  ///   - layout: the paths of the store.
  ///   - about: what `status.json` says of this process. Keys of the owner's report replace its
  ///     keys.
  public init(
    _ search: SearchEngine, owner: any ReportService, layout: StoreLayout,
    about: ValueDictionary
  ) {
    (self.search, self.owner, self.layout, self.about) = (search, owner, layout, about)
    past = StoreHistory(search.places, owner)
    directories = ManagedDirectories(layout)
  }

  public var absent: Value { Declaration.absent }

  public func release() { past.release() }

  public var preferences: any Engine { search }

  /// Returns an engine that shows one place alone. Its `apply` changes that place, whatever the
  /// search list would choose.
  func engine(of place: Place) -> any Engine {
    if case .managedFor(let user) = place {
      search.lists?.include(place)
      users.withLock { _ = $0.insert(user) }
    }
    return search.engine(of: place)
  }

  /// The users for whom the administrator has managed lists, in no order: those with a directory,
  /// and those whose first list has not been written yet. Cost: a listing of each directory.
  func managedUsers() throws(EngineError) -> [String] {
    try EngineError.wrapping { () throws(SystemError) in
      let directory = layout.directory(.managed)
      let names = try Files.names(in: directory, withDirectories: true) ?? []
      // The loop asks: it waits for no name service.
      let kinds = directories.kinds(
        of: names.filter { Files.isDirectory("\(directory)/\($0)") }, asking: .later({}))
      let made = Set(kinds.filter { $0.value != .fragments }.keys)
      // Directories that the next rewrite of a list makes.
      let asked = users.withLock { $0 }.union([layout.userName])
      let begun = asked.subtracting(made).filter { user in
        let domains = try? search.places.domains(in: layout.managedPlace(of: user))
        return !user.isEmpty && domains?.isEmpty == false
      }
      return Array(made.union(begun))
    }
  }

  /// The place of the administrator's settings for the user; the user need not exist.
  func managedPlace(of user: String) -> Place { layout.managedPlace(of: user) }

  /// The search list of the domain: for each location, in order, a line with its source, its domain
  /// and the path of its list.
  func searchList(of domain: DomainName) throws(EngineError) -> String {
    var text = ""
    let fragments = Explanation(search, layout, owner, asksDisk: false).fragments()
    for location in try search.locations(for: domain) {
      let row = "\(location.source(seenFrom: domain)): \(location.domain)"
      // The mount's loop must not ask a disk, which the path of a schema would.
      let list = layout.needsDisk(for: location) ? "" : layout.path(location)
      for fragment in fragments where fragment.location == location && fragment.file != list {
        text += "\(row) \(fragment.file)\n"
      }
      // The vendors' place has no list of its own, but the reader wants to know where one goes.
      text += location.place.isPersistent ? "\(row) \(list)\n" : "\(row)\n"
    }
    return text
  }

  /// Every place that holds the key, as `prefs explain` writes it; nil if none does.
  func explanation(
    of key: Key, in domain: DomainName
  ) throws(EngineError) -> String? {
    let explanation = Explanation(search, layout, owner, asksDisk: false)
    let holders = try explanation.holders(of: key, in: domain)
    return holders.isEmpty ? nil : Explanation.text(of: holders, isAppleText: false)
  }

  public func status() throws(EngineError) -> ValueDictionary {
    var status = about
    status["domains"] = .integer(WideInteger(UInt64(try search.domains().count)))
    guard case .dictionary(let owner) = try owner.report(.status) else { return status }
    for (key, value) in owner { status[key] = value }
    return status
  }

  /// The schema of a domain as an XML property list, or as JSON Schema; nil if there is none.
  func schema(of domain: DomainName, isJSON: Bool) throws(EngineError) -> [UInt8]? {
    guard let schema = search.schema(of: domain) else { return nil }
    if isJSON { return ValueText.canonical(schema.jsonSchema(of: domain), style: .json) }
    return Document.anyXML(.dictionary(try search.places.values(at: Location(.schema, domain))))
  }
}
