import PreferenceModel
import SystemCalls

// Makes domains of tools' temporary directories.

extension KeyFiles {
  /// Carries out rename(2) of a tool's temporary directory at the root to the name of a domain:
  /// syncing tools make a new directory so. The domain and the keys that the files become are one
  /// transaction; the directory becomes the domain's. Files with names by pattern stay scratch
  /// files.
  ///
  /// Throws where nothing is changed: EEXIST and ENOTEMPTY, if the domain is there or has keys;
  /// EPERM, if there is something else than files, or a text that is not a value of the type that a
  /// schema demands.
  func makeDomain(
    _ name: String, of node: Node, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    guard node.type == .directory, mode != .exchange else {
      throw log.refused(
        .refused("\(node.subject): only a directory can become a domain, and not by an exchange"))
    }
    let domain = DomainName(try newKey(name, name).string)
    let (keys, others) = try contents(of: node, in: domain)
    var intents: [Intent] = []
    if transactor.made == nil {
      if try !hasEmpty(domain, mode, now: now) { intents.append(.createDomain(domain)) }
      for (file, path) in keys { intents += try making(path, of: file) }
    }
    try transactor.transact(
      intents, touching: Set(keys.map(\.path)), isDecisive: true, isNew: true
    ) { _ in
      _ = removedNames.forgetAll(in: domain)
      _ = kernel.answered.forget([domain])
      table.remove(domain)
      table.makeDomain(node, domain)
      for (file, path) in keys { makeKey(path, of: file, now: now) }
      for (name, file) in others {
        table.rename(file, to: ScratchPath(parent: .domain(domain), name: name))
        scratch.note(.inDoubt, of: file, at: now.instant)
      }
    }
    node.changed = now.time
    kernel.rootChanged(at: now.time)
    kernel.entriesChanged(domain, at: now.time)
  }

  /// What the files of a temporary directory become in the domain: keys, and scratch files.
  private func contents(
    of node: Node, in domain: DomainName
  ) throws(TreeError) -> (keys: [(file: Node, path: KeyPath)], others: [(name: String, file: Node)])
  {
    var keys: [(file: Node, path: KeyPath)] = []
    var others: [(name: String, file: Node)] = []
    let files = table.scratchNodes(in: .directory(node.id)).sorted { $0.name < $1.name }
    for (name, file) in files {
      guard file.type == .file else {
        throw log.refused(
          .refused("\(domain): a domain has no directories and links, but this one has \(name)"))
      }
      if NameCodec.decode(name) == .scratch {
        others.append((name, file))
      } else {
        let escaped = NameCodec.keyOfEscaped(name)
        let key = if let escaped { escaped } else { try newKey(name, "\(domain) \(name)") }
        keys.append((file, table.stored(KeyPath(domain: domain, key: key))))
      }
    }
    return (keys, others)
  }

  /// Whether a list of the domain is there, without keys; false if there is none. Throws EEXIST if
  /// the domain must be new, and ENOTEMPTY if it has keys or scratch files.
  private func hasEmpty(
    _ domain: DomainName, _ mode: RenameMode, now: Moment
  ) throws(TreeError) -> Bool {
    if mode == .keep, try asTreeError({ () throws(EngineError) in try engine.hasDomain(domain) }) {
      throw .exists
    }
    // A key that was moved away is there until then.
    completeMoves(from: domain, now: now)
    let (hasKeys, hasLists) = try asTreeError { () throws(EngineError) in
      (try !engine.keys(of: domain).isEmpty, try engine.modified(domain) != nil)
    }
    guard !hasKeys, table.scratchNodes(in: .domain(domain)).isEmpty else {
      throw log.refused(.notEmpty("\(domain): it has keys or temporary files"))
    }
    return hasLists || domain == .global
  }

  /// The intents that make a new key of a scratch file.
  private func making(_ path: KeyPath, of file: Node) throws(TreeError) -> [Intent] {
    guard let scratch = file.scratch, let text = scratch.text else { return [] }
    let description = Description(
      mode: scratch.mode, modified: scratch.hasOwnTime ? file.modified : nil)
    let described = Intent.describe(path.key, path.domain, description)
    return expectNone(path) + [try setting(path, to: text, existing: nil, of: scratch)]
      + (description.isEmpty ? [] : [described])
  }

  private func makeKey(_ path: KeyPath, of file: Node, now: Moment) {
    let scratch = file.scratch
    let wanted = scratch?.text?.isEmpty == true ? scratch?.wantedKind : nil
    if let name = scratch?.path.name, name != NameCodec.encode(path.key),
      let parent = table[path.domain]
    {
      // The kernel knows the key by a name that listings do not have.
      kernel.append(.invalidateEntry(parent: parent.id, name: name))
    }
    table.makeKey(file, path)
    file.changed = now.time
    if let wanted { KeyFile(file, path).wantedKind = wanted }
    kernel.invalidateFile(file.id)
  }
}
