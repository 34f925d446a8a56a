import PreferenceControl
import PreferenceDeclarations
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// `check`: reads lists, profiles and documents, and complains about those that would not count,
/// before they take effect. It changes nothing.
enum Check {
  /// - Returns: the exit status: 1 if something is wrong.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var paths = Array(arguments.rest)
    if paths.isEmpty {
      let surroundings = Surroundings()
      let directories = [surroundings.userDirectory, surroundings.systemDirectory]
      paths = (directories + Surroundings.vendorDirectories).filter(Files.isDirectory)
    }
    var status: Int32 = 0
    let layout = StoreLayout(Surroundings())
    for path in paths {
      if Files.canonicalPath(path) == Files.canonicalPath(layout.systemDirectory) {
        for complaint in MachineCheck(layout).complaints {
          complain(complaint.path, complaint.reason, &status)
        }
      }
      if Files.isDirectory(path) {
        try checkDirectory(path, depth: 0, &status)
      } else {
        try checkFile(path, isNamed: true, &status)
      }
    }
    return status
  }

  /// Lists lie in a directory, in `ByHost` of it, in `managed` and a user's directory of that, and
  /// fragments in `<domain>.d` beside lists.
  private static let deepest = 3

  private static func checkDirectory(
    _ path: String, depth: Int, _ status: inout Int32
  ) throws(Refusal) {
    let names: [String]
    do throws(SystemError) {
      names = try Files.names(in: path, withDirectories: true) ?? []
    } catch {
      return complain(path, "\(error)", &status)
    }
    for name in names.sorted() where !name.hasPrefix(".") || name.hasPrefix(".GlobalPreferences.") {
      let inner = "\(path)/\(name)"
      if Files.isDirectory(inner) {
        let isKnown =
          depth > 0 || ["ByHost", "managed", "schemas"].contains(name) || name.hasSuffix(".d")
        if isKnown, depth < deepest { try checkDirectory(inner, depth: depth + 1, &status) }
      } else {
        try checkFile(inner, isNamed: false, &status)
      }
    }
  }

  /// - Parameter isNamed: whether the command line names it: then it is a document whatever its
  ///   name is.
  private static func checkFile(
    _ path: String, isNamed: Bool, _ status: inout Int32
  ) throws(Refusal) {
    let isProfile = path.hasSuffix(".mobileconfig")
    let isDocument = path.hasSuffix(".json") || path.hasSuffix(".apply")
    guard isNamed || isProfile || path.hasSuffix(".plist") else {
      for ending in [".plist", ".mobileconfig"] where path.lowercased().hasSuffix(ending) {
        complain(path, "it does not count: its name must end in \(ending), in lower case", &status)
      }
      return
    }
    let bytes: [UInt8]
    do throws(Refusal) {
      bytes = try ListFile.looked(at: path)
    } catch {
      return complain(path, error.detail ?? error.message, &status)
    }
    if isProfile { return try checkProfile(path, bytes, &status) }
    if bytes.isEmpty, !isDocument { return }
    do {
      var limits = Limits.list
      limits.null = isDocument ? Declaration.absent : nil
      let value = try Document.read(bytes, limits: limits).value
      guard case .dictionary(let values) = value else {
        return complain(path, "it is not a dictionary, but of type \(value.kind.rawValue)", &status)
      }
      if isDocument { _ = try Declaration(values, variables: .own) }
      if path.hasSuffix("/\(Ledger.domain).plist") { _ = try Ledger(values) }
    } catch {
      complain(path, "\(error)", &status)
    }
  }

  private static func checkProfile(
    _ path: String, _ bytes: [UInt8], _ status: inout Int32
  ) throws(Refusal) {
    try Refusal.wrapping("Could not check \(path)") { () throws(EngineError) in
      guard case .dictionary(let report) = try StoreView().places.report(.check(bytes)),
        case .string(let reason)? = report["refused"]
      else { return }
      complain(path, reason, &status)
    }
  }

  private static func complain(_ path: String, _ reason: String, _ status: inout Int32) {
    Output.write(line: "\(path): \(reason)")
    status = 1
  }
}

extension Check {
  static let manual = VerbManual(
    group: .machines, summary: "complains about files that would not count",
    more: [
      .init(
        "check [PATH...]", "complains about lists, profiles and documents that do not count")
    ],
    text: """
      Without a path it looks at the directories of the user and of the machine. It
      ends with status 1 if something is wrong, and changes nothing.
      """,
    example: """
      $ prefs check /etc/preferences site.json
      """)
}
