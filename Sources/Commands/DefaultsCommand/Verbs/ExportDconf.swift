import PreferenceModel
import PreferenceSchemas
import PropertyList

/// `export --as dconf`: prints the user's domains as `dconf load /` reads them: a group for each
/// path, with the texts of GVariants. Without a name it prints those of which the machine's schemas
/// have the path, or one above it. It changes nothing.
///
/// What cannot be said so is left out, with a line on standard error: dconf would load nothing of a
/// text with a mistake.
enum ExportDconf {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let types = GSettingsTypes.ofMachine()
    var domains: [(view: DomainView, path: String)] = []
    if arguments.isEmpty { domains = try types.domains(arguments.options) }
    while !arguments.isEmpty { domains.append(try domain(try Target(&arguments))) }
    for (view, path) in domains {
      let values = try view.target.reading { () throws(EngineError) in try view.contents() }
      var group = ""
      for (key, value) in values.sorted(by: { $0.key < $1.key }) {
        if isName(key.string), isName(path.replacing("/", with: "-")),
          let text = types.text(of: value, for: key.string, at: path)
        {
          group += "\(key)=\(text)\n"
        } else {
          let reason = "dconf has no form for it, or it does not fit its schema"
          Output.write(line: "# left out: \(view.target.name) \(key): \(reason)", to: .errors)
        }
      }
      if !group.isEmpty { Output.write("[\(path)]\n\(group)\n") }
    }
  }

  private static func domain(
    _ target: Target
  ) throws(Refusal) -> (view: DomainView, path: String) {
    guard let path = GSettingsPath.path(of: target.domain.string) else {
      throw Refusal(
        message: "Could not export \(target.name)", detail: "no path of dconf has its name")
    }
    return try target.reading { () throws(EngineError) in (try DomainView(target), path) }
  }

  /// Whether a key may have the name in the text.
  private static func isName(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix("#") && name.first != " " && name.last != " "
      && name.unicodeScalars.allSatisfy { scalar in
        scalar.value >= 0x20 && scalar.value != 0x7F && !"[]=/".unicodeScalars.contains(scalar)
      }
  }
}
