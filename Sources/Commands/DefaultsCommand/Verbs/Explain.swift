import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess

/// `explain`: shows every place of the search list that holds a key.
enum Explain {
  /// The refusal of a list by its path together with a user.
  static let pathForUser = Refusal.mistake("--for goes with the name of a domain, not with a path")

  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let key = Key(try arguments.removeNext())
    try arguments.end()
    let options = arguments.options
    if options.user != nil, target.directory != nil { throw Self.pathForUser }
    let store: StoreView =
      if let user = options.user {
        try Refusal.wrapping("Could not read the preferences of \(user)") {
          () throws(EngineError) in try StoreView(ofUser: user)
        }
      } else {
        try target.reading { () throws(EngineError) in try StoreView(target.directory) }
      }
    let holders = try target.reading { () throws(EngineError) in
      try Explanation(store.engine, StoreLayout(store.surroundings), store.places)
        .holders(of: key, in: target.domain)
    }
    guard !holders.isEmpty else { throw try absence(of: key, target, store) }
    guard options.form == .json else {
      return Output.write(Explanation.text(of: holders, isAppleText: options.isAppleText))
    }
    for holder in holders {
      Output.write(json: [
        "source": .string(holder.source), "forced": .boolean(holder.isForced),
        "locked": .boolean(holder.isLocked), "container": .boolean(holder.isContained),
        "value": holder.value, "file": .string(holder.file),
      ])
    }
  }
}

extension Explain {
  /// The refusal of a key that no place has, or only places that the administrator's lock hides.
  private static func absence(
    of key: Key, _ target: Target, _ store: StoreView
  ) throws(Refusal) -> Refusal {
    let absence = target.lacks(key.string)
    let isLocked = try target.reading { () throws(EngineError) in
      try store.engine.isLocked(target.domain)
    }
    guard isLocked else { return absence }
    return Refusal(
      message: absence.message,
      detail: "the administrator has locked the domain: no value of the user's counts in it")
  }
}

/// `read --effective`: the values that count, where they are from, and whether they are forced;
/// those that a domain inherits are among them.
enum Effective {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let options = arguments.options
    let target = arguments.isEmpty ? nil : try Target(&arguments)
    try arguments.end()
    guard options.moment == nil, options.form != .plist else {
      throw .mistake("--effective goes neither with --at nor with --plist")
    }
    guard options.user == nil || target?.directory == nil else { throw Explain.pathForUser }
    try Refusal.wrapping("Could not read the values") { () throws(EngineError) in
      let store = try StoreView(target?.directory, ofUser: options.user)
      let engine = store.engine
      var domains = target.map { [$0.domain] } ?? []
      if target == nil { domains = try engine.domains().sorted { $0.string < $1.string } }
      for domain in domains { try show(domain, engine, isJSON: options.form == .json) }
    }
  }

  private static func show(
    _ domain: DomainName, _ engine: SearchEngine, isJSON: Bool
  ) throws(EngineError) {
    for key in try engine.allKeys(of: domain).sorted() {
      guard let found = try engine.resolve(key, in: domain) else { continue }
      let source = found.location.source(seenFrom: domain)
      if isJSON {
        Output.write(json: [
          "domain": .string(domain.string), "key": .string(key.string), "value": found.value,
          "source": .string(source), "forced": .boolean(found.isForced),
        ])
      } else {
        let value = ValueDescription.line(of: found.value, false)
        let forced = found.isForced ? ", forced" : ""
        Output.write(line: "\(domain) \(key): \(value) (\(source)\(forced))")
      }
    }
  }
}

extension Explain {
  static let manual = VerbManual(
    group: .look, summary: "shows where the value of a key comes from",
    more: [
      .init(
        "explain [--json] [--for USER] DOMAIN KEY",
        "shows every place that has the key; * marks what is read")
    ],
    text: """
      The places are in the order of the search list, with the file of each.
      """,
    options: [VerbManual.json, VerbManual.appleText, VerbManual.user],
    example: """
      $ prefs explain com.example.editor TabWidth
      * managed (forced): 8
          /etc/preferences/managed/com.example.editor.plist
        user: 4
          /home/ada/.config/com.example.editor.plist
      """)
}
