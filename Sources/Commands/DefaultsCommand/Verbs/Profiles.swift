import PreferenceModel
import PropertyList
import SystemCalls

/// `profiles`: shows the configuration profiles of the machine, a line for each. `check FILE` shows
/// the line that a profile would have, and `show FILE` the values that it would set.
enum Profiles {
  /// Runs the verb.
  /// - Returns: the exit status: 1 if the profile to be checked would be refused.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let user = try arguments.remove(option: "--for")
    let verb = arguments.isEmpty ? nil : try arguments.removeNext()
    switch verb {
    case nil:
      guard case .array(let reports) = try report(.profiles, user) else { return 0 }
      for case .dictionary(let report) in reports { Output.write(line: line(report)) }
      return 0
    case "check": return try check(&arguments, user)
    case "show" where user == nil: return try show(&arguments)
    case "show": throw .mistake("--for does not go with show")
    case .some(let word): throw Arguments.unexpected(word)
    }
  }

  /// Asks the owner of the store for a report.
  private static func report(
    _ report: OwnerReport, _ user: String? = nil
  ) throws(Refusal) -> Value {
    try Refusal.wrapping("Could not read the profiles") { () throws(EngineError) in
      try StoreView(ofUser: user).places.report(report)
    }
  }

  /// Asks the owner of the store what the profile in the file would do.
  private static func report(
    on arguments: inout Arguments
  ) throws(Refusal) -> (path: String, report: ValueDictionary) {
    let path = try arguments.removeNext()
    try arguments.end()
    let bytes = try ListFile.looked(at: path, limit: 16 << 20)
    guard case .dictionary(var report) = try report(.check(bytes)) else {
      throw Refusal(message: "Could not read the profiles", detail: "prefsd gave no report")
    }
    report["file"] = .string(path)
    return (path, report)
  }

  private static func check(
    _ arguments: inout Arguments, _ user: String?
  ) throws(Refusal) -> Int32 {
    let isEffect = arguments.remove("--effect")
    if user != nil, !isEffect { throw .mistake("--for goes with check --effect alone") }
    let report = try report(on: &arguments).report
    if isEffect, report["refused"] == nil { return try ProfileEffect.show(report, user) }
    Output.write(line: line(report))
    return report["refused"] == nil ? 0 : 1
  }

  private static func show(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let (path, report) = try report(on: &arguments)
    if case .string(let why)? = report["refused"] {
      throw Refusal(message: "\(path) would be refused", detail: why)
    }
    var settings: ValueDictionary = [:]
    for row in ["once", "forced"] as [Key] {
      for case (let domain, .dictionary(let values)) in report[row]?.dictionary ?? [:] {
        let known = settings[domain]?.dictionary ?? [:]
        settings[domain] = .dictionary(known.merging(values))
      }
    }
    Output.write(ValueText.canonical(.dictionary(settings)))
    return 0
  }

  /// The line of one profile, from its report (`PlaceAdditions.reports`).
  private static func line(_ report: ValueDictionary) -> String {
    var parts: [String] = []
    let name = report["identifier"].map(text).map { "\($0) \"\(text(report["name"]))\"" }
    parts.append(name ?? text(report["file"]))
    if let why = report["refused"] { parts.append("refused: \(text(why))") }
    if report["identifier"] != nil {
      parts.append(report["signer"].map { "signed by \(text($0))" } ?? "not signed")
    }
    parts +=
      domains(report["forced"], "") + domains(report["joined"], "joined ")
      + domains(report["once"], "once ")
    if let until = report["until"] {
      parts.append((report["over"] == nil ? "until " : "over since ") + text(until))
    }
    if case .array(let types)? = report["left alone"] {
      parts.append("left alone: " + types.map(text).joined(separator: ", "))
    }
    if name != nil { parts.append(text(report["file"])) }
    return parts.joined(separator: "; ")
  }

  /// The domains of a report, each with its keys.
  private static func domains(_ value: Value?, _ prefix: String) -> [String] {
    guard case .dictionary(let domains)? = value else { return [] }
    return domains.sorted { $0.key < $1.key }.map { domain, values in
      let name = prefix + quoted(domain.string)
      guard case .dictionary(let values) = values else { return name }
      let keys = values.keys.sorted().map { quoted($0.string) }.joined(separator: ", ")
      return "\(name) (\(keys))"
    }
  }

  /// The text of a value. What is from outside can end neither a part of the line nor a name in it:
  /// a profile's name says nothing of who signed it.
  private static func text(_ value: Value?) -> String {
    quoted(value.map { ValueDescription.text(of: $0, isAppleText: false) } ?? "")
  }

  private static func quoted(_ text: String) -> String {
    text.replacing(";", with: "\\u{3B}").replacing("\"", with: "\\u{22}")
  }
}

extension Profiles {
  static let manual = VerbManual(
    group: .machines, summary: "shows what configuration profiles set, or would set",
    more: [
      .init("profiles [--for USER]", "shows the installed profiles, a line for each"),
      .init("profiles check [--effect [--for USER]] FILE", "says whether a profile would count"),
      .init("profiles show FILE", "shows the values that it would set"),
    ],
    text: """
      Profiles are *.mobileconfig in /etc/preferences/managed, or in a user's
      directory there. check ends with status 1 if the profile would be refused.
      """,
    options: [
      .init("--effect", "names each value that would change, and from what"), VerbManual.user,
    ],
    example: """
      $ prefs profiles check --effect editor.mobileconfig
      """)
}
