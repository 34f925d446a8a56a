import PreferenceHistory
import PreferenceModel
import PropertyList

/// `read`, `read-type`: shows values, or the type of a value.
enum Read {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    if arguments.options.user != nil { throw .usage }
    if arguments.isEmpty, arguments.options.moment != nil { throw .usage }
    if arguments.isEmpty { return try show(try everything(arguments.options), arguments.options) }
    let target = try Target(&arguments)
    guard let word = arguments.first else {
      let moment = arguments.options.moment
      let contents = try target.reading { () throws(EngineError) in
        guard let moment else { return try DomainView(target).contents() }
        let past = try Past(target, moment)
        for key in try past.lostKeys() {
          Output.write(line: "defaults: \(key): its value of then is not kept", to: .errors)
        }
        return try past.contents()
      }
      if contents.isEmpty { throw target.doesNotExist }
      return try show(.dictionary(contents), arguments.options)
    }
    _ = try arguments.removeNext()
    try arguments.end()
    try show(try value(word, target, arguments.options), arguments.options)
  }

  static func runType(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let word = try arguments.removeNext()
    try arguments.end()
    let value = try value(word, target, arguments.options)
    let name = value.kind == .real ? "float" : value.kind.rawValue
    Output.write("Type is \(name)\n")
  }

  /// Returns the value that a key, or a path with `--path`, names.
  private static func value(
    _ word: String, _ target: Target, _ options: Options
  ) throws(Refusal) -> Value {
    let path = ValuePath(word, isPath: options.isPath)
    if let moment = options.moment {
      let old = try target.reading { () throws(EngineError) in
        try Past(target, moment).find(path.key)
      }
      guard let old, let value = path.find(in: old) else {
        throw target.lacks(word)
      }
      return value
    }
    let found = try target.reading(orSaying: target.lacks(word)) { () throws(EngineError) in
      try DomainView(target).find(path.key)
    }
    guard let found, let value = path.find(in: found.stored.value) else { throw target.lacks(word) }
    return value
  }

  /// Returns a dictionary of all domains that have keys and can be read.
  private static func everything(_ options: Options) throws(Refusal) -> Value {
    var all: ValueDictionary = [:]
    for view in try Domains.all(options) {
      guard let contents = view.readableContents(), !contents.isEmpty else { continue }
      all[Key(view.target.name)] = .dictionary(contents)
    }
    return .dictionary(all)
  }

  /// Prints a value in the form that the options select.
  private static func show(_ value: Value, _ options: Options) throws(Refusal) {
    switch options.form {
    case .description:
      let text = ValueDescription.text(of: value, isAppleText: options.isAppleText)
      Output.write(text + "\n")
    case .plist: Output.write(Export.xml(value))
    case .json:
      do throws(FormatError) {
        Output.write(try Document.json(value))
      } catch {
        throw Refusal(message: "Could not show the value as JSON; use --plist", detail: "\(error)")
      }
    }
  }
}

/// A domain as it was at a moment.
private struct Past {
  private let target: Target
  private let places: PastPlaces

  /// Throws ENODATA for a moment that the history does not have.
  init(_ target: Target, _ moment: HistoryMoment) throws(EngineError) {
    self.target = target
    let store = try StoreView(target.directory)
    let reader = HistoryReader(store.places)
    let number = try reader.read().requireNumber(at: moment)
    places = try PastPlaces(after: number, store.places, reader)
  }

  func find(_ key: Key) throws(EngineError) -> Value? {
    try places.findFirst(key, in: target.locations)?.stored.value
  }

  /// The keys whose values are not known.
  func lostKeys() throws(EngineError) -> [Key] {
    var keys: Set<Key> = []
    for location in target.locations.reversed() {
      keys.subtract(try places.keys(at: location))
      keys.formUnion(try places.lostKeys(at: location))
    }
    return keys.sorted()
  }

  /// The values that are known.
  func contents() throws(EngineError) -> ValueDictionary {
    var contents: ValueDictionary = [:]
    for domain in try places.snapshots(of: target.locations).reversed() {
      contents = contents.merging(domain.values)
    }
    for key in try lostKeys() { contents[key] = nil }
    return contents
  }
}
