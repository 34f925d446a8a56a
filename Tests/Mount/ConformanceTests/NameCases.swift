import Foundation
import Support
import Testing

/// Removals, renames, domains and names.
enum NameCases {
  private static func globalOverMachine(_ files: any TestFiles) throws {
    #expect(try files.get("d/Machine") == "m\n")
    try files.put("NSGlobalDomain/Machine", "global\n")
    files.pass(milliseconds: 20)
    #expect(try files.get("d/Machine") == "global\n")
  }

  private static func renamedNames(_ files: any TestFiles) throws {
    expectRefused(ENOENT) { _ = try files.get("other/Foo") }
    #expect(try files.get("other/Inherited") == "global\n")
    let inode = try files.status("other").inode
    try files.rename("other", "moved", flags: 0)
    try files.makeDirectory("other")
    #expect(try files.status("moved").inode == inode)
    #expect(try files.status("other").inode != inode)
    try files.put("NSGlobalDomain/Foo", "1\n")
    try files.put("NSGlobalDomain/Inherited", "new\n")
    files.pass(milliseconds: 20)
    #expect(try files.get("moved/Foo") == "1\n")
    #expect(try files.get("moved/Inherited") == "new\n")
  }

  static let list = [
    Case("a removed name is gone for a second, then another place shows", aRemovedNameIsGoneForA),
    Case("a key that is made again within a second keeps its type", aKeyMadeAgainWithinTheSecond),
    Case("an open file whose name is gone keeps its text", anOpenFileWhoseNameIsGone),
    Case("a rename to a new name moves value, type, bytes and inode", renameToANewNameMovesValue),
    Case("a rename moves a key to another domain", renameAcrossDomains),
    Case("a rename over a key keeps the target's type", renameOverAKeyKeepsTheTarget),
    Case("a rename of text that is not of the target's type is EPERM", renameOverAKeyWhoseTypeThe),
    Case("RENAME_NOREPLACE keeps a key, RENAME_EXCHANGE swaps", rename_noreplaceAndRename_exchange),
    Case("domains can be made, renamed and removed", domainsMadeKeptRenamedRemoved),
    Case("a directory in a domain and a file at the root are EPERM", theTreeHasNoOtherPlaces),
    Case("file names escape what a key holds and a name cannot", namesAreEscaped),
    Case("a value of the user's global domain shows over the machine's", globalOverMachine),
    Case("inherited names stay true after their domain was renamed", renamedNames),
    Case("a key keeps its inode number when its value changes", inodeNumbersAreSteady),
  ]

  private static func aRemovedNameIsGoneForA(_ files: any TestFiles) throws {
    try files.unlink("d/Integer")
    expectRefused(ENOENT) { _ = try files.get("d/Integer") }
    #expect(try !files.names("d").contains("Integer"))
    files.pass(milliseconds: 1100)
    #expect(try files.get("d/Integer") == "1\n")
    #expect(try files.names("d").contains("Integer"))
    expectRefused(EPERM) { try files.unlink("d/Integer") }
    expectRefused(EPERM) { try files.unlink("d/Machine") }
    expectRefused(EPERM) { try files.unlink("d/Inherited") }
  }

  private static func aKeyMadeAgainWithinTheSecond(_ files: any TestFiles) throws {
    try files.unlink("d/Real")
    try files.put("d/Real", "7\n")
    #expect(try files.type("d/Real") == "real")
    try files.unlink("d/Boolean")
    try files.put("d/Boolean", "word\n")
    #expect(try files.type("d/Boolean") == "string")
    try files.unlink("d/String")
    files.close(try files.open("d/String", O_WRONLY | O_CREAT | O_EXCL))
    #expect(try files.get("d/String") == "")
  }

  private static func anOpenFileWhoseNameIsGone(_ files: any TestFiles) throws {
    let file = try files.open("d/String", O_RDWR)
    try files.unlink("d/String")
    #expect(try files.read(file) == "hello\n")
    try files.write(file, "J", at: 0)
    #expect(try files.read(file) == "Jello\n")
    try files.put("d/String", "other\n")
    #expect(try files.read(file) == "Jello\n")
    files.close(file)
    #expect(try files.get("d/String") == "other\n")
  }

  private static func renameToANewNameMovesValue(_ files: any TestFiles) throws {
    try files.put("d/Boolean", "YES\n")
    let inode = try files.status("d/Boolean").inode
    try files.rename("d/Boolean", "d/Moved", flags: 0)
    #expect(try files.get("d/Moved") == "YES\n")
    #expect(try files.type("d/Moved") == "boolean")
    #expect(try files.status("d/Moved").inode == inode)
    expectRefused(ENOENT) { _ = try files.get("d/Boolean") }
    try files.put("d/Boolean", "new\n")
    #expect(try files.status("d/Boolean").inode != inode)
  }

