import PreferenceTree

// Names that the announcer creates and removes: its requests change nothing.

extension Driver {
  /// Looks a name up. For the announcer, a name that it is about to create is missing, and a name
  /// that it is about to remove is there, so that the kernel carries its operation out.
  func lookup(
    _ context: RequestContext, _ parent: NodeID, _ name: [UInt8]
  ) throws(TreeError) -> Answer {
    let announcement = context.announcement(of: name)
    switch announcement?.kind {
    case .created: return .missing(isCacheable: false)
    case .removed:
      let isDomain = announcement?.isDomain == true
      return .entry(
        try forest[parent].ghost(isDirectory: isDomain, of: announcement?.removed, now: .now))
    case .changed: break
    case nil: forest[parent].noteLookup(in: parent)
    }
    switch try forest.lookup(parent, name, now: .now) {
    case .found(let entry): return .entry(entry)
    case .missing(let isCacheable): return .missing(isCacheable: isCacheable)
    }
  }

  /// Returns the existing entry for a name that the announcer creates; nil for any other request.
  /// Throws `.missing` if the name is gone again.
  func createdEntry(
    _ context: RequestContext, _ parent: NodeID, _ name: [UInt8]
  ) throws(TreeError) -> Entry? {
    guard context.announcement(of: name)?.kind == .created else { return nil }
    guard case .found(let entry) = try forest.lookup(parent, name, now: .now) else {
      throw .missing
    }
    return entry
  }

  /// Returns whether the announcer is removing a name that is already gone, so that nothing need be
  /// removed. Throws `.exists` if the name is there again: the refusal keeps the kernel from
  /// forgetting it.
  func isGhost(
    _ context: RequestContext, _ parent: NodeID, _ name: [UInt8]
  ) throws(TreeError) -> Bool {
    guard context.announcement(of: name)?.kind == .removed else { return false }
    if case .found(let entry)? = try? forest.lookup(parent, name, now: .now) {
      forest[entry.node].forget(entry.node, 1)
      throw .exists
    }
    return true
  }
}
