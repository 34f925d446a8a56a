import PreferenceEffects
import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

// The names in the control directory, and what they stand for.

extension StoreControl {
  public func root(adding own: [Key: ControlEntry]) -> ControlDirectory {
    let places = [.managed, .arguments] + Place.own + Place.shared + [.registered]
    let listed: [Key: ControlEntry] = [
      "places": ControlEntry(.directory(directory(of: places))),
      "domains": tree(.dictionary, DocumentContents(search: search)),
      "suites": tree(.string, SuiteContents(search: search)),
      "effective": effective,
      "declared": declarations(in: nil),
      "search": searches, "explain": explanations, "describe": descriptions, "schemas": schemas,
      "history": histories, "at": moments, "effects": effects,
    ]
    let entries = listed.merging(own) { $1 }
    var root = ControlDirectory(entries)
    root.find = { [past] key throws(EngineError) in
      let isHidden = (key == "history" || key == "at") && past.isOff
      return entries[key] == nil || isHidden ? nil : key
    }
    return root
  }

  public func machineRoot() -> ControlDirectory {
    let declared: [Key: ControlEntry] = [
      "managed": declarations(in: .managed), "any-user": declarations(in: .anyUser),
    ]
    return directory(
      of: [.managed, .anyUser],
      adding: ["declared": ControlEntry(.directory(ControlDirectory(declared)))])
  }

  // MARK: - Trees

  private func directory(
    of places: [Place], adding others: [Key: ControlEntry] = [:]
  ) -> ControlDirectory {
    var entries = others
    for place in places { entries[Key(place.rawValue)] = tree(of: place) }
    // Every such name can be looked up, because an administrator manages users whom this machine does
    // not know yet.
    let users = ControlDirectory(
      names: Set(try self.managedUsers().filter(Self.isUser).map { Key($0) }),
      find: { Self.isUser($0.string) ? $0 : nil },
      entry: { self.tree(of: self.managedPlace(of: $0.string)) })
    entries["managed-for"] = ControlEntry(.directory(users))
    return ControlDirectory(entries)
  }

  private func tree(of place: Place) -> ControlEntry {
    ControlEntry(.tree(ControlRoot(isFlat: place == .arguments) { self.engine(of: place) }))
  }

  /// `effective`: what programs read, as documents.
  private var effective: ControlEntry {
    var root = ControlRoot(of: .data) { [search] in DocumentView(EffectiveContents(search: search))
    }
    root.isWatched = true
    return ControlEntry(.tree(root))
  }

  private func declarations(in place: Place?) -> ControlEntry {
    tree(.dictionary, null: absent, DeclarationContents(search: search, place: place))
  }

  private func tree(
    _ kind: Kind, null: Value? = nil, _ contents: some ViewContents
  ) -> ControlEntry {
    ControlEntry(.tree(ControlRoot(of: kind, null: null) { DocumentView(contents) }))
  }

