import PreferenceHistory
import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

// Changes. Each is one transaction, which fails if somebody else has changed the key meanwhile.

extension BrowserStore {
  /// Where changes of a key may go, in the order in which it is looked for.
  private func locations(of id: EntryID) -> [Location] {
    (place.map { [$0] } ?? Place.own).map { Location($0, id.domain) }
  }

  /// What an edit of a key needs. Throws `.forced`, and says who forces it.
  func subject(_ id: EntryID) throws(EngineError) -> Subject {
    let (found, schema) = (try find(id), schemaKey(id))
    if let found, found.isForced, place == nil {
      let holders = try Explanation(engine, layout, owner).holders(of: id.key, in: id.domain)
      let file = holders.first.map { " in \($0.file)" } ?? ""
      throw EngineError(
        .forced, domain: id.domain, key: id.key, "an administrator has set it\(file)")
    }
    let all = locations(of: id)
    let own = try places.findFirst(id.key, in: all)
    let kind = schema?.kind ?? found?.kind ?? .string
    let isSecret = found.map { Secrecy(places).hides($0.value, of: id, schema) }
    var subject = Subject(
      id: id, value: found?.value,
      location: own?.location ?? all.last ?? Location(.user, id.domain),
      expected: own?.stored.value, kind: kind, rule: schema?.rule ?? kind.rawValue,
      isSecret: isSecret ?? (schema?.hasSecrets == true))
    guard let schema, kind != .array, kind != .dictionary else { return subject }
    subject.allowsOthers = !schema.hasBindingChoices
    subject.choices = schema.choices.enumerated().map { index, value in
      let title = schema.choiceTitles.indices.contains(index) ? schema.choiceTitles[index] : ""
      let text = ValueLine.short(value)
      let isSame = title.isEmpty || title == text
      return Subject.Choice(value: value, text: isSame ? text : "\(text)  \(title.printable())")
    }
    return subject
  }

  /// Why the schema refuses a value; nil if it does not.
  func objection(to value: Value, of id: EntryID) -> String? {
    engine.schema(of: id.domain)?.refusal(of: value, for: id.key)
  }

  /// Sets a key.
  /// - Parameter isShown: whether the line of the change may have a secret.
  func set(_ subject: Subject, _ value: Value, isShown: Bool) throws(EngineError) -> Event {
    let id = subject.id
    if let objection = objection(to: value, of: id), value != subject.value {
      throw EngineError(.unfit, domain: id.domain, key: id.key, objection)
    }
    let change: Intent =
      if let place {
        .edit(Location(place, id.domain), .set(id.key, value, .unknown))
      } else {
        .setOwn(id.key, id.domain, value, .unknown)
      }
    let expected = Intent.expect(id.key, subject.location, subject.expected)
    let made = try carryOut([.judged, expected, change], id)
    let location = made?.steps.first?.location ?? subject.location
    let line = line(id, location, value, isShown: isShown)
    return .made(made, line: line, message: made == nil ? "it has that value already" : "set")
  }

  /// Sets a key that is not set yet to the value of another one. The copy of a secret may have a
  /// name by which it is none, so it must be shown.
  func copy(_ id: EntryID, to new: EntryID, isShown: Bool) throws(EngineError) -> Event {
    let (value, subject) = (try value(of: id, isShown: isShown), try subject(new))
    guard subject.expected == nil else {
      throw EngineError(.unfit, domain: new.domain, key: new.key, "it is set already")
    }
    return try set(subject, value, isShown: isShown)
  }

  /// Removes a key from where it is set.
  func remove(_ id: EntryID) throws(EngineError) -> Event {
    let own = try places.findFirst(id.key, in: locations(of: id))
    let source = { (found: Resolution) in found.location.source(seenFrom: id.domain) }
    if own == nil, case let found = try find(id), found?.isForced != true {
      let rest = found.map { "; programs read what \(source($0)) has" } ?? ""
      throw EngineError(.noSuchKey, domain: id.domain, key: id.key, "it is not set\(rest)")
    }
    let change: Intent =
      if let place {
        .edit(Location(place, id.domain), .remove(id.key))
      } else {
        .removeOwn(id.key, id.domain)
      }
    let made = try carryOut([change], id)
    removeEmptyDomain(id.domain)
    let line = line(id, own?.location ?? Location(.user, id.domain), nil, isShown: true)
    let now = try find(id).map { "; programs read what \(source($0)) has" }
    return .made(made, line: line, message: "removed" + (now ?? ""))
  }

