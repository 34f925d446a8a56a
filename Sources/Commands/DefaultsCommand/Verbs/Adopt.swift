import PreferenceControl
import PreferenceDeclarations
import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

/// `declared --adopt`: writes what has drifted into the documents that declare it.
struct Adopt {
  /// A document as it was read.
  private struct File {
    let path: String
    let bytes: [UInt8]
    let format: Format
    let document: ValueDictionary
    /// What it is to be.
    var new: [UInt8]?
  }

  private var files: [File] = []
  private let isDryRun, isAll: Bool
  private let place: Place?
  private var name: String?
  private var status: Int32 = 0
  /// The files that were replaced, and could not be put back.
  private var stuck: [String] = []

  /// - Returns: the exit status: 0 if the documents now say what is.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var adopt = try Adopt(&arguments)
    do throws(EngineError) {
      try adopt.adopt(StoreView(via: .declaration))
      return adopt.status
    } catch {
      let changed = adopt.stuck.joined(separator: ", ")
      let state = changed.isEmpty ? "no document was changed" : "could not put back: \(changed)"
      throw Refusal("Could not adopt; \(state)", error)
    }
  }

  private init(_ arguments: inout Arguments) throws(Refusal) {
    isDryRun = arguments.remove("--dry-run")
    isAll = arguments.remove("--all")
    name = try arguments.removeLast(option: "--as")
    place = try DeclareArguments.place(&arguments)
    guard !arguments.isEmpty else { throw .mistake("a file is missing") }
    while !arguments.isEmpty {
      let path = try arguments.removeNext()
      if path.hasPrefix("--") { throw Arguments.unexpected(path) }
      guard path != "-" else { throw .mistake("--adopt changes files, not standard input") }
      files.append(try Self.file(path))
    }
  }

  private static func file(_ path: String) throws(Refusal) -> File {
    let bytes = try ListFile.contents(path)
    var limits = Limits.list
    limits.null = Declaration.absent
    do throws(FormatError) {
      let read = try Document.read(bytes, limits: limits)
      if case .dictionary(let document) = read.value, [.json, .xml].contains(read.format) {
        return File(path: path, bytes: bytes, format: read.format, document: document)
      }
    } catch {
      throw Refusal(message: "Could not parse \(path); no document was changed", detail: "\(error)")
    }
    throw Refusal(
      message: "Could not adopt into \(path); no document was changed",
      detail: "it is not a dictionary as JSON or XML; plutil -convert makes it one")
  }

  // MARK: - Documents

  private mutating func adopt(_ store: StoreView) throws(EngineError) {
    let declarations = store.declarations(in: place)
    let ledger = try declarations.ledger()
    var requests: [Declarations.Request] = []
    for (name, indices) in try groups(ledger) {
      if let request = try adopt(name, indices, ledger, declarations, store.engine) {
        requests.append(request)
      }
    }
    if isDryRun { return showDifferences() }
    let replaced = try replaceFiles { () throws(EngineError) in
      if !requests.isEmpty { _ = try declarations.carryOut(requests, by: store.author) }
    }
    for file in replaced { Output.write(line: "\(file.path) adopted") }
  }

  /// The declarations whose documents the files are, with the indices of their files.
  private func groups(_ ledger: Ledger) throws(EngineError) -> [(name: String, files: [Int])] {
    var common = name
    if common == nil { common = try Self.name(of: files.map(\.document), ledger) }
    if let common { return [(common, Array(files.indices))] }
    var groups: [(name: String, files: [Int])] = []
    for (index, file) in files.enumerated() {
      guard let name = try Self.name(of: [file.document], ledger) else {
        throw EngineError(
          .system(.invalidArgument),
          "\(file.path) is not what a declaration says; apply it, or name one with --as")
      }
      groups.append((name, [index]))
    }
    return groups
  }

  /// Replaces the files that change. If one of them, or `finish`, fails, all are as they were, but
  /// those that are `stuck` then.
  /// - Returns: those that were replaced.
  private mutating func replaceFiles(
    _ finish: () throws(EngineError) -> Void
  ) throws(EngineError) -> [File] {
    var replaced: [File] = []
    do throws(EngineError) {
      for file in files {
        guard let new = file.new else { continue }
        try Self.replace(file.path, with: new)
        replaced.append(file)
      }
      try finish()
    } catch {
      for file in replaced where (try? Self.replace(file.path, with: file.bytes)) == nil {
        stuck.append(file.path)
      }
      throw error
    }
    return replaced
  }

  private static func replace(_ path: String, with bytes: [UInt8]) throws(EngineError) {
    try EngineError.wrapping { () throws(SystemError) in try Files.replace(path, with: bytes) }
  }

  /// The declaration that says what the documents say together; nil if none does.
  private static func name(
    of documents: [ValueDictionary], _ ledger: Ledger
  ) throws(EngineError) -> String? {
    for (name, declaration) in ledger.declarations.sorted(by: { $0.key < $1.key }) {
      let document = try merged(documents, declaration.isMerged)
      if document == declaration.document { return name }
    }
    return nil
  }

  private static func merged(
    _ documents: [ValueDictionary], _ isMerged: Bool
  ) throws(EngineError) -> ValueDictionary {
    var all: ValueDictionary = [:]
    for document in documents {
      let next = try Declaration(document, isMerged: isMerged, isStored: true).document
      all = all.merging(next, depth: isMerged ? .max : 1)
    }
    return all
  }

  /// Computes the new documents of a declaration.
  /// - Returns: what declares them; nil if they stay.
  private mutating func adopt(
    _ name: String, _ indices: [Int], _ ledger: Ledger, _ declarations: Declarations,
    _ engine: SearchEngine
  ) throws(EngineError) -> Declarations.Request? {
    guard let declaration = ledger.declarations[name] else {
      throw EngineError(.noSuchKey, "there is no declaration \(name)")
    }
    // With `--as`, the files may differ from the declaration. What they add would be set.
    let document = try Self.merged(indices.map { files[$0].document }, declaration.isMerged)
    guard document == declaration.document else {
      let paths = indices.map { files[$0].path }.joined(separator: ", ")
      throw EngineError(
        .system(.invalidArgument),
        "\(paths): not what \(name) declares; name all its documents, or apply them first")
    }
    let (drift, settings) = try declarations.adoptable(by: name, isAll: isAll)
    let adoption = Adoption(
      indices.map { files[$0].document }, isMerged: declaration.isMerged,
      variables: declaration.variables ?? .own, of: drift
    ) { value, key, domain in
      settings.keeps(value, of: key, in: domain)
        && engine.schema(of: domain)?[key]?.hasSecrets != true
    }
    for (path, reason) in adoption.refusals { complain("\(path): \(reason)") }
    for (index, document) in zip(indices, adoption.documents)
    where document != files[index].document {
      files[index].new = DocumentPatch.apply(
        to: files[index].bytes, files[index].format, from: files[index].document, to: document)
      guard files[index].new != nil else {
        complain("\(files[index].path): its format cannot say the new values; it stays as it is")
        for index in indices { files[index].new = nil }
        return nil
      }
    }
    let documents = adoption.documents
    if documents == indices.map({ files[$0].document }) { return nil }
    let merged = try Self.merged(documents, declaration.isMerged)
    return .declare(
      name, try Declaration(merged, isMerged: declaration.isMerged, variables: .own), over: [],
      isAdopting: true)
  }

  private mutating func complain(_ line: String) {
    Output.note(line)
    status = 1
  }

  private func showDifferences() {
    for file in files {
      guard let new = file.new else { continue }
      Output.write(UnifiedDiff.text(of: file.path, from: file.bytes, to: new))
    }
  }
}
