import Glibc
import PreferenceHistory
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The lists of a store as its owner has last read or written them (`history/seen`), so that the
/// next owner finds what other programs changed while there was none.
///
/// A file has the values of a list, but those of which the history keeps none, and the state of the
/// list. It has the list's modification time, so that one lstat(2) tells that nothing has changed. Of
/// a list that has appeared and that nobody has read, the file says that there was none.
/// A list of more than 1 MiB has no file, and changes of it that nobody has seen are not recorded.
///
/// Half-broken states: a file that a kill or a loss of power has left torn counts as none. A file may
/// be older than the list, because its owner was killed in between; but the metadata file of the list
/// then says that the owner has written it, so no other program has changed it.
///
/// Threads: any thread notes looks; whatever waits for a disk is called by one at a time. One lock,
/// held for a few loads and stores.
final class SeenLists: Sendable {
  /// A list as it was read or written.
  struct Look: Sendable {
    let location: Location
    let values: ListValues
    /// nil if there is no list.
    let identity: FileIdentity?
    /// Whether this owner has read it for the first time, and no owner has written it as it is:
    /// what differs from the file was changed by others while there was no owner.
    let isFirst: Bool
    /// Who has changed what in it.
    let owners: ListOwners

    /// A list that appears where there was none: whatever it has was set.
    init(newListAt location: Location) {
      self.init(
        location: location, values: .decoded([:]),
        identity: FileIdentity(size: 0, modified: Timestamp(nanoseconds: 0), inode: 0),
        isFirst: false)
    }

    init(
      location: Location, values: ListValues, identity: FileIdentity?, isFirst: Bool,
      owners: ListOwners = ListOwners()
    ) {
      (self.location, self.values, self.identity) = (location, values, identity)
      (self.isFirst, self.owners) = (isFirst, owners)
    }

    /// Whether there was no list before.
    var isNew: Bool { identity?.inode == 0 }
  }

  private struct State {
    /// The files by their names, and their lists, as far as that was looked up.
    var files: [String: Location?]
    /// What was noted since `removeLooks`: of each list the first look of this owner, and the last
    /// one, so that they take no more memory while the history cannot be written.
    var first: [String: Look] = [:]
    var last: [String: Look] = [:]
    /// The lists that have appeared since `removeLooks`, and were not read before.
    var new: [String: Look] = [:]

    mutating func add(_ look: Look) {
      let name = SeenLists.name(look.location)
      if look.isNew {
        new[name] = look
      } else if look.isFirst, first[name] == nil {
        first[name] = look
        last[name] = nil
      } else {
        last[name] = look
      }
    }

    mutating func removeLooks() -> [Look] {
      defer { (first, last, new) = ([:], [:], [:]) }
      return Array(new.values) + first.values + last.values
    }
  }

  private let directory: String
  private let state: Mutex<State>

  /// The largest list that has a file, in bytes.
  private static let largest: Int64 = 1 << 20

  init(_ history: HistoryDirectory) {
    directory = history.path + "/seen"
    let names = try? Files.names(in: directory)
    // A directory that changes may list a name twice.
    let files = (names ?? []).map { ($0, nil as Location?) }
    state = Mutex(State(files: Dictionary(files, uniquingKeysWith: { first, _ in first })))
  }

  private static func name(_ location: Location) -> String {
    String(StableHash.of("\(location.place.rawValue)\0\(location.domain)".utf8), radix: 16)
  }

  private func isKnown(_ name: String) -> Bool { state.withLock { $0.files[name] != nil } }

  private func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Notes a list that was read or written. Cost: a hash look-up; no disk.
  /// - Returns: whether there is something to write.
  func note(_ look: Look) -> Bool {
    state.withLock { state in
      guard look.identity != nil || state.files[Self.name(look.location)] != nil else {
        return false
      }
      state.add(look)
      return true
    }
  }

  /// Notes that a list has appeared where there was none. Cost: a hash look-up; no disk.
  /// - Returns: whether there is something to write.
  func noteNew(_ location: Location) -> Bool {
    let name = Self.name(location)
    return state.withLock { state in
      guard state.files[name] == nil, state.first[name] == nil, state.last[name] == nil else {
        return false
      }
      state.add(Look(newListAt: location))
      return true
    }
  }

