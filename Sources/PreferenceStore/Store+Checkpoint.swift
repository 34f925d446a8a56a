import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

extension Store {
  /// Rewrites the location's list with every change so far, and releases the journal.
  ///
  /// Blocks for two fsync(2). Somebody else's list, replaced since we read ours, is read again and
  /// merged key by key: our unsaved changes win. Throws, with the list as it was and the changes
  /// still in the journal, when the list cannot be read, written or made durable; writers of the
  /// location get that error until a rewrite succeeds. One thread at a time.
  /// - Returns: what somebody else had changed.
  public func checkpoint(_ location: Location) throws(EngineError) -> TracedChangeset {
    startSegment()
    let start = state.withLock { state -> Start? in
      guard state.domains[location]?.unsavedSince != nil,
        let layers = state.domains[location]?.snapshot.freeze(),
        let domain = state.domains[location]
      else { return nil }
      return Start(domain: domain, layers: layers, through: state.journal?.lastSequence ?? 0)
    }
    guard let start else { return TracedChangeset() }
    do {
      if start.domain.sharesRecord { try synchronize() }
      let written = try rewriteUnchanged(start.domain, location)
      let (changeset, released) = state.withLock { $0.finish(written, start, location, log) }
      remove(released)
      return changeset
    } catch {
      let layer = start.layers > 1 ? start.domain.snapshot.collapsed() : nil
      state.withLock { state in
        state.domains[location]?.failure = error
        if let layer {
          state.domains[location]?.snapshot.replaceLayers(start.layers, with: layer)
        }
      }
      throw error
    }
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
    var outside: [Edit]
    var outsideTime: Timestamp
    /// The list that was merged with; another one in its place is merged with, too.
    var seen: FileIdentity?
    /// Whether the list is as we last read or wrote it.
    var isUntouched = true
  }

  /// Rewrites again when somebody else changed the list meanwhile.
  private func rewriteUnchanged(
    _ domain: Domain, _ location: Location
  ) throws(EngineError) -> Written {
    for _ in 0..<5 {
      do {
        return try rewrite(domain, location)
      } catch  where error.reason == .system(Self.changedMeanwhile) {
        continue
      }
    }
    return try rewrite(domain, location)
  }

  /// C: ESTALE.
  private static let changedMeanwhile = Errno(rawValue: ESTALE)

  private func rewrite(_ domain: Domain, _ location: Location) throws(EngineError) -> Written {
    let path = layout.path(location)
    let directory = Files.parent(of: path)
    let lock = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try Files.makeDirectories(directory, mode: location.place == .anyUser ? 0o755 : 0o700)
      return try Descriptor(opening: directory, O_RDONLY | O_DIRECTORY)
    }
    _ = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try lock.lockExclusively(waiting: true)
    }
    tidy([directory, Files.parent(of: layout.metadataPath(location))])
    var written = try merge(domain, location)
    let isSameList = !domain.snapshot.changesList && written.identity != nil
    written.identity = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      if isSameList, written.isUntouched {
        try write(written.base, identity: written.identity, location)
        return written.identity
      }
      if domain.snapshot.exists || !written.base.values.isEmpty {
        return try replace(written, location)
      }
      try ListFile(path: path).remove()
      try MetadataFile(path: layout.metadataPath(location)).remove()
      return nil
    }
    return written
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

  /// The present list, if it is another than we know, with our unsaved changes on top.
  private func merge(_ domain: Domain, _ location: Location) throws(EngineError) -> Written {
    let path = layout.path(location)
    let snapshot = domain.snapshot
    var written = Written(
      base: snapshot.base, identity: domain.identity, format: domain.format, outside: [],
      outsideTime: snapshot.base.modified)
    let identity = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try ListFile(path: path).identity()
    }
    written.seen = identity
    if identity != domain.identity {
      let theirs = try read(path, location)
      written.format = theirs?.format ?? domain.format
      written.outsideTime = theirs?.identity.modified ?? .now
      written.take(theirs?.values ?? [:], unless: snapshot)
      written.isUntouched = false
    }
    written.base = snapshot.merged(onto: written.base)
    return written
  }

  private func replace(
    _ written: Written, _ location: Location
  ) throws(SystemError) -> FileIdentity {
    let file = ListFile(path: layout.path(location))
    let mode: mode_t = location.place == .anyUser || location.place == .managed ? 0o644 : 0o600
    return try file.replace(with: encode(written, location), mode: mode) {
      identity throws(SystemError) in
      try write(written.base, identity: identity, location)
      if try file.identity() != written.seen {
        throw SystemError("rename", file.path, Self.changedMeanwhile)
      }
    }
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
  private func encode(_ written: Written, _ location: Location) -> [UInt8] {
    let value = Value.dictionary(written.base.values)
    do throws(FormatError) {
      let bytes = try Document.write(
        value, as: written.format == .openStep ? .xml : written.format)
      if bytes.count <= ListFile.largest { return bytes }
      log("\(location.domain): the list is now a binary one, because it is larger than 1 GiB")
    } catch {
      log("\(location.domain): the list is now a binary one, because \(error)")
    }
    return Document.binary(value)
  }
}

