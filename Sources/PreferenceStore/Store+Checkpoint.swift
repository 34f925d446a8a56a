import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

extension Store {
  /// Rewrites the location's list with every change so far, and releases the journal.
  ///
  /// Blocks for two fsync(2). Somebody else's list, replaced since we read ours or while ours is
  /// written, is taken in first (`refresh`). Throws, with the list as it was and the changes still
  /// in the journal, when the list cannot be read, written or made durable; writers of the location
  /// get that error until a rewrite succeeds. One thread at a time.
  public func checkpoint(_ location: Location) throws(EngineError) {
    startSegment()
    for attempt in 1...Self.mostAttempts {
      guard state.withLock({ $0.domains[location]?.unsavedSince != nil }) else { return }
      refresh(location)
      guard let start = state.withLock({ $0.freeze(location) }) else { return }
      do {
        try rewrite(start, location)
        return
      } catch  where error.reason == .system(Self.changedMeanwhile) && attempt < Self.mostAttempts {
        continue
      } catch  where error.reason == .system(.wouldBlock) {
        // Another process rewrites there just now: nothing is wrong.
        collapse(start, location)
        throw error
      } catch {
        collapse(start, location)
        state.withLock { $0.domains[location]?.failure = error }
        throw error
      }
    }
  }

  /// How often a list that others keep changing is taken in before the rewrite is put off.
  private static let mostAttempts = 6

  /// C: ESTALE. Somebody else replaced the list that was to be rewritten.
  private static let changedMeanwhile = Errno(rawValue: ESTALE)

  /// After a rewrite that failed: attempts do not pile layers up.
  private func collapse(_ start: Start, _ location: Location) {
    guard start.layers > 1 else { return }
    let layer = start.domain.snapshot.collapsed()
    state.withLock { $0.domains[location]?.snapshot.replaceLayers(start.layers, with: layer) }
  }

  /// Removes files of the journal, and empties the present one if that leaves nothing in it. What
  /// fails is tried again with the next rewrite.
  func remove(_ paths: [String]) {
    guard !paths.isEmpty else { return }
    do throws(SystemError) {
      for path in paths {
        try Files.remove(path)
        state.withLock { $0.journal?.forget(path) }
      }
      _ = try state.withLock { state throws(SystemError) in try state.releaseJournal() }
    } catch {
      log("the journal could not be shortened: \(error)")
    }
  }

  /// What a rewrite began with; held until its end, so that what it replaces is freed outside of
  /// the lock.
  struct Start {
    /// With frozen layers, and an empty one on top.
    var domain: Domain
    var layers: Int
    /// The last record that the layers have.
    var through: UInt64
  }

  /// A journal file that has grown large is followed by a new one, so that it can be removed when
  /// the lists have what it holds. The file is made outside of the lock.
  private func startSegment() {
    guard let number = state.withLock({ $0.journal?.reserveSegment() }) else { return }
    do throws(SystemError) {
      let segment = try Journal.Fresh(layout.stateDirectory, number)
      state.withLock { $0.journal?.begin(segment) }
    } catch {
      log("the journal goes on in its large file: \(error)")
    }
  }

  /// A list after its rewrite.
  struct Written {
    var base: DomainSnapshot.Base
    var identity: FileIdentity?
    var format: Format
    /// There was no room for what is kept beside the list.
    var lacksMetadata = false
  }

