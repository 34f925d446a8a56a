import Glibc
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// Rewrites lists with the changes that only the journal has.
///
/// Promises: a list is replaced as a whole, durably, and only in the state that it was read in. One
/// that cannot be parsed is never rewritten. The journal keeps the changes until the list has them.
///
/// Threads: the writer's thread alone.
///
/// Locks: the lock of the list's directory (`listLock`) first, without waiting for it; inside of it
/// `Lists.state`, and `Lists.readingAdditions`, because a forced key may say the format.
final class ListRewriter: Sendable {
  private let lists: Lists
  private let journal: JournalKeeper
  private let history: HistoryRecorder

  init(_ lists: Lists, _ journal: JournalKeeper, _ history: HistoryRecorder) {
    (self.lists, self.journal, self.history) = (lists, journal, history)
  }

  /// Rewrites the location's list with every change so far, and releases the journal's records of
  /// them. Does nothing where the list lacks no change. Called by one thread at a time.
  ///
  /// A list that another program replaced, since it was read or while the new one is written, is
  /// adopted first (`refresh`). Blocks for four fsync(2): of the list, of its metadata file, and of
  /// their directories; for an fdatasync(2) of the journal, and an fsync(2) of the history.
  ///
  /// Throws, with the changes still in the journal, where the list cannot be read, written or made
  /// durable. Until a rewrite succeeds, each change of the location checks anew whether the list
  /// could be replaced, and is refused where it could not. EAGAIN says that another process is
  /// rewriting a list of that directory just now, or has emptied this one; it refuses nothing.
  func checkpoint(_ location: Location) throws(EngineError) {
    journal.startSegment()
    for attempt in 1...Self.mostAttempts {
      guard lists.state.withLock({ $0.domains[location]?.unsavedSince != nil }) else { return }
      lists.refresh(location)
      try requireContents(location)
      guard let start = lists.state.withLock({ $0.freeze(location) }) else { return }
      do {
        try rewrite(start, location)
        return
      } catch  where error.reason == .system(Self.changedMeanwhile) && attempt < Self.mostAttempts {
        continue
      } catch  where error.reason == .system(.wouldBlock) {
        // Another process is rewriting a list there just now: nothing is wrong with this one.
        collapse(start, location)
        throw error
      } catch {
        collapse(start, location)
        // A list that cannot be looked at is not adopted, and says why.
        let isChanged = error.reason == .system(Self.changedMeanwhile)
        let failure = isChanged ? start.domain.failure ?? error : error
        lists.state.withLock { $0.domains[location]?.failure = failure }
        journal.renewStuckRecords()
        throw failure
      }
    }
  }

  /// Throws EAGAIN where another program has just emptied the list. A shell does that before the
  /// program behind `>` writes, Foundation before it writes itself. A list in its place would hide
  /// what they write.
  private func requireContents(_ location: Location) throws(EngineError) {
    let emptied = lists.state.withLock { $0.domains[location]?.emptied }
    guard let emptied, Instant.now.milliseconds(after: emptied) < Self.writingPatience else {
      return
    }
    throw EngineError(
      .system(.wouldBlock), domain: location.domain,
      "another program has emptied the list and may be writing it; trying again for 5 s")
  }

  /// Milliseconds for which a list that was emptied is left to the program that emptied it.
  private static let writingPatience = 5000

  /// How often a list that others keep changing is adopted before the rewrite fails.
  private static let mostAttempts = 6

  /// ESTALE: another program replaced the list that was to be rewritten.
  private static let changedMeanwhile = Errno(rawValue: ESTALE)

  /// Merges the layers of a rewrite that failed into one, so that failing rewrites do not pile up
  /// layers.
  private func collapse(_ start: Start, _ location: Location) {
    guard start.layers > 1 else { return }
    let layer = start.domain.snapshot.collapsed()
    lists.state.withLock { $0.domains[location]?.snapshot.replaceLayers(start.layers, with: layer) }
  }

