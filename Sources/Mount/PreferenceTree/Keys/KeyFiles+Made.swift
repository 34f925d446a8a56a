import PreferenceModel
import SystemCalls

// Requests whose change a predecessor of this driver has made, and whose effects on the nodes it
// has not saved (`Transactor.made`). The engine has what came of the change, and nothing knows what
// was there before. So the nodes follow without values:
//
// - CREATE, MKNOD, LINK: that the key is there is no EEXIST. It gets its node, and its creator the
//   handle.
// - UNLINK: that the key is gone is no ENOENT. Its name is hidden for a second. RENAME of a key, also
//   over another one: the same, and its file gets the new name, whether or not that may replace one
//   (RENAME_NOREPLACE). RENAME_EXCHANGE: the files exchange their names.
// - RENAME and SETXATTR that make a key of a scratch file: the file becomes the key's. RENAME that
//   makes a domain of a scratch directory: the same, of all files in it.
// - RMDIR and RENAME of a domain: neither that the old one is gone nor that the new one is there is
//   an error.
//
// What is lost: a key that is made again under the hidden name has its former place, and not its
// former type and mode. A process that has the removed or replaced file open reads what the name
// shows now, or nothing.
//
// Other requests are carried out again: MKDIR, SETATTR (also O_TRUNC), SETXATTR of a type, UNLINK of
// a scratch file that a key was moved away to. They ask for the same changes, with the same numbers,
// so the owner makes none twice, and their answer does not depend on what was there before.

extension KeyFiles {
  /// Carries out unlink(2) of a key that a predecessor has removed.
  func followUnlink(
    _ name: String, in directory: any Directory, now: Moment
  ) throws(TreeError) {
    let path = try formerPath(name, in: directory)
    try unlink(path, former(path), now: now)
  }

  /// Carries out rename(2) of a file to the name of a key, which a predecessor has made.
  func followRename(
    _ oldName: String, in source: any Directory, to directory: any Directory,
    _ newName: String, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    let new = try formerPath(newName, in: directory)
    if let node = scratchFile(oldName, in: source) {
      try setKey(new, from: node, now: now)
      // It may have replaced a scratch file, which the key hides by now.
      let hidden = table[ScratchPath(parent: directory.scratchParent, name: newName)]
      if let hidden, removedNames.source(of: hidden.id) == nil { scratch.remove(hidden, now: now) }
      return
    }
    let old = try formerPath(oldName, in: source)
    let displaced = mode == .exchange ? nil : try values.displaced(new)
    try transactor.transact([], touching: [old, new], isDecisive: true) { _ in
      if mode == .exchange { return exchangeFiles(old, new) }
      moveFile(
        from: old, former(old), to: new, over: displaced, displaced.map { _ in now.time }, now: now)
    }
  }

  /// The scratch file that the name meant before, if it was no key's.
  private func scratchFile(_ name: String, in directory: any Directory) -> Node? {
    let path = try? formerPath(name, in: directory)
    if let path, table[path] != nil { return nil }
    return table[ScratchPath(parent: directory.scratchParent, name: name)]
  }

  /// The key that a name meant before; throws ENOENT if it meant none.
  private func formerPath(
    _ name: String, in directory: any Directory
  ) throws(TreeError) -> KeyPath {
    if let path = try directory.keyPath(name, engine) { return path }
    // The engine finds no key of a shortened name that is gone.
    guard case .domain(let domain) = directory.scratchParent, let items = transactor.made?.items,
      let key = items.compactMap({ $0.edit.key }).first(where: { NameCodec.encode($0) == name })
    else { throw .missing }
    return KeyPath(domain: domain, key: key)
  }

  /// What is known of a key that a predecessor has removed.
  private func former(_ path: KeyPath) -> RemovedNames.Former {
    let removal = transactor.made?.items.first { item in
      item.edit == .remove(path.key) && item.location.domain == path.domain
    }
    return RemovedNames.Former(place: removal?.location.place)
  }

  /// The domain of a name, which a predecessor may have removed or renamed; nil if there is none.
  func formerDomain(_ name: String) throws(TreeError) -> DomainName? {
    if let domain = try engine.domain(named: name) { return domain }
    return transactor.made?.items.first { item in
      item.edit == .removeDomain && NameCodec.encode(item.location.domain.key) == name
    }?.location.domain
  }
}