  // MARK: - Files

  /// What a file says.
  private struct Seen {
    var location: Location
    var identity: FileIdentity
    /// When the list was looked at.
    var time: Timestamp
    /// What is kept of them.
    var values: ValueDictionary
    /// The keys of whose values nothing is kept.
    var lost: Set<Key>

    init?(_ bytes: [UInt8]) {
      guard case .dictionary(let root)? = try? Document.read(bytes).value,
        case .string(let place)? = root["place"], let place = Place(rawValue: place),
        case .string(let domain)? = root["domain"],
        let identity = root["identity"].flatMap({ FileIdentity($0) }),
        let time = root["time"]?.timestamp,
        case .dictionary(let values)? = root["values"], case .array(let lost)? = root["lost"]
      else { return nil }
      location = Location(place, DomainName(domain))
      (self.identity, self.time, self.values) = (identity, time, values)
      self.lost = Set(lost.compactMap { if case .string(let key) = $0 { Key(key) } else { nil } })
    }

    init(_ look: Look, _ identity: FileIdentity, _ settings: HistorySettings) {
      (location, self.identity, time) = (look.location, identity, .now)
      let present = look.values.dictionary
      (values, lost) = (present, [])
      for (key, value) in present {
        let kept = settings.kept(of: value, key, in: look.location.domain)
        if kept != value { values[key] = kept }
        if kept == nil { lost.insert(key) }
      }
    }

    var bytes: [UInt8] {
      let root: ValueDictionary = [
        "place": .string(location.place.rawValue), "domain": .string(location.domain.string),
        "time": time.value, "identity": identity.value, "values": .dictionary(values),
        "lost": .array(lost.map { .string($0.string) }),
      ]
      return Document.binary(.dictionary(root))
    }
  }

  private func read(_ name: String) -> Seen? {
    guard let bytes = try? Files.contents(path(name), limit: 64 << 20) else { return nil }
    return Seen(bytes)
  }

  private func remove(_ name: String) throws(SystemError) {
    try Files.remove(path(name))
    state.withLock { _ = $0.files.removeValue(forKey: name) }
  }

  private func write(_ seen: Seen, _ name: String) throws(SystemError) {
    // The state directory itself is made anew by the store, with all that belongs to it.
    if !Files.isDirectory(directory),
      Files.isDirectory(Files.parent(of: Files.parent(of: directory)))
    {
      try Files.makeDirectories(directory, mode: 0o700)
    }
    let file = try Descriptor(opening: path(name), O_WRONLY | O_CREAT | O_TRUNC)
    try file.write(seen.bytes)
    try file.setModified(seen.identity.modified)
    state.withLock { _ = $0.files.updateValue(seen.location, forKey: name) }
  }

  // MARK: - Looks

  /// Removes and returns the lists that were noted since the last call; of each, that it is new comes
  /// before the first look, and that before the last one.
  func removeLooks() -> [Look] { state.withLock { $0.removeLooks() } }

  /// Puts back what `removeLooks` has returned, because the history could not be written.
  func putBack(_ looks: [Look]) {
    state.withLock { state in
      for look in looks + state.removeLooks() { state.add(look) }
    }
  }

  /// The changes that others have made in lists while there was no owner, in the order of the times
  /// at which they were made at the latest. Waits for a disk.
  func differences(_ looks: [Look], _ settings: HistorySettings) -> [HistoryRecord] {
    var records: [HistoryRecord] = []
    var known: Set<String> = []
    var new: [String: Seen] = [:]
    for look in looks where look.isNew || look.isFirst {
      let name = Self.name(look.location)
      if look.isNew, let identity = look.identity {
        new[name] = Seen(look, identity, settings)
        continue
      }
      guard known.insert(name).inserted, !isUnchanged(look, name),
        let seen = new[name] ?? (isKnown(name) ? read(name) : nil)
      else { continue }
      records += difference(look, seen, settings)
    }
    return records.sorted { $0.time < $1.time }
  }