  private func rewrite(_ start: Start, _ location: Location) throws(EngineError) {
    let domain = start.domain
    if let failure = domain.failure, failure.reason == .unreadable { throw failure }
    if domain.sharesRecord { try synchronize() }
    let written = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try write(domain, location)
    }
    remove(state.withLock { $0.finish(written, start, location, log) })
    guard written.lacksMetadata else { return }
    // The journal has made room meanwhile.
    do throws(SystemError) {
      try write(written.base, identity: written.identity, location)
    } catch {
      log("\(location): spellings and times of its keys are not kept: \(error)")
    }
  }

  /// Writes list and metadata, under the lock of the list's directory.
  private func write(_ domain: Domain, _ location: Location) throws(SystemError) -> Written {
    let file = ListFile(path: layout.path(location))
    let directory = Files.parent(of: file.path)
    try Files.makeDirectories(directory, mode: layout.isEverybodys(location.place) ? 0o755 : 0o700)
    let lock = try ListLock(layout.lockPath(location), directory: directory)
    defer { lock.unlock() }
    tidy([directory, Files.parent(of: layout.metadataPath(location))])
    try requireUnchanged(file, domain)
    var base = domain.snapshot.merged(onto: domain.snapshot.base)
    // As the list will have them: the next rewrite finds its keys nearly in order.
    base.values.sort()
    var written = Written(base: base, identity: domain.identity, format: domain.format)
    if !domain.snapshot.changesList, domain.identity != nil {
      try write(base, identity: domain.identity, location)
    } else if domain.snapshot.exists || !base.values.isEmpty {
      try replace(file, domain, &written, location)
    } else {
      try file.remove()
      try MetadataFile(path: layout.metadataPath(location)).remove()
      written.identity = nil
    }
    return written
  }

  private func requireUnchanged(_ file: ListFile, _ domain: Domain) throws(SystemError) {
    guard try file.identity() == domain.identity else {
      throw SystemError("rename", file.path, Self.changedMeanwhile)
    }
  }

  /// Once for each directory: what a crash left there goes.
  private func tidy(_ directories: [String]) {
    for directory in directories
    where state.withLock({ $0.tidied.insert(directory).inserted }) {
      do throws(SystemError) {
        try ListFile.removeLeftovers(in: directory)
      } catch {
        log("a leftover of a crash stays: \(error)")
      }
    }
  }

  private func replace(
    _ file: ListFile, _ domain: Domain, _ written: inout Written, _ location: Location
  ) throws(SystemError) {
    let (bytes, format) = encode(written, location)
    let base = written.base
    let mode: mode_t = layout.isEverybodys(location.place) ? 0o644 : 0o600
    written.format = format
    var lacksMetadata = false
    written.identity = try file.replace(with: bytes, mode: mode) { identity throws(SystemError) in
      do throws(SystemError) {
        try write(base, identity: identity, location)
      } catch  where error.errno == .noSpace {
        // The journal may be what fills that disk: it can go once the list is written.
        lacksMetadata = true
      }
      try requireUnchanged(file, domain)
    }
    written.lacksMetadata = lacksMetadata
  }

  /// Writes what is kept beside the list.
  private func write(
    _ base: DomainSnapshot.Base, identity: FileIdentity?, _ location: Location
  ) throws(SystemError) {
    try MetadataFile(path: layout.metadataPath(location)).write(
      MetadataFile.Contents(identity: identity, modified: base.modified, keys: base.metadata))
  }

  /// The list in its format; old-style becomes XML, and what the format cannot hold, or not in a
  /// list that can be read again, binary.
  private func encode(_ written: Written, _ location: Location) -> ([UInt8], Format) {
    let value = Value.dictionary(written.base.values)
    let format = written.format == .openStep ? .xml : written.format
    do throws(FormatError) {
      let bytes = try Document.write(value, as: format)
      if bytes.count <= ListFile.largest { return (bytes, format) }
      log("\(location.domain): the list is now a binary one, because it is larger than 1 GiB")
    } catch {
      log("\(location.domain): the list is now a binary one, because \(error)")
    }
    return (Document.binary(value), .binary)
  }
}

extension Store.State {
  /// What a rewrite begins with; nil where nothing is unsaved.
  fileprivate mutating func freeze(_ location: Location) -> Store.Start? {
    guard domains[location]?.unsavedSince != nil,
      let layers = domains[location]?.snapshot.freeze(), let domain = domains[location]
    else { return nil }
    return Store.Start(domain: domain, layers: layers, through: journal?.lastSequence ?? 0)
  }

  /// Takes in a rewritten list: what it contains leaves the layers and the journal. Cost: O(1).
  /// - Returns: the journal's files that are to be removed.
  fileprivate mutating func finish(
    _ written: Store.Written, _ start: Store.Start, _ location: Location, _ log: (String) -> Void
  ) -> [String] {
    guard var domain = domains.removeValue(forKey: location) else { return [] }
    domain.snapshot.finishRewrite(written.base, layers: start.layers)
    domain.identity = written.identity
    domain.size = Int(written.identity?.size ?? 0) + domain.size - start.domain.size
    domain.recent.forget()
    domain.format = written.format
    domain.failure = nil
    domain.sharesRecord = domain.lastEdit > start.through && domain.sharesRecord
    let isSaved = domain.lastEdit <= start.through
    if isSaved, !written.base.values.isEmpty { domain.snapshot.exists = true }
    domain.unsavedSince = isSaved ? nil : .now
    domain.firstUnsaved = start.through + 1
    domains[location] = domain
    return release(location, through: start.through, written.identity, log)
  }

  private mutating func release(
    _ location: Location, through: UInt64, _ identity: FileIdentity?, _ log: (String) -> Void
  ) -> [String] {
    do throws(SystemError) {
      // Where the journal is not emptied it must say that the list has what it holds: replayed once more,
      // it would undo what others change in the list.
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

  /// The first record that is not in a list.
  private var oldestUnsaved: UInt64? {
    let unsaved = domains.values.filter { $0.unsavedSince != nil }.map(\.firstUnsaved)
    return (unsaved + pending.values.compactMap { $0.first?.sequence }).min()
  }

  /// Lets go of the records that the lists have.
  /// - Returns: the journal's files that are to be removed.
  mutating func releaseJournal() throws(SystemError) -> [String] {
    let unanswered = requests.oldestUnanswered(.now)
    releaseAt = unanswered == nil ? nil : requests.endOfPatience
    let oldest = [oldestUnsaved, unanswered].compactMap { $0 }.min()
    return try journal?.release(through: oldest.map { $0 - 1 } ?? .max) ?? []
  }
}
