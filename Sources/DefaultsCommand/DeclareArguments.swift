import PreferenceDeclarations
import PreferenceModel
import PropertyList

/// The words of `apply --as`.
struct DeclareArguments {
  let name: String
  let declaration: Declaration
  private(set) var over: Set<String> = []
  private(set) var place: Place?
  private(set) var isDryRun: Bool
  /// Whether schemas refuse nothing.
  private(set) var isForced: Bool

  /// Reads the command line; nil: it has no `--as`, and is left as it was.
  init?(_ arguments: inout Arguments) throws(Refusal) {
    guard arguments.rest.contains("--as") else { return nil }
    (isDryRun, isForced) = (arguments.options.isDryRun, arguments.options.isForced)
    var name: String?
    var files: [String] = []
    var isMerged = false
    while !arguments.isEmpty {
      let word = try arguments.removeNext()
      switch word {
      case "--as": name = try arguments.removeNext()
      case "--over": over.insert(try arguments.removeNext())
      case "--place": place = try Self.place(try arguments.removeNext())
      case "--merge": isMerged = true
      case "--dry-run": isDryRun = true
      case "--force": isForced = true
      case _ where word.hasPrefix("--"): throw .usage
      default: files.append(word)
      }
    }
    guard let name, !files.isEmpty else { throw .usage }
    self.name = name
    if arguments.options.isCurrentHost { place = place ?? .host }
    var document: ValueDictionary = [:]
    for file in files {
      let next = try Import.dictionary(file, null: Declaration.absent)
      document = Self.merged(document, next, depth: isMerged ? .max : 1)
    }
    let message = "Could not apply \(files.joined(separator: " ")); nothing was changed"
    declaration = try Refusal.wrapping(message) { () throws(EngineError) in
      try Declaration(document, isMerged: isMerged)
    }
  }

  /// Reads the place that a declaration or the reports about declarations are for.
  static func place(_ name: String) throws(Refusal) -> Place {
    let places: [Place] = [.managed, .anyUser, .user, .host]
    if let place = places.first(where: { $0.rawValue == name }) { return place }
    throw Refusal(
      message: "\(name) is not a place that can be declared",
      detail: "it is one of " + places.map(\.rawValue).joined(separator: ", "))
  }

  /// One document over another: the last one wins.
  /// - Parameter depth: in how many levels of dictionaries both stay.
  private static func merged(
    _ old: ValueDictionary, _ new: ValueDictionary, depth: Int
  ) -> ValueDictionary {
    var merged = old
    for (key, value) in new {
      if depth > 0, case .dictionary(let inner) = value, case .dictionary(let known)? = old[key],
        value != Declaration.absent, old[key] != Declaration.absent
      {
        merged[key] = .dictionary(Self.merged(known, inner, depth: depth - 1))
      } else {
        merged[key] = value
      }
    }
    return merged
  }
}
