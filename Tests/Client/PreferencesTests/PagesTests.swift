import Foundation
import Support
import Testing

/// What pages and comments refer to: functions that the page of the sources names, files that pages
/// link to, and no page from outside of the repository.
@Suite("Pages") struct PagesTests {
  private static let root = Program.package

  /// Returns the text of a file.
  /// - Parameter path: relative to the repository, as all paths here.
  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  /// Returns the paths of the files below a directory that have one of the extensions.
  private static func files(below directory: String, _ extensions: [String]) throws -> [String] {
    let path = root.appendingPathComponent(directory).path
    return try FileManager.default.subpathsOfDirectory(atPath: path)
      .filter { extensions.contains(URL(fileURLWithPath: $0).pathExtension) }
      .map { directory + "/" + $0 }
      .filter { name in
        var isDirectory: ObjCBool = false
        let file = root.appendingPathComponent(name).path
        return FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory)
          && !isDirectory.boolValue
      }
  }

  /// Every page of the repository.
  private static func pages() throws -> [String] {
    try ["README.md", "Tests/README.md"] + files(below: "Sources", ["md"])
  }

  // MARK: - Functions

  @Test("each file:function that the page of the sources names is there")
  func functions() throws {
    let page = try Self.text("Sources/README.md")
    let references = page.matches(of: #/`([A-Za-z0-9+/]+\.swift):([A-Za-z.]+)`/#)
    let sources = try Self.files(below: "Sources", ["swift"])
    #expect(references.count > 60)
    for reference in references {
      let (file, function) = (String(reference.output.1), String(reference.output.2))
      let source = try sources.first { $0.hasSuffix("/" + file) }.map(Self.text) ?? ""
      let isThere = Self.defines(function, source)
      #expect(isThere, "\(file):\(function)")
    }
  }

  /// Returns whether the source defines the function: an initialiser, a closure that is stored in a
  /// table (`table.write`), or a function.
  private static func defines(_ function: String, _ source: String) -> Bool {
    let forms: [String]
    if function == "init" {
      forms = ["init(", "init?("]
    } else if function.hasPrefix("table.") {
      forms = [function + " = "]
    } else {
      forms = ["func " + function + "(", "func " + function + "<"]
    }
    return forms.contains { source.range(of: $0) != nil }
  }

  // MARK: - Links

  @Test("each relative link of a page leads to a file")
  func links() throws {
    for page in try Self.pages() {
      let directory = Self.root.appendingPathComponent(page).deletingLastPathComponent()
      for link in try Self.text(page).matches(of: #/\]\(([^)\s]+)\)/#) {
        let target = String(link.output.1)
        if target.hasPrefix("#") || target.range(of: "://") != nil { continue }
        let path = String(target.prefix { $0 != "#" })
        let isThere = FileManager.default.fileExists(
          atPath: directory.appendingPathComponent(path).path)
        #expect(isThere, "\(page): \(target)")
      }
    }
  }

  // MARK: - Citations

  /// Pages that are not in the repository, and numbers of their rules, as regular expressions. None
  /// of the expressions matches this file.
  private static let foreign: [String] =
    ["SPEC", "TOOLS", "APPLE", "ARCHITECTURE"].map { "\\b\($0)\\.md\\b" } + ["\\b[Ll]aw [0-9]"]

  @Test("no page or source cites what is not in the repository")
  func citations() throws {
    let sources = try Self.files(below: "Sources", ["swift", "h", "md"])
    let tests = try Self.files(below: "Tests", ["swift", "py", "sh", "md"])
    let scripts = try Self.files(below: "scripts", [""])
    let all = ["README.md", "Package.swift", ".ci/run"] + sources + tests + scripts
    #expect(sources.count > 100 && tests.count > 50 && !scripts.isEmpty)
    for path in all {
      let text = try Self.text(path)
      for pattern in Self.foreign {
        let isCited = text.range(of: pattern, options: .regularExpression) != nil
        #expect(!isCited, "\(path): \(pattern)")
      }
    }
  }

  // MARK: - Length

  @Test(
    "the README has at most 150 lines, the page of the sources 300",
    arguments: [("README.md", 150), ("Sources/README.md", 300)])
  func length(page: String, most: Int) throws {
    let newlines = try Self.text(page).filter { $0 == "\n" }
    #expect(newlines.count <= most)
  }
}
