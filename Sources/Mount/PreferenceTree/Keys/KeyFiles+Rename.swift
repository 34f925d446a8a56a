import PreferenceModel
import PropertyList
import SystemCalls

// rename(2) and renameat2(2) of keys and domains. Each is one transaction of the engine.

extension KeyFiles {
  /// Renames a key, in its directory or to another directory.
  func renameKey(
    _ old: KeyPath, to directory: any Directory, _ name: String, _ mode: RenameMode,
    now: Moment
  ) throws(TreeError) {
    let target = try find(name, in: directory, now: now)
    if case .key(let new, _) = target {
      if old != new { try replace(old, new, mode, now: now) }
      return
    }
    let verdict = scratch.judge(
      name, in: directory, .rename, renamed: NameCodec.encode(old.key))
    if verdict != .key || target.isScratch {
      let path = ScratchPath(parent: directory.scratchParent, name: name)
      try moveAway(old, to: path, verdict, mode, now: now)
    } else {
      try replace(old, try newPath(name, in: directory), mode, now: now)
    }
  }

  private func replace(
    _ old: KeyPath, _ new: KeyPath, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    // Where somebody else has changed the key, its new value is renamed.
    try repeated { () throws(TreeError) -> Void in
      if mode == .exchange { return try exchange(old, new, now: now) }
      return try rename(old, to: new, mode, now: now)
    }
  }

  /// Renames a key to a new name, or over another key, which keeps its type. Throws
  /// `.changedMeanwhile` if its value has changed since it was read.
  private func rename(
    _ old: KeyPath, to new: KeyPath, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    guard let source = try decided(old, now: now) else { throw .missing }
    if mode == .keep, try values.resolve(new, now: now) != nil { throw .exists }
    let target = try values.target(new, now: now)
    let text = values.sourceText(source)
    let kind = target?.kind ?? removedNames.former(new)?.kind
    let value = try self.value(source, text, as: kind, over: target?.value, new)
    let displaced = try values.displaced(new)
    let former = RemovedNames.Former(old, source)
    let made: [Intent] = [
      .set(new.key, new.domain, value, values.written(text, value)),
      .describe(
        new.key, new.domain, Description(mode: source.mode, modified: source.modified)),
    ]
    // A key that was moved away a moment ago is still there, and is replaced.
    let isNew = mode == .keep && !removedNames.isMovedAway(new)
    let expected = expectUnchanged(old, source) + (isNew ? expectNone(new) : [])
    let intents = target == nil ? inFormerPlace(new, made, from: former) : made
    try transactor.transact(
      expected + intents + [.remove(old.key, old.domain)], touching: [old, new], isDecisive: true
    ) { _ in
      moveFile(from: old, former, to: new, over: displaced, target?.modified, now: now)
    }
  }

  /// Gives the file of a key that was renamed its new name.
  /// - Parameters:
  ///   - former: what the key was under its old name.
  ///   - displaced: the file that had the new name.
  ///   - modified: when the key of the new name was last changed; nil if there was none.
  func moveFile(
    from old: KeyPath, _ former: RemovedNames.Former, to new: KeyPath,
    over displaced: ValueReader.Displaced?, _ modified: Timestamp?, now: Moment
  ) {
    values.detach(displaced, at: modified ?? now.time)
    removedNames.forget(new)
    if let file = table[old]?.keyFile {
      values.dropCachedText(file)
      file.editor = nil
      if modified != nil { file.creation = nil }
      file.node.changed = now.time
      table.rename(file, to: new)
      kernel.invalidateFile(file.id)
    }
    hideName(old, former, now: now)
  }

  /// The intents by which the engine refuses a change that was made of the key's value, if that is a
  /// different one now.
  private func expectUnchanged(_ path: KeyPath, _ found: Resolution) -> [Intent] {
    guard !options.isGenerated, found.location.place.isPersistent else {
      return []
    }
    return [.expectUnchanged(path.key, found.location, since: found.modified)]
  }

  /// Ends the phase of text that is being written to the key, and returns the key's value; nil if
  /// no place has the key. Throws EINVAL, which `Tree.rename` makes EPERM, if the text is
  /// incomplete.
  func decided(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    if let file = table[path]?.keyFile { try texts.decide(file, now: now) }
    return try values.resolve(path, now: now)
  }