  /// The state of a location that a rewrite begins with. It is held until the rewrite ends, so that
  /// the memory of what the rewrite replaces is freed outside of the lock.
  struct Start {
    /// The location, whose layers are frozen.
    var domain: LocationState
    /// How many of its layers the rewrite takes in.
    var layers: Int
    /// The number of the last journal record whose edits are in the layers.
    var through: UInt64
  }

  /// A list after its rewrite.
  struct Written {
    var base: LocationSnapshot.Base
    var identity: FileIdentity?
    var format: Format
    var owners: ListOwners
    /// Whether the disk had no room for the metadata file.
    var lacksMetadata = false
  }

  private func rewrite(_ start: Start, _ location: Location) throws(EngineError) {
    let domain = start.domain
    if let failure = domain.failure, failure.reason == .unreadable { throw failure }
    // Else a loss of power could leave an older record in the journal, and no later one, beside the
    // new list: the replay would put the older value into it; or half of a domain's renaming.
    try journal.synchronize()
    // Once the list is rewritten, nothing else has the values before.
    history.record(durably: true)
    let written = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try write(domain, location)
    }
    journal.remove(
      lists.state.withLock { state in
        lists.noteLook(location, written.base.values, written.identity, isFirst: false, &state)
        return state.finish(written, start, location, lists.log)
      })
    journal.renewStuckRecords()
    // If this process is killed later, its changes must not be taken for another program's.
    history.record()
    guard written.lacksMetadata else { return }
    // The release of the journal may have made room.
    do throws(SystemError) {
      try write(written, identity: written.identity, location)
    } catch {
      lists.log("\(location): the texts and times of its keys could not be saved: \(error)")
    }
  }

  /// Writes list and metadata file, or removes them where the domain is gone, under the lock of the
  /// list's directory. Throws EAGAIN where another process holds the lock, ESTALE where the list is
  /// not in the state that it was read in.
  private func write(_ domain: LocationState, _ location: Location) throws(SystemError) -> Written {
    let file = ListFile(lists.layout, location)
    let directory = Files.parent(of: file.path)
    if !lists.layout.isMachineWide(location.place) { try lists.requireHome() }
    try file.makeDirectory(mode: lists.layout.isMachineWide(location.place) ? 0o755 : 0o700)
    let lock = try Descriptor.listLock(lists.layout.lockPath(location), directory: directory)
    defer { lock.unlock() }
    tidy([file, ListFile(path: lists.layout.metadataPath(location))])
    try requireUnchanged(file, domain)
    var base = domain.snapshot.merged(onto: domain.snapshot.base)
    // The list is written in this order; the next rewrite then has little to sort.
    base.values.sort()
    base.shareTime()
    var written = Written(
      base: base, identity: domain.identity, format: domain.format, owners: domain.owners)
    if domain.format == .binary, lists.layout.isMachineWide(location.place), writesXML,
      !domain.hidesValues
    {
      written.format = .xml
    }
    if !domain.snapshot.changesList, domain.identity != nil {
      try write(written, identity: domain.identity, location)
    } else if domain.snapshot.exists || !base.values.isEmpty {
      try replace(file, domain, &written, location)
    } else {
      try file.remove()
      try MetadataFile(path: lists.layout.metadataPath(location)).remove()
      written.identity = nil
      written.owners.forgetChanges()
    }
    return written
  }

  /// Whether an administrator wants the machine's lists as XML, e.g. because /etc is kept in git: the
  /// forced key `MachineListFormat` of the domain `prefsfs` is `xml`.
  private var writesXML: Bool {
    let setting = Place.forced.lazy.compactMap { place in
      try? self.lists.find("MachineListFormat", at: Location(place, .settings))
    }.first
    return setting?.value == "xml"
  }

  /// Throws ESTALE where the list is not in the state that it was read in.
  private func requireUnchanged(_ file: ListFile, _ domain: LocationState) throws(SystemError) {
    guard try file.currentIdentity() == domain.identity else {
      throw SystemError("rename", file.path, Self.changedMeanwhile)
    }
  }

  /// Removes the temporary files that crashed rewrites left in the directories of files, once for
  /// each of them.
  private func tidy(_ files: [ListFile]) {
    for file in files {
      let directory = Files.parent(of: file.path)
      guard lists.state.withLock({ $0.directories.tidied.insert(directory).inserted }) else {
        continue
      }
      do throws(SystemError) {
        try file.removeLeftovers()
      } catch {
        lists.log("a temporary file of a crashed rewrite could not be removed: \(error)")
      }
    }
  }

  private func replace(
    _ file: ListFile, _ domain: LocationState, _ written: inout Written, _ location: Location
  ) throws(SystemError) {
    let (content, format) = patch(file, domain, written) ?? encode(written, file, domain, location)
    written.base.values =
      format == .binary
      ? (try? ListValues(packing: content)) ?? written.base.values
      : ListValues(packingIfLarge: written.base.values.dictionary)
    let bytes = withStatement(content, format, domain, &written, location, file.name)
    let described = written
    let mode: mode_t = lists.layout.isMachineWide(location.place) ? 0o644 : 0o600
    written.format = format
    var lacksMetadata = false
    written.identity = try file.replace(with: bytes, mode: mode) { identity throws(SystemError) in
      do throws(SystemError) {
        try write(described, identity: identity, location)
      } catch  where error.errno == .noSpace {
        // The journal may be what fills that disk; it is released once the list is written.
        lacksMetadata = true
      }
      try requireUnchanged(file, domain)
    }
    written.lacksMetadata = lacksMetadata
  }

  /// Returns the list with the statement of what it was made from; without one, where nobody else
  /// uses the home, or the format cannot hold one.
  private func withStatement(
    _ bytes: [UInt8], _ format: Format, _ domain: LocationState, _ written: inout Written,
    _ location: Location, _ name: String
  ) -> [UInt8] {
    guard format == .binary || format == .xml, isShared(location, written.owners),
      bytes.count <= ListFile.largest - ListStatement.mostBytes
    else {
      written.owners.forgetChanges()
      return format == .xml ? ListStatement.removed(from: bytes) : bytes
    }
    let changed = domain.snapshot.collapsed().changes.compactMap { key, change -> Key? in
      if case .described = change { nil } else { key }
    }
    return written.owners.noteRewrite(changed, written.base.values, through: domain.lastEdit)
      .added(to: bytes, of: name)
  }

  /// Whether other machines may rewrite the list too.
  private func isShared(_ location: Location, _ owners: ListOwners) -> Bool {
    guard location.place == .user || location.place == .host,
      !lists.layout.isMachineWide(location.place)
    else { return false }
    return owners.hasOthers || lists.layout.isShared
  }

  /// Writes the metadata file of a list in that state.
  private func write(
    _ written: Written, identity: FileIdentity?, _ location: Location
  ) throws(SystemError) {
    let base = written.base
    try MetadataFile(path: lists.layout.metadataPath(location)).write(
      MetadataFile.Contents(
        identity: identity, modified: base.modified, keys: base.metadata, made: base.made,
        owners: written.owners.encoded(base.values)))
  }

  /// Changes an XML list where its values have changed, so that the rest stays as its author has
  /// it; nil for another list, and where that cannot be done.
  private func patch(
    _ file: ListFile, _ domain: LocationState, _ written: Written
  ) -> ([UInt8], Format)? {
    guard written.format == .xml, domain.identity.map({ $0.size <= Self.largestPatch }) == true,
      let list = try? file.contents(limit: Self.largestPatch)
    else { return nil }
    return XMLPatch.apply(
      to: list, from: domain.snapshot.base.values.dictionary, to: written.base.values.dictionary
    ).map { ($0, .xml) }
  }

  /// Bytes of the largest list that is changed in place: what is done to it takes as long as
  /// reading it three times.
  private static let largestPatch = 4 << 20

  /// The list with what the file has for keys that cannot be read; nil where it has none.
  private func keepingHidden(
    _ written: Written, _ file: ListFile, _ location: Location
  ) -> ([UInt8], Format)? {
    guard let old = try? file.contents(limit: ListFile.largest),
      let (bytes, format) = ReadableList(old)?.writing(written.base.values.dictionary),
      bytes.count <= ListFile.largest
    else { return nil }
    if written.format == .json, format == .xml {
      let why = "JSON cannot hold its values, and XML can keep those that cannot be read"
      lists.log(.notice("\(location.domain): the list is now an XML one, because \(why)"))
    }
    return (bytes, format)
  }

  /// Encodes the list in its format; old-style becomes XML. A list that its format cannot hold, or
  /// only in more bytes than can be read again, becomes a binary one, and the log says so. Strings
  /// of a binary list that are not Unicode keep their bytes. What cannot be read is kept
  /// (`ReadableList.writing`).
  private func encode(
    _ written: Written, _ file: ListFile, _ domain: LocationState, _ location: Location
  ) -> ([UInt8], Format) {
    if domain.hidesValues, written.identity != nil,
      let kept = keepingHidden(written, file, location)
    {
      return kept
    }
    let value = Value.dictionary(written.base.values.dictionary)
    let format = written.format == .openStep ? .xml : written.format
    do throws(FormatError) {
      let bytes = try Document.write(value, as: format)
      if format == .binary, written.identity != nil {
        let old = { try? file.contents(limit: ListFile.largest) }
        return (Document.binary(value, bytes, keepingOddStringsOf: old) ?? bytes, format)
      }
      if bytes.count <= ListFile.largest { return (bytes, format) }
      let why = "it is larger than 1 GiB"
      lists.log(.notice("\(location.domain): the list is now a binary one, because \(why)"))
    } catch {
      lists.log(.notice("\(location.domain): the list is now a binary one, because \(error)"))
    }
    return (Document.binary(value), .binary)
  }
}

