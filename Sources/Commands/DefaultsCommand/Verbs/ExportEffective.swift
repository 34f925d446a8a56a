import EffectiveDocuments
import PreferenceModel
import PreferenceSearch

/// `export --effective --as FORM`: writes the values that programs read of a domain, from all rows
/// of the search list, in the format of a program that does not know preferences. The same bytes
/// are in `.prefs/effective` of a mount.
enum ExportEffective {
  /// - Parameter name: the form; nil if the command line has none.
  static func run(_ name: String?, _ arguments: inout Arguments) throws(Refusal) {
    let forms = DocumentForm.allCases.map(\.rawValue).joined(separator: ", ")
    guard let form = name.flatMap({ DocumentForm(rawValue: $0) }) else {
      throw .mistake("export --effective needs --as and one of \(forms)")
    }
    let withGlobal = arguments.remove("--global")
    let target = try Target(&arguments)
    let path = arguments.isEmpty ? "-" : try arguments.removeNext()
    try arguments.end()
    if arguments.options.isCurrentHost {
      throw .mistake("--effective goes with all places, and -currentHost is one")
    }
    let values = try target.reading { () throws(EngineError) in
      try StoreView(target.directory).engine.effectiveValues(
        of: target.domain, withGlobal: withGlobal)
    }
    let bytes = EffectiveDocument.bytes(of: values, as: form)
    if path == "-" { Output.write(bytes) } else { try Export.write(bytes, to: path) }
  }
}
