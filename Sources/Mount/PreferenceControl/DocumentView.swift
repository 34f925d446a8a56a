import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls

/// What the keys of a `DocumentView` stand for.
///
/// Threads: any. Errors are those of the search engine.
protocol ViewContents: Sendable {
  /// Reads and changes the store.
  var search: SearchEngine { get }
  /// The keys that exist.
  func keys() throws(EngineError) -> Set<Key>
  /// The value of a key, its usual text, and when it last changed; nil if there is no such key.
  func whole(_ key: Key) throws(EngineError) -> (value: Value, text: [UInt8], modified: Timestamp)?
  /// Sets keys, or removes those with nil, in one transaction. Throws if a key or a value is not
  /// possible.
  /// - Parameters:
  ///   - isComputed: whether values were computed from the present ones, so that changes which
  ///     others make meanwhile must not be lost.
  ///   - isJudged: whether schemas may refuse values.
  func apply(
    _ changes: [WholeChange], isComputed: Bool, isJudged: Bool, by author: Author
  ) throws(EngineError) -> Changeset
  /// Whether nothing can be changed, made or removed.
  var isReadOnly: Bool { get }
  /// Whether a key cannot be changed.
  func isReadOnly(_ key: Key) -> Bool
  /// The keys whose values an edit of the store changes, and what it has done to them.
  func changes(by item: Changeset.Item) -> [Key: KeyEvent.Kind]
  /// The domains whose lists a look-up of the key, or a listing (nil), needs.
  func domainsNeeded(for key: Key?) -> [DomainName]
}

/// A key of a `DocumentView`, its new value, and the bytes that were written for it, as far as they
/// are known; a nil value removes it.
typealias WholeChange = (key: Key, value: Value?, text: [UInt8]?)

/// Contents of which each key can be set without regard to the others.
protocol SeparateContents: ViewContents {
  /// The intents that set the key to a value, or remove it (nil): see `apply`.
  func intents(
    toSet key: Key, _ value: Value?, isComputed: Bool
  ) throws(EngineError) -> [Intent]
}

extension SeparateContents {
  /// Makes one transaction of the intents of each change. Where one of them sets a whole domain, as
  /// where `mv X.json X.plist` gives it another name, no other removes it.
  func apply(
    _ changes: [WholeChange], isComputed: Bool, isJudged: Bool, by author: Author
  ) throws(EngineError) -> Changeset {
    var intents: [Intent] = isJudged ? [.judged] : []
    for change in changes {
      intents += try self.intents(toSet: change.key, change.value, isComputed: isComputed)
    }
    let replaced = intents.compactMap { intent -> Location? in
      if case .replace(let location, _) = intent { location } else { nil }
    }
    intents.removeAll { intent in
      if case .edit(let location, .removeDomain) = intent {
        replaced.contains(location)
      } else {
        false
      }
    }
    return intents.allSatisfy { $0 == .judged }
      ? Changeset() : try search.apply(intents, by: author)
  }
}

extension ViewContents {
  var isReadOnly: Bool { false }
  func isReadOnly(_ key: Key) -> Bool { isReadOnly }
}

extension Edit {
  /// What the edit does to a key that stands for its domain.
  var kindOfDomain: KeyEvent.Kind {
    switch self {
    case .createDomain: .created
    case .removeDomain: .removed
    default: .changed
    }
  }
}

/// An engine that has the global domain alone. Each of its keys stands for a part of the store, and
/// its value shows that part as a whole. It remembers the text that was written for a value while
/// the value stays and the process lives, so that a file reads back the bytes that were written.
///
/// Promises: setting and removing a key are one transaction of the store. A description (mode,
/// time) is ignored. A splice throws `.changedMeanwhile`, and domains cannot be made or removed
/// (EPERM). A value that was computed from the present one (`expectUnchanged`) is refused in the
/// transaction where a part of it that changes was changed meanwhile.
///
/// Threads: any. One lock, held for a look; contents are asked without it.
final class DocumentView<Contents: ViewContents>: Engine {
  private let contents: Contents
  /// The texts that were written, each with the value that it was written for.
  private let texts = Mutex<[Key: (value: Value, text: [UInt8])]>([:])
  /// Where the values of this engine are found, for its callers.
  private let location = Location(.user, .global)

  init(_ contents: Contents) { self.contents = contents }

  private var search: SearchEngine { contents.search }

  // MARK: - Reading

  /// Values are computed from the store alone. After a change through this engine, the same value
  /// may have other bytes.
  var generation: UInt64? { search.generation }

  func domains() throws(EngineError) -> Set<DomainName> { [.global] }

  func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool { domain == .global }

  func keys(of domain: DomainName) throws(EngineError) -> Set<Key> { try contents.keys() }

  func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? { nil }

  func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    guard let (value, usual, modified) = try contents.whole(key) else { return nil }
    let text = texts.withLock { texts -> [UInt8]? in
      guard let known = texts[key] else { return nil }
      if known.value == value { return known.text }
      texts[key] = nil
      return nil
    }
    let stored = StoredValue(value, Metadata(text: text ?? usual, modified: modified))
    return Resolution(stored, location: location, isReadOnly: contents.isReadOnly(key))
  }

  func reaches(_ location: Location, of domain: DomainName) -> Bool { true }

  func domainsNeeded(for key: Key?, in domain: DomainName) -> [DomainName] {
    contents.domainsNeeded(for: key)
  }

  // MARK: - Changes

  func notice(of changeset: Changeset) -> Notice {
    var here = Changeset(time: changeset.time)
    here.version = changeset.version
    var kinds: [Key: KeyEvent.Kind] = [:]
    for item in changeset.items {
      for (key, kind) in contents.changes(by: item) {
        kinds[key] = kind == .changed ? kinds[key] ?? kind : kind
      }
    }
    for location in changeset.invalidated {
      for key in contents.changes(by: Changeset.Item(location, .removeDomain)).keys {
        kinds[key] = kinds[key] ?? .changed
      }
    }
    for (key, kind) in kinds {
      // Nobody reads the value of a notice, and making it would cost as much as the whole.
      let edit = kind == .removed ? Edit.remove(key) : .set(key, .string(""), .unknown)
      here.items.append(
        Changeset.Item(location, edit, before: kind == .created ? .nothing : .something))
    }
    return Notice(changeset: here, events: here.items.compactMap(\.event), author: nil)
  }

  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    var changes: [WholeChange] = []
    var isComputed = false
    var written: [(Key, Value, [UInt8])] = []
    for intent in intents {
      switch intent {
      case .set(let key, _, let value, let text):
        guard case .exact(let bytes) = text else {
          changes.append((key, value, nil))
          continue
        }
        changes.append((key, value, bytes))
        written.append((key, value, bytes))
      case .remove(let key, _): changes.append((key, nil, nil))
      case .expectUnchanged(let key, _, let time):
        guard try contents.whole(key)?.modified == time else {
          throw .changedMeanwhile(key, .global)
        }
        isComputed = true
      case .splice(let key, _, _): throw .changedMeanwhile(key, .global)
      case .describe, .judged: break
      default: throw EngineError(.system(.notPermitted), "only files can be made and removed here")
      }
    }
    let changeset = try contents.apply(
      changes, isComputed: isComputed, isJudged: intents.contains(.judged), by: author)
    texts.withLock { texts in
      for case .remove(let key, _) in intents { texts[key] = nil }
      for (key, value, text) in written { texts[key] = (value, text) }
    }
    return changeset
  }

  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void) {
    search.observe(except: author, observer)
  }

  var isReadOnly: Bool { contents.isReadOnly || search.isReadOnly }
}