  private static func renameAcrossDomains(_ files: any TestFiles) throws {
    try files.rename("d/Dict", "other/Dict", flags: 0)
    #expect(try files.type("other/Dict") == "dictionary")
    #expect(try files.names("other") == ["Dict", "Key"])
    #expect(try !files.names("d").contains("Dict"))
  }

  private static func renameOverAKeyKeepsTheTarget(_ files: any TestFiles) throws {
    try files.rename("d/Integer", "d/String", flags: 0)
    #expect(try files.type("d/String") == "string")
    #expect(try files.get("d/String") == "42\n")
  }

  private static func renameOverAKeyWhoseTypeThe(_ files: any TestFiles) throws {
    expectRefused(EPERM) { try files.rename("d/String", "d/Real", flags: 0) }
    #expect(try files.get("d/Real") == "1.5\n")
    #expect(try files.get("d/String") == "hello\n")
  }

  private static func rename_noreplaceAndRename_exchange(_ files: any TestFiles) throws {
    expectRefused(EEXIST) { try files.rename("d/Integer", "d/String", flags: 1) }
    try files.rename("d/Integer", "d/Fresh", flags: 1)
    #expect(try files.get("d/Fresh") == "42\n")
    try files.rename("d/Fresh", "other/Key", flags: 2)
    #expect(try files.get("d/Fresh") == "other\n")
    #expect(try files.get("other/Key") == "42\n")
    #expect(try files.type("other/Key") == "integer")
    expectRefused(ENOENT) { try files.rename("d/Fresh", "d/None", flags: 2) }
  }

  private static func domainsMadeKeptRenamedRemoved(_ files: any TestFiles) throws {
    try files.makeDirectory("new")
    #expect(try files.names("").contains("new"))
    expectRefused(EEXIST) { try files.makeDirectory("new") }
    try files.put("new/Key", "1\n")
    expectRefused(ENOTEMPTY) { try files.removeDirectory("new") }
    try files.rename("new", "renamed", flags: 0)
    #expect(try files.get("renamed/Key") == "1\n")
    #expect(try !files.names("").contains("new"))
    try files.unlink("renamed/Key")
    try files.removeDirectory("renamed")
    expectRefused(ENOENT) { _ = try files.names("renamed") }
    expectRefused(ENOTEMPTY) { try files.removeDirectory("NSGlobalDomain") }
    expectRefused(EPERM) { try files.rename("d", "e", flags: 0) }
  }

  private static func theTreeHasNoOtherPlaces(_ files: any TestFiles) throws {
    expectRefused(EPERM) { try files.makeDirectory("d/sub") }
    expectRefused(EPERM) { _ = try files.open("file", O_WRONLY | O_CREAT) }
    expectRefused(EPERM) { try files.rename("d/String", "String", flags: 0) }
  }

  private static func namesAreEscaped(_ files: any TestFiles) throws {
    for name in [
      "%2Efoo", "a%2Fb", "100%25", "%", "%34913", "%66oo~", "e\u{301}", "\u{e9}", "%2E%2E",
    ] {
      try files.put("other/\(name)", name + "\n")
      #expect(try files.get("other/\(name)") == name + "\n")
      #expect(try files.names("other").contains { $0.utf8.elementsEqual(name.utf8) })
    }
    #expect(try files.attribute("other/a%2Fb", "user.prefs.key") == "a/b")
    #expect(try files.attribute("other/%", "user.prefs.key") == "")
    expectRefused(EINVAL) { try files.put("other/100%", "x") }
    expectRefused(EINVAL) { try files.put("other/a%2fb", "x") }
    expectRefused(EINVAL) { try files.put("other/t%61b", "x") }
    expectRefused(ENAMETOOLONG) {
      try files.put("other/" + String(repeating: "n", count: 256), "x")
    }
  }

  private static func inodeNumbersAreSteady(_ files: any TestFiles) throws {
    let inode = try files.status("d/String").inode
    try files.put("d/String", "new\n")
    #expect(try files.status("d/String").inode == inode)
    #expect(try files.status("d/Integer").inode != inode)
    // Programs without large-file support cannot have larger ones.
    try files.rename("d/Integer", "d/Moved", flags: 0)
    for name in ["d", "d/String", "d/Moved"] {
      #expect(try files.status(name).inode < 1 << 32, "\(name)")
    }
  }
}