  /// Writes the lists as they were noted. Waits for a disk. Call it when the history has what is
  /// different.
  func write(_ looks: [Look], _ settings: HistorySettings) {
    var last: [String: Look] = [:]
    for look in looks { last[Self.name(look.location)] = look }
    for (name, look) in last where !isUnchanged(look, name) {
      do throws(SystemError) {
        if let identity = look.identity, identity.size <= Self.largest {
          try write(Seen(look, identity, settings), name)
        } else if isKnown(name) {
          try remove(name)
        }
      } catch {
        // A change of the list that nobody sees would then be compared with an older state of it.
        do { try remove(name) } catch {}
      }
    }
  }

  private func isUnchanged(_ look: Look, _ name: String) -> Bool {
    guard let identity = look.identity, isKnown(name),
      let status = try? Files.linkStatus(path(name))
    else { return false }
    return Timestamp(status.st_mtim) == identity.modified
  }

  /// What others have changed in a list since its file was written, by machine.
  private func difference(
    _ look: Look, _ seen: Seen, _ settings: HistorySettings
  ) -> [HistoryRecord] {
    guard seen.location == look.location, look.identity?.matches(seen.identity) != true else {
      return []
    }
    let present = look.values.dictionary
    var items: [HistoryRecord.Item] = []
    for key in Set(present.keys).union(seen.values.keys).union(seen.lost).sorted() {
      let (old, new) = (seen.values[key], present[key])
      let isLost = seen.lost.contains(key)
      if old == new, !isLost { continue }
      // Whether something that is not kept has changed is not known.
      if isLost, new != nil { continue }
      let recorded = { (value: Value?) -> RecordedValue in
        value.map {
          let stored = StoredValue($0, Metadata(text: nil, modified: Timestamp(nanoseconds: 0)))
          return settings.recorded(stored, of: key, in: look.location.domain)
        } ?? .none
      }
      let before = isLost ? RecordedValue.notKept : recorded(old)
      let after = recorded(new)
      if before == after, case .parts = after { continue }
      items.append(HistoryRecord.Item(look.location, key, from: before, to: after))
    }
    let time = look.identity?.modified ?? .now
    return Dictionary(grouping: items, by: { look.owners.host(of: $0.key) }).map { host, items in
      var source = ChangeSource(listFrom: host)
      source.unit = "between \(seen.time.text) and \(max(time, seen.time).text)"
      return HistoryRecord(items, time: time, source: source)
    }
  }

  // MARK: - All files

  /// The locations whose lists are not as old as their files say. Cost: two stat(2) for each file;
  /// the first time it is read, too.
  /// - Parameter path: the path of a location's list.
  func changedLocations(_ path: (Location) -> String) -> [Location] {
    state.withLock { $0.files }.compactMap { name, location in
      guard let location = location ?? read(name)?.location else { return nil }
      state.withLock { _ = $0.files.updateValue(location, forKey: name) }
      guard let seen = try? Files.linkStatus(self.path(name)) else { return nil }
      do throws(SystemError) {
        let list = try Files.status(path(location))
        return list.map { Timestamp($0.st_mtim) } == Timestamp(seen.st_mtim) ? nil : location
      } catch {
        return nil
      }
    }
  }

  /// Removes the files of a domain, durably.
  func forget(_ domain: DomainName) throws(SystemError) {
    for name in state.withLock({ $0.files.keys }) {
      guard let seen = read(name), seen.location.domain != domain else {
        try remove(name)
        continue
      }
    }
    if Files.isDirectory(directory) { try Files.synchronizeDirectory(directory) }
  }

  /// Copies the files of the user's own lists from another machine's, whose other lists are not those
  /// of this one.
  func copy(from other: SeenLists) throws(SystemError) {
    for name in other.state.withLock({ Array($0.files.keys) }) {
      guard let seen = other.read(name), seen.location.place == .user else { continue }
      try write(seen, name)
    }
  }

  /// Removes all files.
  func removeAll() throws(SystemError) {
    for name in try Files.names(in: directory) ?? [] { try Files.remove(path(name)) }
    state.withLock { $0 = State(files: [:]) }
    if rmdir(directory) != 0, errno != ENOENT { throw SystemError("rmdir", directory) }
  }
}
