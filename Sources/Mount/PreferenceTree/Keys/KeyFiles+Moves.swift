import PreferenceModel
import PropertyList
import SystemCalls

// Turns keys into scratch files: see `RemovedNames`.

extension KeyFiles {
  /// Carries out rename(2) of a key to a scratch name. The mount shows the move at once; the engine
  /// keeps the key until it is clear whether the tool makes the key again.
  /// - Parameter verdict: what becomes of the scratch file if the key is made again.
  func moveAway(
    _ old: KeyPath, to new: ScratchPath, _ verdict: ScratchName.Verdict, _ mode: RenameMode,
    now: Moment
  ) throws(TreeError) {
    guard case .domain = new.parent, mode != .exchange else {
      throw log.refused(
        .refused("\(old): a key can be moved only to a domain, and exchanged only with a key"))
    }
    guard let source = try decided(old, now: now) else { throw .missing }
    guard !source.isReadOnly, source.location.domain == old.domain,
      engine.reaches(source.location, of: old.domain)
    else {
      let place = source.location.source(seenFrom: old.domain)
      throw log.refused(
        .refused("\(old): its value comes from the place \(place), which a rename cannot change"))
    }
    if table[new] != nil, mode == .keep { throw .exists }
    let node = table.node(of: old)
    let file = KeyFile(node, old)
    let text = try values.shownText(node)
    try scratch.checkRoom(for: text.count + ScratchSpace.overhead, new.name)
    try replaceScratch(table[new], now: now)
    values.dropCachedText(file)
    (node.modified, node.changed) = (source.modified, now.time)
    table.makeScratch(file, new, text: text, mode: source.mode)
    removedNames.noteMove(old, RemovedNames.Former(old, source), to: node.id, at: now.instant)
    node.scratch?.formerKind = source.kind
    scratch.note(verdict == .temporary ? verdict : .inDoubt, of: node, at: now.instant)
    kernel.entriesChanged(old.domain, at: now.time)
    kernel.entriesChanged(new.parent, at: now.time)
  }

  /// Completes the move of a key that was not made again within 5 s: the scratch file
  /// becomes a key under its own name. If that is refused, the key is there again under its old
  /// name, and the scratch file stays.
  private func completeMove(_ old: KeyPath, _ holder: NodeID, now: Moment) {
    guard let node = table[holder], let file = node.scratch, let text = file.text,
      case .domain(let domain) = file.path.parent, let source = try? values.resolve(old)
    else { return kernel.show(old, now: now) }
    let named: Key? =
      if case .key(let key) = NameCodec.decode(file.path.name) { key } else { nil }
    let new = KeyPath(domain: domain, key: named ?? Key(file.path.name))
    if new == old {
      table.makeKey(node, new)
      return
    }
    do throws(TreeError) {
      if named != nil, try values.resolve(new) != nil {
        throw log.refused(
          .refused("\(new): the key was made meanwhile, so \(old) is not moved to it"))
      }
      let intents = try renaming(old, to: new, file, text, source, node)
      try transactor.transact(intents, touching: named == nil ? [old] : [old, new]) { _ in
        if named != nil {
          table.makeKey(node, new)
        } else {
          scratch.remove(node, now: now)
          kernel.append(
            .invalidateEntry(parent: table[domain]?.id ?? table.root.id, name: file.path.name))
        }
      }
      kernel.append(.invalidateAttributes(node.id))
    } catch {
      // The refusal has been logged.
    }
    kernel.show(old, now: now)
  }

  /// Returns the intents that rename a key that was moved away, with the text, mode and time that
  /// the scratch file has now.
  private func renaming(
    _ old: KeyPath, to new: KeyPath, _ scratch: ScratchFile, _ text: [UInt8],
    _ source: Resolution, _ node: Node
  ) throws(TreeError) -> [Intent] {
    let isUnchanged = text == values.sourceText(source)
    let value = isUnchanged ? source.value : Recogniser.value(of: text, kind: source.kind)
    let set =
      if let value {
        Intent.set(new.key, new.domain, value, values.written(text, value))
      } else {
        try setting(new, to: text, existing: nil)
      }
    let modified = scratch.hasOwnTime ? node.modified : isUnchanged ? source.modified : nil
    let kept = Description(mode: scratch.mode ?? source.mode, modified: modified)
    let made = [set, .describe(new.key, new.domain, kept)]
    return inFormerPlace(new, made, from: RemovedNames.Former(old, source))
      + [.remove(old.key, old.domain)]
  }

  /// Makes a key again that was moved away: open(2) with O_CREAT. The key is as if it had been
  /// truncated.
  func remake(_ path: KeyPath, now: Moment) throws(TreeError) -> Node {
    removedNames.forget(path)
    let node = table.node(of: path)
    try texts.truncate(node, to: 0, handle: .none, now: now)
    kernel.entriesChanged(path.domain, at: now.time)
    return node
  }

  /// Does what the end of a removed name's time asks for.
  func carryOutEnding(_ ending: RemovedNames.Ending, now: Moment) {
    switch ending {
    case .show(let path): kernel.show(path, now: now)
    case .completeMove(let path, let holder): completeMove(path, holder, now: now)
    }
  }

  /// Completes the moves of keys of the domain that were moved away.
  func completeMoves(from domain: DomainName, now: Moment) {
    while let ending = removedNames.endNextMove(from: domain) { carryOutEnding(ending, now: now) }
  }
}
