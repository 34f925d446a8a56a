import PreferenceControl
import PreferenceDeclarations
import PreferenceModel
import PropertyList

/// The words of `apply --as`.
struct DeclareArguments {
  let name: String
  let declaration: Declaration
  private(set) var over: Set<String> = []
  let place: Place?
  let isDryRun: Bool
  /// Whether schemas refuse nothing.
  let isForced: Bool
  /// Why it is applied; empty if the command line does not say.
  let because: String
  /// How long it counts, in nanoseconds, unless it is confirmed (nil if it has no end), and whether
  /// it ends without a question.
  let limit: (nanoseconds: Int64, isLease: Bool)?

  /// Reads the command line; nil if it has no `--as`, and is left as it was.
  init?(_ arguments: inout Arguments) throws(Refusal) {
    guard let name = try arguments.removeLast(option: "--as") else { return nil }
    self.name = name
    while let other = try arguments.remove(option: "--over") { over.insert(other) }
    place = try Self.place(&arguments)
    let isMerged = arguments.remove("--merge")
    isDryRun = arguments.remove("--dry-run") || arguments.options.isDryRun
    let reason = try arguments.removeLast(option: "--because") ?? arguments.options.because
    because = try Arguments.reason(reason)
    limit = try Self.limit(&arguments)
    isForced = arguments.remove("--force") || arguments.options.isForced
    let allowsRules = arguments.remove("--rules") || arguments.options.allowsRules || isDryRun
    let files = Array(arguments.rest)
    guard !files.isEmpty else { throw .mistake("a file is missing") }
    if let word = files.first(where: { $0.hasPrefix("--") }) { throw Arguments.unexpected(word) }
    var document: ValueDictionary = [:]
    for file in files {
      // Each file may call a domain by another of its names.
      let next = try Self.declaration(file, isMerged).document
      document = document.merging(next, depth: isMerged ? .max : 1)
    }
    declaration = try Refusal.wrapping(Self.refused(files)) { () throws(EngineError) in
      try Declaration(document, isMerged: isMerged, variables: .own)
    }
    for (name, values) in declaration.document {
      try RuleConsent.require(
        values.dictionary ?? [:], of: DomainName(name.string), allowsRules,
        "apply \(files.joined(separator: " "))")
    }
  }

  private static func limit(
    _ arguments: inout Arguments
  ) throws(Refusal) -> (nanoseconds: Int64, isLease: Bool)? {
    let confirm = try arguments.removeLast(option: "--confirm")
    let lease = try arguments.removeLast(option: "--lease")
    guard let word = confirm ?? lease else { return nil }
    guard confirm == nil || lease == nil else {
      throw .mistake("--confirm does not go with --lease")
    }
    return (try TimeArgument.nanoseconds(word), confirm == nil)
  }

  private static func declaration(
    _ file: String, _ isMerged: Bool
  ) throws(Refusal) -> Declaration {
    let document = try Import.dictionary(file, null: Declaration.absent)
    return try Refusal.wrapping(refused([file])) { () throws(EngineError) in
      try Declaration(document, isMerged: isMerged, variables: .own)
    }
  }

  private static func refused(_ files: [String]) -> String {
    "Could not apply \(files.joined(separator: " ")); nothing was changed"
  }

  /// Reads the place that a declaration or the reports about declarations are for; nil if the
  /// command line names none.
  static func place(_ arguments: inout Arguments) throws(Refusal) -> Place? {
    guard let name = try arguments.removeLast(option: "--place") else {
      return arguments.options.isCurrentHost ? .host : nil
    }
    let places: [Place] = [.managed, .anyUser, .user, .host]
    if let place = places.first(where: { $0.rawValue == name }) { return place }
    throw Refusal(
      message: "\(name) is not a place that can be declared",
      detail: "it is one of " + places.map(\.rawValue).joined(separator: ", "))
  }
}

extension DeclareArguments {
  /// What the help says of the options.
  static let forms: [VerbManual.Form] = [
    .init("--merge", "dictionaries are declared member by member (RFC 7396), not as a whole"),
    .init("--over NAME", "takes precedence over declaration NAME, whose values return after it"),
    .init("--place PLACE", "managed, any-user, user or host"),
    .init("--force", "sets what a schema refuses"),
    VerbManual.rules, VerbManual.because,
    .init("--confirm TIME", "without `confirm NAME` by then it goes back (seconds, or 5m, 2h, 1d)"),
    .init("--lease TIME", "it goes back then, without a question"),
    .init("--dry-run", "only says what would be done"),
  ]
}

extension ValueDictionary {
  /// Another document over this one: the other one's values win.
  /// - Parameter depth: in how many levels of dictionaries both stay.
  func merging(_ new: ValueDictionary, depth: Int) -> ValueDictionary {
    var merged = self
    for (key, value) in new {
      if depth > 0, case .dictionary(let inner) = value, case .dictionary(let known)? = self[key],
        Instruction.words(of: value) == nil, Instruction.words(of: .dictionary(known)) == nil
      {
        merged[key] = .dictionary(known.merging(inner, depth: depth - 1))
      } else {
        merged[key] = value
      }
    }
    return merged
  }
}
