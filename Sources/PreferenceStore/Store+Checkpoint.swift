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
  public func checkpoint(_ location: Location) throws(EngineError) -> Changeset {
    let start = state.withLock { state -> (Domain, UInt64)? in
      if state.journal?.isLarge == true {
        do { try state.journal?.rotate() } catch {}
      }
      guard let domain = state.domains[location], domain.unsavedSince != nil else { return nil }
      return (domain, state.journal?.lastSequence ?? 0)
    }
    guard let (domain, through) = start else { return Changeset() }
    do {
      if domain.sharesRecord { try synchronize() }
      let written = try rewrite(domain, location)
      return state.withLock { $0.finish(written, location, through: through, log) }
    } catch {
      state.withLock { $0.domains[location]?.failure = error }
      throw error
    }
  }

  /// A list after its rewrite.
  struct Written {
    var values: [Key: Value]
    var identity: FileIdentity?
    var format: Format
    var outside: [Edit]
    var outsideTime: Timestamp
  }

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
    var written = try merge(domain, location)
    written.identity = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      if domain.snapshot.exists || !written.values.isEmpty {
        return try replace(written, domain.snapshot, location)
      }
      try ListFile(path: path).remove()
      try MetadataFile(path: layout.metadataPath(location)).remove()
      return nil
    }
    return written
  }

  /// The present list, if it is another than we know, with our unsaved changes on top.
  private func merge(_ domain: Domain, _ location: Location) throws(EngineError) -> Written {
    let path = layout.path(location)
    let snapshot = domain.snapshot
    var written = Written(
      values: [:], identity: domain.identity, format: domain.format, outside: [],
      outsideTime: snapshot.modified)
    let identity = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try ListFile(path: path).identity()
    }
    guard identity != domain.identity else {
      written.values = snapshot.merged(onto: snapshot.base)
      return written
    }
    let theirs = try read(path, location)
    let base = theirs?.values ?? [:]
    written.format = theirs?.format ?? domain.format
    written.outsideTime = theirs?.identity.modified ?? .now
    for key in Set(base.keys).union(snapshot.base.keys) where snapshot.overlay[key] == nil {
      guard base[key] != snapshot.base[key] else { continue }
      written.outside.append(base[key].map { .set(key, $0, .unknown) } ?? .remove(key))
    }
    written.values = snapshot.merged(onto: base)
    return written
  }

  private func replace(
    _ written: Written, _ snapshot: DomainSnapshot, _ location: Location
  ) throws(SystemError) -> FileIdentity {
    let file = ListFile(path: layout.path(location))
    let metadata = MetadataFile(path: layout.metadataPath(location))
    let mode: mode_t = location.place == .anyUser || location.place == .managed ? 0o644 : 0o600
    return try file.replace(with: encode(written, location), mode: mode) {
      identity throws(SystemError) in
      try metadata.write(
        MetadataFile.Contents(
          identity: identity, modified: snapshot.modified, keys: snapshot.metadata))
    }
  }

  /// The list in its format; old-style becomes XML, and what the format cannot hold binary.
  private func encode(_ written: Written, _ location: Location) -> [UInt8] {
    let value = Value.dictionary(written.values)
    do throws(FormatError) {
      return try Document.write(value, as: written.format == .openStep ? .xml : written.format)
    } catch {
      log("\(location.domain): the list is now a binary one, because \(error)")
      return Document.binary(value)
    }
  }
}

extension Store.State {
  /// Takes in a rewritten list: what it contains leaves the overlay and the journal.
  fileprivate mutating func finish(
    _ written: Store.Written, _ location: Location, through: UInt64, _ log: (String) -> Void
  ) -> Changeset {
    guard var domain = domains.removeValue(forKey: location) else { return Changeset() }
    domain.snapshot.base = written.values
    domain.snapshot.overlay = domain.snapshot.overlay.filter { $0.value.sequence > through }
    domain.identity = written.identity
    domain.format = written.format == .openStep ? .xml : written.format
    domain.failure = nil
    domain.sharesRecord = domain.lastEdit > through && domain.sharesRecord
    var outside: [Changeset.Item] = []
    for edit in written.outside {
      outside.append(Changeset.Item(location, edit))
      if case .set(let key, _, _) = edit, domain.snapshot.overlay[key] == nil {
        domain.snapshot.metadata[key] = Metadata(text: nil, modified: written.outsideTime)
      }
    }
    let isSaved = domain.lastEdit <= through
    if isSaved, !written.values.isEmpty { domain.snapshot.exists = true }
    domain.unsavedSince = isSaved ? nil : .now
    domain.firstUnsaved = through + 1
    domains[location] = domain
    release(location, through: through, written.identity, log)
    return Changeset(outside, time: written.outsideTime)
  }

  private mutating func release(
    _ location: Location, through: UInt64, _ identity: FileIdentity?, _ log: (String) -> Void
  ) {
    let unsaved = domains.values.filter { $0.unsavedSince != nil }.map(\.firstUnsaved)
    let pending = pending.values.compactMap { $0.first?.sequence }
    do throws(SystemError) {
      guard let oldest = (unsaved + pending).min() else {
        try journal?.release(through: .max)
        return
      }
      _ = try journal?.append(.checkpoint(location, through: through, identity))
      try journal?.release(through: oldest - 1)
    } catch {
      // The records stay; replaying them again changes nothing.
      log("the journal could not be shortened: \(error)")
    }
  }
}