  /// Returns the value that a key has after a rename: the source's, read as the type of the new
  /// name.
  private func value(
    _ source: Resolution, _ text: [UInt8], as kind: Kind?, over old: Value?, _ new: KeyPath
  ) throws(TreeError) -> Value {
    // In `-o format=json` dates and data are strings. The replaced value tells which they are.
    let template = options.style == .json ? old : nil
    guard let kind, kind != source.kind || template != nil else { return source.value }
    if let value = Recogniser.value(
      of: text, kind: kind, template: template, shown: old, null: options.null)
    {
      return value
    }
    guard old != nil else { return source.value }
    throw wrongType(new, kind)
  }

  /// Exchanges the values of two keys. Their types go along.
  private func exchange(_ one: KeyPath, _ other: KeyPath, now: Moment) throws(TreeError) {
    guard let first = try decided(one, now: now), let second = try decided(other, now: now) else {
      throw .missing
    }
    let (firstText, secondText) = (values.sourceText(first), values.sourceText(second))
    let intents =
      expectUnchanged(one, first) + expectUnchanged(other, second) + [
        .set(other.key, other.domain, first.value, values.written(firstText, first.value)),
        .set(one.key, one.domain, second.value, values.written(secondText, second.value)),
      ]
    try transactor.transact(intents, touching: [one, other], isDecisive: true) { _ in
      exchangeFiles(one, other)
    }
  }

  /// Exchanges the names of two files whose keys have exchanged their values.
  func exchangeFiles(_ one: KeyPath, _ other: KeyPath) {
    if let file = table[one]?.keyFile, let otherFile = table[other]?.keyFile {
      table.exchange(file, otherFile)
    }
    for file in [one, other].compactMap({ table[$0]?.keyFile }) {
      values.dropCachedText(file)
      file.editor = nil
      kernel.invalidateFile(file.id)
    }
  }

  /// Carries out rename(2) of a domain: its keys and scratch files go along.
  func renameDomain(
    _ oldName: String, to newName: String, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    guard let old = try formerDomain(oldName) else { throw .missing }
    guard let new = try engine.domain(named: newName) else {
      throw log.refused(.invalid("\(newName): not the canonical name of a domain"))
    }
    if old == new { return }
    if mode == .exchange { throw log.refused(.invalid("\(old): domains cannot be exchanged")) }
    if transactor.made == nil { try prepareRename(of: old, to: new, mode, now: now) }
    let changeset = try transactor.apply(
      transactor.judged([.renameDomain(old, to: new)]), isDecisive: true)
    _ = removedNames.forgetAll(in: new)
    table.remove(new)
    table.rename(old, to: new)
    for key in kernel.answered.forget([old]).map(\.key) + removedNames.forgetAll(in: old) {
      if let node = table[new] { kernel.invalidateEntry(node.id, key) }
    }
    kernel.rootChanged(at: changeset.time)
    kernel.entriesChanged(new, at: changeset.time)
    // The directory has no node any more if a successor found the old domain gone.
    if transactor.made != nil { kernel.invalidateEntry(table.root.id, new.key) }
    for item in changeset.items {
      if case .set(let key, _, _) = item.edit, let id = table[KeyPath(domain: new, key: key)]?.id {
        kernel.append(.invalidateAttributes(id))
      }
    }
    let removed = RemovedValues(of: changeset)
    for name in [old, new] {
      kernel.invalidateHeirs(of: name, at: changeset.time, removed: removed)
    }
    // The list of the settings says which suites domains have.
    let invalidated = Set(engine.shown(changeset).invalidated.map(\.domain))
    kernel.invalidate(invalidated, at: changeset.time, removed: removed)
  }

  /// Refuses a rename of a domain over one that is there, if it must not, or over temporary files.
  /// Completes the moves of keys of both.
  private func prepareRename(
    of old: DomainName, to new: DomainName, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    let isThere = try asTreeError { () throws(EngineError) in try engine.hasDomain(new) }
    if mode == .keep, isThere { throw .exists }
    completeMoves(from: old, now: now)
    completeMoves(from: new, now: now)
    guard table.scratchNodes(in: .domain(new)).isEmpty else {
      throw log.refused(.notEmpty("\(new): it has temporary files"))
    }
  }
}