  /// Removes a domain without keys, as `defaults delete` does; not one that was made without keys.
  private func removeEmptyDomain(_ domain: DomainName) {
    guard place == nil, domain != .global, let keys = try? engine.keys(of: domain), keys.isEmpty
    else { return }
    // The owner refuses it where another program has set a key in between.
    _ = try? engine.apply([.removeDomain(domain)], by: author)
  }

  /// Carries a transaction out.
  /// - Returns: what it has changed, so that it can be taken back; nil means nothing.
  private func carryOut(_ intents: [Intent], _ id: EntryID) throws(EngineError) -> OwnChange? {
    var before: [Location: StoredValue] = [:]
    for location in locations(of: id) { before[location] = try places.find(id.key, at: location) }
    let changeset = try apply(intents, to: id, orElse: "Escape, then edit that")
    let steps = changeset.items.compactMap { item -> OwnChange.Step? in
      guard item.edit.key == id.key else { return nil }
      var after: Value?
      if case .set(_, let value, _) = item.edit { after = value }
      return OwnChange.Step(location: item.location, before: before[item.location], after: after)
    }
    return steps.isEmpty ? nil : OwnChange(id: id, steps: steps)
  }

  /// Applies a transaction.
  /// - Parameter advice: what to do where another program has changed the key meanwhile.
  private func apply(
    _ intents: [Intent], to id: EntryID, orElse advice: String
  ) throws(EngineError) -> Changeset {
    do throws(EngineError) {
      return try engine.apply(intents, by: author)
    } catch  where error.reason == .changedMeanwhile {
      let now = try text(of: id)
      throw EngineError(
        error.reason, domain: id.domain, key: id.key,
        "another program has changed it meanwhile, it is now \(now); \(advice)")
    }
  }

  /// Takes a change back that was made here, if nothing has changed the key since.
  func undo(_ change: OwnChange) throws(EngineError) -> Event {
    let (key, domain) = (change.id.key, change.id.domain)
    var intents: [Intent] = []
    for step in change.steps {
      intents.append(.expect(key, step.location, step.after))
      let text: WrittenText = step.before?.text.map { .exact($0) } ?? .canonical
      let back: Intent =
        step.before.map { .set(key, domain, $0.value, text) } ?? .remove(key, domain)
      intents.append(.at(step.location.place, back))
    }
    _ = try apply(intents, to: change.id, orElse: "U takes changes of its history back")
    removeEmptyDomain(domain)
    let line = change.steps.last.map {
      self.line(change.id, $0.location, $0.before?.value, isShown: false)
    }
    return .made(
      nil, line: line ?? "", message: "taken back: \(key) is \(try text(of: change.id))")
  }

  /// What programs read of a key now, for a message.
  private func text(of id: EntryID) throws(EngineError) -> String {
    guard let value = try find(id)?.value else { return "not set" }
    let isSecret = Secrecy(places).hides(value, of: id, schemaKey(id))
    return isSecret ? ValueLine.mask : ValueLine.short(value)
  }

  /// Takes the change of a key with a number of the history back.
  func undo(_ number: UInt64, of id: EntryID) throws(EngineError) -> Event {
    var filter = HistoryFilter()
    (filter.number, filter.domain, filter.key) = (number, id.domain, id.key)
    filter.isUndo = true
    let plan = try UndoPlan(NetChange.all(try history.read(), filter), places, over: false)
    if let conflict = plan.conflicts.first {
      throw EngineError(.changedMeanwhile, domain: id.domain, key: id.key, conflict.reason)
    }
    try plan.apply(to: places, by: author)
    if plan.steps.isEmpty {
      return .made(nil, line: "", message: "the values are those already")
    }
    let words = ["prefs", "undo", "\(number)", id.domain.string, id.key.string]
    return .made(
      nil, line: words.printableShellLine, message: "change \(number) is taken back")
  }
}