  /// Whether a user may have the name.
  private static func isUser(_ name: String) -> Bool {
    guard let first = name.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: ".") else {
      return false
    }
    return name.utf8.count <= 64 && Place.isUserName(name) && name.utf8.allSatisfy { $0 >= 0x20 }
  }

  // MARK: - Reports

  /// `effects`: the rules, and how each was last carried out. The owner asks the disk.
  private var effects: ControlEntry {
    ControlEntry { [owner] () throws(EngineError) in
      guard case .array(let reports) = try owner.report(.effects) else { return nil }
      let lines = EffectReport.lines(reports.compactMap(\.dictionary))
      return .text(lines.map { $0 + "\n" }.joined())
    }
  }

  /// `search`: the search list of each domain.
  private var searches: ControlEntry {
    domains { domain in
      ControlEntry(need: .lists(domain)) { () throws(EngineError) in
        .text(try self.searchList(of: domain))
      }
    }
  }

  /// `explain`: for each key of each domain, every place that holds it.
  private var explanations: ControlEntry {
    domains { [search] domain in
      Self.reports(
        .lists(domain), on: { () throws(EngineError) in try search.keys(of: domain) },
        text: { key throws(EngineError) in try self.explanation(of: key, in: domain) })
    }
  }

  /// A directory of all domains. It also opens those that only defaults make, of a schema or
  /// registered ones.
  private func domains(_ entry: @escaping (DomainName) -> ControlEntry) -> ControlEntry {
    let directory = ControlDirectory(
      names: Set(try self.search.domains().map(\.key)),
      find: { [search] key throws(EngineError) in
        let domain = DomainName(key.string)
        do throws(EngineError) {
          return try search.hasDomain(domain) ? key : nil
        } catch {
          // Of a list that hangs, or cannot be read, there is a report too.
          return try search.domains().contains(domain) ? key : nil
        }
      }, entry: { entry(DomainName($0.string)) })
    return ControlEntry(.directory(directory))
  }

  /// A directory of reports on keys. Any key can be looked up; whether there is a report, its text
  /// says.
  private static func reports(
    _ need: ControlNeed, on keys: @escaping () throws(EngineError) -> Set<Key>,
    text: @escaping (Key) throws(EngineError) -> String?
  ) -> ControlEntry {
    let directory = ControlDirectory(names: try keys(), find: { $0 }) { key in
      ControlEntry(need: need) { () throws(EngineError) in try text(key).map { .text($0) } }
    }
    return ControlEntry(.directory(directory), need: need)
  }

  /// `describe`: what the schema of a domain says of each key.
  private var descriptions: ControlEntry {
    let domains = ControlDirectory(
      names: Set(try self.search.places.domains(in: .schema).map(\.key)),
      find: { key throws(EngineError) in try self.hasSchema(DomainName(key.string)) ? key : nil }
    ) { [search] name in
      let domain = DomainName(name.string)
      return Self.reports(
        .lists(domain), on: { Set(search.schema(of: domain)?.keys.map(\.name) ?? []) },
        text: { key throws(EngineError) in try search.description(of: key, in: domain) })
    }
    return ControlEntry(.directory(domains))
  }

  /// `schemas`: the schema of each domain that has one, and the same as JSON Schema.
  private var schemas: ControlEntry {
    let endings = [".plist", ".json"]
    let domain = { (name: Key) in
      endings.first(where: name.string.hasSuffix).map {
        DomainName(String(name.string.dropLast($0.count)))
      }
    }
    let documents = ControlDirectory(
      names: Set(
        try self.search.places.domains(in: .schema).flatMap { domain in
          endings.map { Key(domain.string + $0) }
        }),
      find: { key throws(EngineError) in
        guard let domain = domain(key) else { return nil }
        return try self.hasSchema(domain) ? key : nil
      }
    ) { key in
      domain(key).map { domain in
        ControlEntry(need: .lists(domain)) { () throws(EngineError) in
          let isJSON = key.string.hasSuffix(".json")
          return try self.schema(of: domain, isJSON: isJSON).map { .bytes($0) }
        }
      }
    }
    return ControlEntry(.directory(documents))
  }

  /// Whether the domain has a schema. A look-up asks for this one alone: the names of all of them
  /// would cost each look-up a message, and what they are.
  private func hasSchema(_ domain: DomainName) throws(EngineError) -> Bool {
    do throws(EngineError) {
      return try search.modified(Location(.schema, domain)) != nil
    } catch {
      // Of one that hangs, or cannot be read, there is a report too.
      return try search.places.domains(in: .schema).contains(domain)
    }
  }

  // MARK: - The history and the past

  /// `history`: the changes of each key of each domain that has changes.
  private var histories: ControlEntry {
    let (past, need) = (past, past.need(withPositions: true))
    let domains = ControlDirectory(
      need: need, names: Set(try past.changedDomains().map(\.key))
    ) { name in
      let domain = DomainName(name.string)
      return Self.reports(
        need, on: { () throws(EngineError) in try past.changedKeys(of: domain) },
        text: { key throws(EngineError) in try past.changes(of: key, in: domain) })
    }
    return ControlEntry(.directory(domains), need: past.need(withPositions: false))
  }

  /// `at`: the days with changes. What a name means is fixed when it is looked up.
  private var moments: ControlEntry {
    let past = past
    var moments = ControlDirectory(
      names: try past.days(),
      find: { key throws(EngineError) in
        try past.number(ofMoment: key.string).map { Key(String($0)) }
      }, entry: { UInt64($0.string).map(self.moment) })
    moments.hasAliases = true
    return ControlEntry(.directory(moments), need: past.need(withPositions: false))
  }

  /// `at/<moment>`: the domains as the change with that number has left them.
  private func moment(_ number: UInt64) -> ControlEntry {
    let past = past
    let domains = ControlDirectory(
      need: past.need(ofMoment: number, nil),
      names: Set(try past.engine(ofMoment: number, nil).domains().map(\.key)),
      // There may be many, and a listing of them would be made for each.
      find: { key throws(EngineError) in
        try past.engine(ofMoment: number, nil).hasDomain(DomainName(key.string)) ? key : nil
      }, entry: { self.pastDomain(number, DomainName($0.string)) })
    return ControlEntry(.directory(domains), need: past.need(withPositions: false))
  }

  /// `at/<moment>/<domain>`: its keys then.
  private func pastDomain(_ number: UInt64, _ domain: DomainName) -> ControlEntry {
    let need = past.need(ofMoment: number, domain)
    let engine = { [past] () throws(EngineError) in try past.engine(ofMoment: number, domain) }
    var keys = ControlDirectory(names: try engine().keys(of: domain), find: { $0 }) { key in
      ControlEntry(need: need) { () throws(EngineError) in
        try engine().resolve(key, in: domain).map { .value($0) }
      }
    }
    keys.modified = { () throws(EngineError) in try engine().modified(domain) }
    return ControlEntry(.directory(keys), need: need)
  }
}