extension StoreState {
  /// Freezes the changes that a rewrite takes in; nil where the list lacks none.
  fileprivate mutating func freeze(_ location: Location) -> ListRewriter.Start? {
    guard domains[location]?.unsavedSince != nil,
      let layers = domains[location]?.snapshot.freeze(), let domain = domains[location]
    else { return nil }
    return ListRewriter.Start(domain: domain, layers: layers, through: journal?.lastSequence ?? 0)
  }

  /// Adopts a rewritten list: what it contains leaves the layers and the journal. Cost: O(locations
  /// and keys that changed in the last seconds), whatever the size of the list.
  /// - Returns: the journal files that the caller must remove.
  fileprivate mutating func finish(
    _ written: ListRewriter.Written, _ start: ListRewriter.Start, _ location: Location,
    _ log: (LogLine) -> Void
  ) -> [String] {
    guard var domain = domains.remove(location) else { return [] }
    domain.snapshot.finishRewrite(written.base, layers: start.layers)
    domain.identity = written.identity
    domain.size = Int(written.identity?.size ?? 0) + domain.size - start.domain.size
    domain.recent.forget()
    (domain.format, domain.owners) = (written.format, written.owners)
    domain.failure = nil
    let isSaved = domain.lastEdit <= start.through
    if isSaved, !written.base.values.isEmpty { domain.snapshot.exists = true }
    domain.unsavedSince = isSaved ? nil : .now
    domain.firstUnsaved = start.through + 1
    domains[location] = domain
    upkeep.hasReleased = true
    return release(location, through: start.through, written.identity, log)
  }

  private mutating func release(
    _ location: Location, through: UInt64, _ identity: FileIdentity?, _ log: (LogLine) -> Void
  ) -> [String] {
    do throws(SystemError) {
      // Where the journal cannot be emptied, it must say that the list has these records: if they
      // were replayed once more, they would undo what others change in the list meanwhile.
      if oldestUnsaved != nil || requests.oldestUnanswered(.now) != nil {
        _ = try journal?.append(.checkpoint(location, through: through, identity))
      }
      return try releaseJournal()
    } catch {
      // The records stay; replaying them again changes nothing.
      log("the journal could not be shortened: \(error)")
      return []
    }
  }
}
