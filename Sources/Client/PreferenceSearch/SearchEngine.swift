import PreferenceModel
import PreferenceSchemas
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The search list: persistent places, wherever they are, languages, the volatile places of this
/// process, and the defaults of schemas.
///
/// Promises: those of `Engine`. Two engines over one store, in one process or in several, differ
/// only in their arguments, registered defaults, suites, and whether they use schemas.
///
/// Threads: any. Calls wait as long as those of the places do; a look-up that gets as far as the
/// languages may also wait 1 s, for all of them (`Languages`). Locks: those of the volatile
/// places and of `languages`, and `suites`, `observers`, `changing` and `readers`, each held briefly.
/// A reader's lock is taken under `readers`. None is held while the persistent places are asked or an
/// observer is called.
public final class SearchEngine: Engine {
  package let places: any PersistentPlaces
  let arguments = VolatilePlace(.arguments)
  /// Whether a change of a key that an argument sets is refused. Otherwise it is stored, and is
  /// read when the argument is not given.
  let refusesShadowed: Bool
  /// Reads lists for the caller, which must not wait for one that hangs; nil if the caller waits.
  package let lists: ListReader?
  let registered = VolatilePlace(.registered)
  let suites = Mutex(SuiteTable())
  /// How many posted changes of a key, in any domain, are not over.
  let changing = Mutex<[Key: Int]>([:])
  let languages: Languages
  /// Whether the search list has languages.
  let usesLanguages: Bool
  let schemas = SchemaTable()
  /// Whether the search list has schemas.
  let usesSchemas: Bool
  /// The observers of changes of the volatile places. The persistent places notify observers of
  /// other changes.
  let observers = ObserverList()
  /// How often answers may have become wrong: raised by each change, before observers other than
  /// this engine are notified.
  let changes = Atomic<UInt64>(0)
  /// The readers in use. A reader keeps the engine alive, not the engine its readers.
  let readers = Mutex<[DomainName: WeakReader]>([:])

  /// A weak reference to a reader, in an object: a copy of the reference itself costs more than
  /// a copy of the object's.
  final class WeakReader: Sendable {
    weak let reader: DomainReader?

    init(_ reader: DomainReader) { self.reader = reader }
  }

  /// Creates an engine over the places.
  /// - Parameters:
  ///   - arguments: the argument domain, as `ArgumentDomain.parse` gives it.
  ///   - refusesShadowed: whether a change of a key that an argument sets is refused, because the
  ///     next read would not see it (a mount); otherwise it is stored (NSUserDefaults).
  ///   - lists: reads lists for a caller that must not wait; a list that it finds hung is an error.
  ///   - usesLanguages: whether the search list has languages.
  ///   - usesSchemas: whether it has schemas.
  public init(
    places: any PersistentPlaces, arguments: ValueDictionary = [:], refusesShadowed: Bool = true,
    lists: ListReader? = nil, usesLanguages: Bool = true, usesSchemas: Bool = true
  ) {
    (self.places, self.usesLanguages) = (places, usesLanguages)
    self.usesSchemas = usesSchemas
    self.lists = lists
    self.refusesShadowed = refusesShadowed
    languages = Languages()
    languages.whenLate { [weak self] in
      self?.notify(Changeset(invalidating: Location(.user, .global)))
    }
    _ = self.arguments.set(arguments, for: .global)
    places.observe(except: nil) { [weak self] notice in self?.forget(notice.changeset) }
  }

  /// The suites of domains, which domains are locked, and what follows from both.
  struct SuiteTable {
    /// Those that this process added.
    var added: [DomainName: [DomainName]] = [:]
    /// Those that are kept as preferences, of the domains that were asked for.
    var kept: [DomainName: [DomainName]] = [:]
    /// The domains that are locked; nil if nobody has asked yet.
    var locks: DomainLocks?
    /// The search list of the last look-up; nil if suites or locks have changed since.
    var lastPath: SearchPath?
    /// How often suites or locks have changed.
    var changes = 0 { didSet { lastPath = nil } }
  }
}

// MARK: - Readers

extension SearchEngine {
  /// Returns the reader of the domain. All callers share one reader, as long as any of them keeps
  /// it.
  public func reader(of domain: DomainName) -> DomainReader {
    readers.withLock { readers in
      if let known = readers[domain]?.reader { return known }
      // Readers that nobody keeps are removed when there are 64 entries, 128, 256, and so on.
      if readers.count >= 64, readers.count.nonzeroBitCount == 1 {
        readers = readers.filter { $0.value.reader != nil }
      }
      let reader = DomainReader(domain, self)
      readers[domain] = WeakReader(reader)
      return reader
    }
  }

  /// Has the readers look up again what the changeset changed.
  func forget(_ changeset: Changeset) {
    // Last: who sees the new generation finds nothing that was kept from before.
    defer { changes.add(1, ordering: .releasing) }
    let changed = Set(changeset.items.compactMap { KeptSuites.domain(of: $0) })
    let (concernsLanguages, concernsSuites) = (
      changeset.concernsLanguages, changeset.concernsAllSuites
    )
    let concernsLocks = changeset.concernsLocks
    if concernsLanguages || concernsLocks { languages.forget() }
    schemas.forget(changeset)
    let isWhole = concernsLanguages || concernsSuites || concernsLocks
    let suites = suites.withLock { suites in
      if concernsSuites || concernsLocks || !changed.isEmpty { suites.changes += 1 }
      if concernsLocks { suites.locks = nil }
      for domain in changed { suites.kept[domain] = nil }
      // Of a locked domain of settings, the suites that the user keeps do not count.
      if concernsSuites || concernsLocks { suites.kept = [:] }
      return suites
    }
    readers.withLock { readers in
      for (name, weak) in readers {
        guard let reader = weak.reader else { continue }
        let needs = { (domain: DomainName) in
          name == domain || domain == .global || suites.kept[name]?.contains(domain) == true
            || suites.added[name]?.contains(domain) == true
        }
        if isWhole || changed.contains(name)
          || changeset.invalidated.contains(where: { needs($0.domain) })
        {
          reader.forget()
          continue
        }
        for item in changeset.items where needs(item.location.domain) {
          if let key = item.edit.key { reader.forget(key) } else { reader.forget() }
        }
      }
    }
  }
}