extension Store.Written {
  /// Takes somebody else's values into the base, and notes how they differ; of keys that we have
  /// changed ours will win.
  fileprivate mutating func take(_ theirs: [Key: Value], unless snapshot: DomainSnapshot) {
    for key in Set(theirs.keys).union(base.values.keys) {
      guard theirs[key] != base.values[key] else { continue }
      base.metadata[key] = theirs[key].map { _ in
        Metadata(text: nil, modified: outsideTime, mode: base.metadata[key]?.mode)
      }
      guard !snapshot.isChanged(key) else { continue }
      outside.append(theirs[key].map { .set(key, $0, .unknown) } ?? .remove(key))
    }
    base.values = theirs
  }
}

extension Store.State {
  /// Takes in a rewritten list: what it contains leaves the layers and the journal. Cost: O(what
  /// somebody else changed).
  /// - Returns: what somebody else changed, and the journal's files that are to be removed.
  fileprivate mutating func finish(
    _ written: Store.Written, _ start: Store.Start, _ location: Location, _ log: (String) -> Void
  ) -> (TracedChangeset, released: [String]) {
    guard var domain = domains.removeValue(forKey: location) else { return (TracedChangeset(), []) }
    domain.snapshot.finishRewrite(written.base, layers: start.layers)
    domain.identity = written.identity
    domain.size = Int(written.identity?.size ?? 0) + domain.size - start.domain.size
    domain.recent.forget()
    domain.format = written.format == .openStep ? .xml : written.format
    domain.failure = nil
    domain.sharesRecord = domain.lastEdit > start.through && domain.sharesRecord
    let isSaved = domain.lastEdit <= start.through
    if isSaved, !written.base.values.isEmpty { domain.snapshot.exists = true }
    domain.unsavedSince = isSaved ? nil : .now
    domain.firstUnsaved = start.through + 1
    domains[location] = domain
    let outside = written.outside.map { Changeset.Item(location, $0) }
    return (
      TracedChangeset(
        Changeset(outside, time: written.outsideTime), hadKey: outside.map { hadKey($0, start) }),
      release(location, through: start.through, written.identity, log)
    )
  }

  private func hadKey(_ item: Changeset.Item, _ start: Store.Start) -> Bool {
    switch item.edit {
    case .set(let key, _, _), .remove(let key), .describe(let key, _):
      start.domain.snapshot.base.values[key] != nil
    case .createDomain, .removeDomain: false
    }
  }

  private mutating func release(
    _ location: Location, through: UInt64, _ identity: FileIdentity?, _ log: (String) -> Void
  ) -> [String] {
    do throws(SystemError) {
      if oldestUnsaved != nil {
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
    try journal?.release(through: oldestUnsaved.map { $0 - 1 } ?? .max) ?? []
  }
}
