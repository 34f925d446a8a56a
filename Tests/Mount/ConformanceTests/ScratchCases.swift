import Foundation
import Support
import Testing

/// Temporary and backup files, as tools make them: none of them remains as a preference. Also which
/// modes and times a key keeps.
enum ScratchCases {
  static let list = [
    Case("a file made with O_RDWR|O_EXCL is scratch, and a rename over a key sets it", renamedOver),
    Case("a rename of text that is not of the key's type is EPERM, and loses nothing", refused),
    Case("a key that is moved away and made again keeps its type, as in vim", movedAndMadeAgain),
    Case("a key that is made again with bad text keeps its old value", madeAgainBadly),
    Case("a key that is moved away and not made again is a key of its new name", parked),
    Case("a save that takes seconds finds its backup, and leaves nothing behind", slowSave),
    Case("a key that is moved away and back is unchanged", movedBack),
    Case("a key is gone if it is moved away and the backup is removed", movedAndRemoved),
    Case("a temporary file renamed to a new name gets its type from its text", newKey),
    Case("a temporary file may be renamed over a key before it has its text", lateText),
    Case("a name that only resembles a temporary one is a key at once", resembling),
    Case("what stays for 5 s becomes a key, whatever its name", staying),
    Case("an editor's companions of a key stay what they are", companions),
    Case("an old value that is moved away stays as a key beside the new one", movedAside),
    Case("a link copies a key to a backup, or sets a key from a temporary file", links),
    Case("symbolic links can have scratch names only", symbolicLinks),
    Case("tools can make, use and remove their temporary directories", directories),
    Case("a scratch file is listed until it is removed", listed),
    Case("scratch files take 64 MiB in all, then ENOSPC", full),
    Case("a key whose name looks like a backup's stays a key if moved or made again", toolNames),
    Case("keys can be rotated, as log files are", rotation),
    Case("if two keys are moved to one name, the second one stays", twoToOne),
    Case("a key that is moved twice within a second keeps type and mode", movedOn),
    Case("refused operations on scratch files change nothing", harmless),
    Case("a type that is set before the text is written stays", typeFirst),
    Case("a type that is set after the text was written takes all its bytes", typeLast),
    Case("setting the type of a backup's name makes it a key", putBack),
    Case("the type that is set on a temporary file is the key's after its rename", typeOfRenamed),
    Case("an escaped name is a key, even with a temporary file's ending", escaped),
    Case(
      "only tools make directories in a domain, and theirs at the root are no domains",
      foreignDirectories),
    Case("a tool's directory at the root becomes a domain, and its files keys", newDomains),
    Case("what cannot become a domain stays as it is", noDomains),
    Case("a domain can be renamed to the name of a removed one", domainSwap),
    Case("a key keeps its mode, and its time until the value changes", attributes),
    Case("a key gets mode and time of the file that is renamed over it", attributesOfRenamed),
  ]

  private static let exclusive = O_RDWR | O_CREAT | O_EXCL

  /// Makes a temporary file with the text, as programs do with mkstemp(3).
  private static func temporary(_ files: any TestFiles, _ path: String, _ text: String) throws {
    let file = try files.open(path, exclusive)
    defer { files.close(file) }
    try files.write(file, text, at: 0)
  }

  private static func renamedOver(_ files: any TestFiles) throws {
    try temporary(files, "d/sedx1Y2z3", "77\n")
    #expect(try files.type("d/sedx1Y2z3") == "scratch")
    try files.rename("d/sedx1Y2z3", "d/Integer", flags: 0)
    #expect(try files.get("d/Integer") == "77\n")
    #expect(try files.type("d/Integer") == "integer")
    expectRefused(ENOENT) { _ = try files.get("d/sedx1Y2z3") }
    try temporary(files, "d/.String.aB3dE6", "123")
    try files.rename("d/.String.aB3dE6", "d/String", flags: 0)
    #expect(try files.get("d/String") == "123")
    #expect(try files.type("d/String") == "string")
  }

  private static func refused(_ files: any TestFiles) throws {
    let before = try files.get("d/Integer")
    try temporary(files, "d/.Integer.tmp", "seven\n")
    expectRefused(EPERM) { try files.rename("d/.Integer.tmp", "d/Integer", flags: 0) }
    #expect(try files.get("d/Integer") == before)
    #expect(try files.get("d/.Integer.tmp") == "seven\n")
    expectRefused(EPERM) { try files.rename("d/.Integer.tmp", "d/Forced", flags: 0) }
    try files.unlink("d/.Integer.tmp")
    expectRefused(ENOENT) { _ = try files.get("d/.Integer.tmp") }
  }

  private static func movedAndMadeAgain(_ files: any TestFiles) throws {
    try temporary(files, "d/.Integer.swp", "swap")
    try files.put("d/4913", "")
    try files.unlink("d/4913")
    let old = try files.get("d/Integer")
    try files.rename("d/Integer", "d/Integer~", flags: 0)
    expectRefused(ENOENT) { _ = try files.status("d/Integer") }
    #expect(try files.get("d/Integer~") == old)
    let file = try files.open("d/Integer", O_WRONLY | O_CREAT)
    try files.truncate(file, to: 0)
    try files.write(file, "4711\n", at: 0)
    try files.synchronize(file)
    files.close(file)
    try files.unlink("d/Integer~")
    try files.unlink("d/.Integer.swp")
    #expect(try files.get("d/Integer") == "4711\n")
    #expect(try files.type("d/Integer") == "integer")
    files.pass(milliseconds: 1100)
    #expect(try files.get("d/Integer") == "4711\n")
    #expect(try !files.names("d").contains { $0.hasSuffix("~") || $0.hasPrefix(".") })
  }

  private static func madeAgainBadly(_ files: any TestFiles) throws {
    let old = try files.get("d/Integer")
    try files.rename("d/Integer", "d/Integer~", flags: 0)
    let file = try files.open("d/Integer", O_WRONLY | O_CREAT | O_TRUNC)
    expectRefused(EINVAL) { try files.write(file, "word\n", at: 0) }
    files.close(file)
    #expect(try files.get("d/Integer") == old)
    files.pass(milliseconds: 1100)
    #expect(try files.get("d/Integer") == old)
    #expect(try files.get("d/Integer~") == old)
    #expect(try files.type("d/Integer~") == "scratch")
  }

  private static func parked(_ files: any TestFiles) throws {
    let old = try files.get("d/Real")
    try files.rename("d/Real", "d/Real.old", flags: 0)
    #expect(try files.type("d/Real.old") == "scratch")
    files.pass(milliseconds: 5100)
    #expect(try files.get("d/Real.old") == old)
    #expect(try files.type("d/Real.old") == "real")
    #expect(try files.names("d").contains("Real.old"))
    expectRefused(ENOENT) { _ = try files.get("d/Real") }
  }

  private static func slowSave(_ files: any TestFiles) throws {
    try files.rename("d/Real", "d/Real~", flags: 0)
    files.pass(milliseconds: 3000)
    try files.put("d/Real", "2.5\n")
    try files.unlink("d/Real~")
    #expect(try files.get("d/Real") == "2.5\n")
    #expect(try files.type("d/Real") == "real")
    #expect(try files.names("d").filter { $0.contains("eal") } == ["Real"])
  }

  private static func movedBack(_ files: any TestFiles) throws {
    let old = try files.get("d/Real")
    try files.rename("d/Real", "d/Real.bak", flags: 0)
    try files.rename("d/Real.bak", "d/Real", flags: 0)
    #expect(try files.get("d/Real") == old)
    files.pass(milliseconds: 1100)
    #expect(try files.get("d/Real") == old)
    #expect(try files.type("d/Real") == "real")
    expectRefused(ENOENT) { _ = try files.get("d/Real.bak") }
  }

  private static func movedAndRemoved(_ files: any TestFiles) throws {
    try files.rename("d/Real", "d/Real~", flags: 0)
    try files.unlink("d/Real~")
    files.pass(milliseconds: 1100)
    expectRefused(ENOENT) { _ = try files.get("d/Real") }
    #expect(try !files.names("d").contains { $0.hasPrefix("Real") })
  }

  private static func newKey(_ files: any TestFiles) throws {
    try temporary(files, "d/tmp.Xy12", "[1, 2]\n")
    try files.rename("d/tmp.Xy12", "d/NewList", flags: 0)
    #expect(try files.type("d/NewList") == "array")
    #expect(try files.get("d/NewList") == "[1, 2]\n")
    #expect(try files.names("d").contains("NewList"))
  }

  private static func lateText(_ files: any TestFiles) throws {
    let file = try files.open("d/.late", exclusive)
    try files.rename("d/.late", "d/Integer", flags: 0)
    try files.write(file, "5\n", at: 0)
    files.close(file)
    #expect(try files.get("d/Integer") == "5\n")
  }

  private static func resembling(_ files: any TestFiles) throws {
    let names = [
      "Show.new", "String.new", "String.old", "String.1", "String_width", "Stringx1y2z3",
      "String1Password", "String.tmp",
    ]
    for name in names {
      try files.put("d/\(name)", "1\n")
      #expect(try files.type("d/\(name)") == "integer", "\(name)")
      try files.unlink("d/\(name)")
    }
    files.pass(milliseconds: 1100)
    for name in names.dropLast() {
      try exclusively(files, "d/\(name)", "1\n")
      #expect(try files.type("d/\(name)") == "integer", "\(name)")
    }
    // A tool that writes beside the key and renames over it.
    try files.put("d/Integer.tmp", "43\n")
    try files.rename("d/Integer.tmp", "d/Integer", flags: 0)
    #expect(try files.get("d/Integer") == "43\n" && files.type("d/Integer") == "integer")
    expectRefused(ENOENT) { _ = try files.status("d/Integer.tmp") }
  }

  /// Makes a file with the text as cp, tar and git do.
  private static func exclusively(_ files: any TestFiles, _ path: String, _ text: String) throws {
    let file = try files.open(path, O_WRONLY | O_CREAT | O_EXCL)
    defer { files.close(file) }
    try files.write(file, text, at: 0)
  }

  private static func staying(_ files: any TestFiles) throws {
    try exclusively(files, "d/String.tmp", "2\n")
    try temporary(files, "d/String.a1B2c3d4", "3\n")
    try files.put("d/.hidden", "4\n")
    try files.put("d/4913", "5\n")
    try files.put("d/String~", "6\n")
    try files.put("d/.mark", "")
    for name in ["String.tmp", "String.a1B2c3d4", ".hidden", "4913", "String~", ".mark"] {
      #expect(try files.type("d/\(name)") == "scratch", "\(name)")
    }
    files.pass(milliseconds: 5100)
    for (name, text) in [
      ("String.tmp", "2\n"), ("String.a1B2c3d4", "3\n"), ("%2Ehidden", "4\n"),
      ("%34913", "5\n"), ("%53tring~", "6\n"),
    ] {
      #expect(try files.get("d/\(name)") == text && files.type("d/\(name)") == "integer", "\(name)")
      #expect(try files.names("d").contains(name))
    }
    // The key goes on under the name that the file had.
    try files.put("d/.hidden", "7\n")
    #expect(try files.get("d/%2Ehidden") == "7\n" && files.get("d/.hidden") == "7\n")
    try files.rename("d/4913", "d/Integer", flags: 0)
    #expect(try files.get("d/Integer") == "5\n")
    for name in ["4913", "%34913"] {
      expectRefused(ENOENT) { _ = try files.status("d/\(name)") }
    }
    try files.unlink("d/%2Ehidden")
    expectRefused(ENOENT) { _ = try files.status("d/.hidden") }
    #expect(try files.type("d/.mark") == "scratch")
    #expect(try !files.names("d").contains(".hidden"))
  }

  private static func companions(_ files: any TestFiles) throws {
    try temporary(files, "d/.New.swp", "swap")
    try files.put("d/#String#", "autosave")
    try files.rename("d/String", "d/String~", flags: 0)
    try files.put("d/String", "saved\n")
    files.pass(milliseconds: 5100)
    for name in [".New.swp", "#String#", "String~"] {
      #expect(try files.type("d/\(name)") == "scratch", "\(name)")
    }
    #expect(try files.get("d/String~") == "hello\n")
  }

  private static func movedAside(_ files: any TestFiles) throws {
    try files.put("d/String", "42\n")
    try files.rename("d/String", "d/String.old", flags: 0)
    try files.put("d/String", "new\n")
    try files.link("d/String", "d/String.bak")
    files.pass(milliseconds: 5100)
    #expect(try files.get("d/String.old") == "42\n" && files.type("d/String.old") == "string")
    #expect(try files.get("d/String.bak") == "new\n" && files.type("d/String.bak") == "string")
    #expect(try files.get("d/String") == "new\n")
  }

  private static func links(_ files: any TestFiles) throws {
    try files.link("d/String", "d/String.bak")
    #expect(try files.get("d/String.bak") == files.get("d/String"))
    #expect(try files.type("d/String.bak") == "scratch")
    expectRefused(EPERM) { try files.link("d/String", "d/Second") }
    expectRefused(EEXIST) { try files.link("d/String.bak", "d/Integer") }
    try temporary(files, "d/.atomic", "true\n")
    try files.link("d/.atomic", "d/Linked")
    try files.unlink("d/.atomic")
    #expect(try files.type("d/Linked") == "boolean")
  }

  private static func symbolicLinks(_ files: any TestFiles) throws {
    try files.makeLink("d/.#String", to: "user@host.4711:1")
    #expect(try files.readLink("d/.#String") == "user@host.4711:1")
    try files.unlink("d/.#String")
    expectRefused(EOPNOTSUPP) { try files.makeLink("d/Other", to: "String") }
  }

  private static func directories(_ files: any TestFiles) throws {
    try files.makeDirectory("d/.~tmp~")
    try temporary(files, "d/.~tmp~/Integer", "12\n")
    expectRefused(ENOTEMPTY) { try files.removeDirectory("d/.~tmp~") }
    #expect(try files.names("d/.~tmp~") == ["Integer"])
    try files.rename("d/.~tmp~/Integer", "d/Integer", flags: 0)
    try files.removeDirectory("d/.~tmp~")
    #expect(try files.get("d/Integer") == "12\n")
    try files.makeDirectory("d/Integer20261121-77-1abc.lock")
    try files.removeDirectory("d/Integer20261121-77-1abc.lock")
    expectRefused(EPERM) { try files.makeDirectory("d/Folder") }
  }

  private static func listed(_ files: any TestFiles) throws {
    try files.put("d/.hidden", "x")
    #expect(try files.names("d").contains(".hidden"))
    #expect(try files.status("d/.hidden").size == 1)
    try files.unlink("d/.hidden")
    #expect(try !files.names("d").contains(".hidden"))
  }

  private static func full(_ files: any TestFiles) throws {
    let piece = String(repeating: "x", count: 1 << 20)
    let file = try files.open("d/.large", exclusive)
    for index in 0..<63 { try files.write(file, piece, at: index << 20) }
    expectRefused(ENOSPC) { try files.write(file, piece, at: 63 << 20) }
    files.close(file)
    try files.unlink("d/.large")
    try temporary(files, "d/.small", "x")
    try files.unlink("d/.small")
  }

  private static func attributes(_ files: any TestFiles) throws {
    let time: Int64 = 1_588_749_789_000_000_001
    try files.changeMode("d/String", 0o640)
    try files.setTime("d/String", time)
    var status = try files.status("d/String")
    #expect((status.mode, status.modified) == (0o640, time))
    try files.put("d/String", "another\n")
    status = try files.status("d/String")
    #expect(status.mode == 0o640)
    #expect(status.modified > time)
    try files.unlink("d/String")
    try files.put("d/String", "again\n")
    #expect(try files.status("d/String").mode == 0o640)
    try files.changeMode("d/Inherited", 0o644)
    #expect(try files.status("d/Inherited").mode == 0o600)
  }

  private static func attributesOfRenamed(_ files: any TestFiles) throws {
    let time: Int64 = 1_500_000_000_000_000_000
    try temporary(files, "d/.String.Ab12Cd", "synced\n")
    try files.changeMode("d/.String.Ab12Cd", 0o644)
    try files.setTime("d/.String.Ab12Cd", time)
    try files.rename("d/.String.Ab12Cd", "d/String", flags: 0)
    let status = try files.status("d/String")
    #expect((status.mode, status.modified) == (0o644, time))
    try files.rename("d/String", "d/Renamed", flags: 0)
    #expect(try files.status("d/Renamed").modified == time)
    #expect(try files.status("d/Renamed").mode == 0o644)
  }

  private static func toolNames(_ files: any TestFiles) throws {
    try files.put("d/Real.new", "true\n")
    try files.unlink("d/Real.new")
    files.pass(milliseconds: 1100)
    // Made while there is no key `Real`, whose backup it would be.
    try files.rename("d/Real", "d/Parked", flags: 0)
    files.pass(milliseconds: 1100)
    try files.put("d/Real.new", "true\n")
    try files.rename("d/Parked", "d/Real", flags: 0)
    #expect(try files.type("d/Real.new") == "boolean")
    try files.rename("d/Real.new", "d/Real.new.bak", flags: 0)
    try files.rename("d/Real.new.bak", "d/Real.new", flags: 0)
    files.pass(milliseconds: 1100)
    #expect(try files.get("d/Real.new") == "true\n")
    #expect(try files.type("d/Real.new") == "boolean")
    try files.unlink("d/Real.new")
    let file = try files.open("d/Real.new", O_WRONLY | O_CREAT | O_EXCL)
    try files.write(file, "false\n", at: 0)
    files.close(file)
    #expect(try files.type("d/Real.new") == "boolean")
  }

  private static func rotation(_ files: any TestFiles) throws {
    try files.put("d/Log", "1\n")
    try files.rename("d/Log", "d/Log.1", flags: 0)
    files.pass(milliseconds: 1100)
    try files.put("d/Log", "2\n")
    try files.rename("d/Log.1", "d/Log.2", flags: 0)
    files.pass(milliseconds: 30)
    try files.rename("d/Log", "d/Log.1", flags: 0)
    files.pass(milliseconds: 1200)
    #expect(try files.get("d/Log.2") == "1\n")
    #expect(try files.get("d/Log.1") == "2\n")
    expectRefused(ENOENT) { _ = try files.get("d/Log") }
  }

  private static func twoToOne(_ files: any TestFiles) throws {
    try files.rename("d/Real", "d/Real.bak", flags: 0)
    try files.rename("d/String", "d/Real.bak", flags: 0)
    files.pass(milliseconds: 1200)
    #expect(try files.get("d/Real.bak") == "hello\n")
    expectRefused(ENOENT) { _ = try files.get("d/Real") }
    expectRefused(ENOENT) { _ = try files.get("d/String") }
  }

  private static func movedOn(_ files: any TestFiles) throws {
    try files.put("d/String", "42\n")
    try files.changeMode("d/String", 0o640)
    try files.rename("d/String", "d/String.bak", flags: 0)
    try files.rename("d/String.bak", "d/Other", flags: 0)
    #expect(try files.type("d/Other") == "string")
    #expect(try files.status("d/Other").mode == 0o640)
    try files.rename("d/Other", "d/Other.old", flags: 0)
    try files.changeMode("d/Other.old", 0o644)
    files.pass(milliseconds: 5200)
    #expect(try files.status("d/Other.old").mode == 0o644)
    #expect(try files.type("d/Other.old") == "string")
  }

  private static func typeFirst(_ files: any TestFiles) throws {
    for (name, type, text) in [
      ("T1", "date", "2026-11-21T07:20:00Z\n"), ("T2", "data", "8"), ("T3", "string", "8"),
    ] {
      let file = try files.open("d/\(name)", O_WRONLY | O_CREAT | O_EXCL)
      try files.setAttribute("d/\(name)", "user.prefs.type", type)
      try files.write(file, text, at: 0)
      files.close(file)
      #expect(try files.type("d/\(name)") == type && files.get("d/\(name)") == text, "\(name)")
    }
    // A conversion leaves the modification time, as every setxattr(2) does.
    try files.put("d/T4", "8\n")
    try files.setTime("d/T4", 1_000_000_000)
    try files.setAttribute("d/T4", "user.prefs.type", "string")
    #expect(try files.status("d/T4").modified == 1_000_000_000 && files.type("d/T4") == "string")
  }

  private static func typeLast(_ files: any TestFiles) throws {
    for (number, (type, text)) in [
      ("data", "hello\n"), ("data", "hello"), ("data", "\n"), ("data", "42\n"), ("data", "[1]\n"),
      ("data", "two\n\n"), ("string", "42\n"), ("string", "[1]\n"), ("real", "5\n"),
      ("boolean", "1\n"),
    ].enumerated() {
      let name = "d/Last\(number)"
      let file = try files.open(name, O_WRONLY | O_CREAT | O_EXCL)
      try files.write(file, text, at: 0)
      try files.setAttribute(name, "user.prefs.type", type)
      files.close(file)
      #expect(try files.type(name) == type && files.get(name) == text, "\(type) \(text)")
    }
  }

  private static func putBack(_ files: any TestFiles) throws {
    for name in ["String.old", "x.lock", "Real.1"] {
      let file = try files.open("d/\(name)", O_WRONLY | O_CREAT | O_EXCL)
      try files.write(file, "5\n", at: 0)
      files.close(file)
      try files.setAttribute("d/\(name)", "user.prefs.type", "string")
      #expect(try files.type("d/\(name)") == "string", "\(name)")
    }
    try temporary(files, "d/.tmp2", "x")
    try files.setAttribute("d/.tmp2", "user.prefs.type", "string")
    #expect(try files.type("d/.tmp2") == "scratch")
    try files.setAttribute("d/String", "user.prefs.type", "scratch")
    #expect(try files.type("d/String") == "string")
  }

  private static func typeOfRenamed(_ files: any TestFiles) throws {
    for (target, text, type) in [
      ("New.bak", "8", "data"), ("Fresh", "2026-11-21T07:20:00Z\n", "date"),
    ] {
      try temporary(files, "d/.\(target).a1B2c3", text)
      try files.setAttribute("d/.\(target).a1B2c3", "user.prefs.type", type)
      try files.rename("d/.\(target).a1B2c3", "d/\(target)", flags: 0)
      #expect(try files.type("d/\(target)") == type && files.get("d/\(target)") == text)
    }
  }

  private static func escaped(_ files: any TestFiles) throws {
    for name in ["%74ilde~", "%66oo.swp", "%2Ehidden"] {
      try files.put("d/\(name)", "1\n")
      #expect(try files.type("d/\(name)") == "integer", "\(name)")
    }
    // The first character need not be escaped; listings show the usual name.
    expectRefused(ENOENT) { _ = try files.status("d/tab_width") }
    expectRefused(ENOENT) { _ = try files.status("d/%74ab_width") }
    try exclusively(files, "d/%74ab_width", "8\n")
    try files.put("d/%4B.tmp", "9\n")
    // What the kernel knows of the usual names is dropped after the reply.
    files.pass(milliseconds: 100)
    for name in ["d/tab_width", "d/%74ab_width"] { #expect(try files.get(name) == "8\n") }
    #expect(try files.get("d/K.tmp") == "9\n" && files.names("d").contains("tab_width"))
    #expect(try !files.names("d").contains("%74ab_width"))
    try files.rename("d/%4B.tmp", "d/%74ab_width", flags: 0)
    files.pass(milliseconds: 100)
    #expect(try files.get("d/tab_width") == "9\n")
    expectRefused(ENOENT) { _ = try files.status("d/K.tmp") }
    try files.unlink("d/%74ab_width")
    files.pass(milliseconds: 100)
    for name in ["d/tab_width", "d/%74ab_width"] {
      expectRefused(ENOENT) { _ = try files.status(name) }
    }
  }

  private static func newDomains(_ files: any TestFiles) throws {
    let directory = ".unison.n.0123abcd.unison.tmp"
    try files.makeDirectory(directory)
    for (name, text) in [
      ("Number", "8\n"), ("%2Ehidden", "x\n"), ("Empty", ""), (".note", "later"),
    ] {
      // Unison writes each file under such a name, and renames it.
      try files.put("\(directory)/.unison.\(name).0123abcd.unison.tmp", text)
      try files.rename(
        "\(directory)/.unison.\(name).0123abcd.unison.tmp", "\(directory)/\(name)", flags: 0)
    }
    try files.changeMode("\(directory)/Number", 0o400)
    let inode = try files.status(directory).inode
    try files.rename(directory, "n", flags: 1)
    #expect(try files.names("").contains("n") && !files.names("").contains(directory))
    #expect(try files.attribute("n", "user.prefs.domain") == "n")
    #expect(try files.status("n").inode == inode && files.names("n").contains("Number"))
    for (name, type) in [("Number", "integer"), ("%2Ehidden", "string"), (".note", "scratch")] {
      #expect(try files.attribute("n/\(name)", "user.prefs.type") == type)
    }
    #expect(try files.status("n/Number").mode & 0o777 == 0o400 && files.get("n/Empty") == "")
    try files.put("n/Empty", "text\n")
    #expect(try files.get("n/Empty") == "text\n")
    // An empty domain is replaced.
    try files.makeDirectory("m")
    try files.makeDirectory("tmp.a1B2c3D4e5")
    try files.put("tmp.a1B2c3D4e5/K", "1\n")
    try files.rename("tmp.a1B2c3D4e5", "m", flags: 0)
    #expect(try files.get("m/K") == "1\n" && files.names("m") == ["K"])
    // So is one whose last key was moved to another domain a moment ago.
    try files.rename("m/K", "n/K~", flags: 0)
    try files.makeDirectory("tmp.a1B2c3D4e5")
    try files.put("tmp.a1B2c3D4e5/J", "2\n")
    try files.rename("tmp.a1B2c3D4e5", "m", flags: 0)
    #expect(try files.names("m") == ["J"] && files.get("n/%4B~") == "1\n")
  }

  private static func noDomains(_ files: any TestFiles) throws {
    let directory = ".unison.n.0123abcd.unison.tmp"
    try files.makeDirectory(directory)
    try files.put("\(directory)/Number", "8\n")
    expectRefused(ENOTEMPTY) { try files.rename(directory, "d", flags: 0) }
    expectRefused(EEXIST) { try files.rename(directory, "d", flags: 1) }
    expectRefused(EPERM) { try files.rename(directory, ".git", flags: 0) }
    try files.makeDirectory("\(directory)/inner")
    expectRefused(EPERM) { try files.rename(directory, "n", flags: 0) }
    try files.removeDirectory("\(directory)/inner")
    try files.put(".watchman-cookie-host-1-0", "x")
    expectRefused(EPERM) { try files.rename(".watchman-cookie-host-1-0", "n", flags: 0) }
    try files.unlink(".watchman-cookie-host-1-0")
    expectRefused(ENOENT) { _ = try files.status("n") }
    #expect(try files.get("\(directory)/Number") == "8\n")
    try files.unlink("\(directory)/Number")
    try files.removeDirectory(directory)
  }

  private static func foreignDirectories(_ files: any TestFiles) throws {
    for name in [".git", ".stfolder", "plain"] {
      expectRefused(EPERM) { try files.makeDirectory("d/\(name)") }
    }
    for name in [
      "rdiff-backup.tmp.0", ".~tmp~", "tmp.a1B2c3D4e5", ".unison.d.0123abcd.unison.tmp",
      ".watchman-cookie-host-1-0", ".mutagen-temporary-probe",
    ] {
      try files.makeDirectory(name)
      try files.put("\(name)/file", "x")
      expectRefused(ENOTEMPTY) { try files.removeDirectory(name) }
      try files.unlink("\(name)/file")
      #expect(try files.names("").contains(name))
      try files.removeDirectory(name)
    }
    for name in [".git", "tmp.editor"] {
      expectRefused(EPERM) { try files.makeDirectory(name) }
    }
    for name in [".watchman-cookie-host-1-0", ".mutagen-temporary-probe"] {
      try files.put(name, "x")
      #expect(try files.get(name) == "x" && files.names("").contains(name))
      expectRefused(EPERM) { try files.rename(name, "d/Cookie", flags: 0) }
      try files.unlink(name)
      expectRefused(ENOENT) { _ = try files.status(name) }
    }
    expectRefused(EPERM) { _ = try files.open("Cookie", O_WRONLY | O_CREAT) }
    // A domain, although some tools end their names so.
    try files.makeDirectory("x.tmp.0")
    #expect(try files.attribute("x.tmp.0", "user.prefs.domain") == "x.tmp.0")
    try files.removeDirectory("x.tmp.0")
  }

  private static func harmless(_ files: any TestFiles) throws {
    try temporary(files, "d/.tmp1", "kept")
    expectRefused(EPERM) { try files.rename("d/String", "d/.tmp1", flags: 2) }
    #expect(try files.get("d/.tmp1") == "kept")
    let file = try files.open("d/.tmp1", O_RDWR)
    expectRefused(ENOSPC) { try files.truncate(file, to: .max) }
    files.close(file)
    try temporary(files, "d/.empty", "")
    expectRefused(EPERM) { try files.rename("d/.empty", "d/Forced", flags: 0) }
    #expect(try files.get("d/Forced") == "7\n")
    try files.makeDirectory("d/full.lock")
    try temporary(files, "d/full.lock/x", "x")
    try files.makeDirectory("d/other.lock")
    expectRefused(ENOTEMPTY) { try files.rename("d/other.lock", "d/full.lock", flags: 0) }
  }

  private static func domainSwap(_ files: any TestFiles) throws {
    try files.makeDirectory("new")
    try files.put("new/K", "new\n")
    try files.makeDirectory("target")
    try files.put("target/K", "old\n")
    try files.unlink("target/K")
    try files.removeDirectory("target")
    try files.rename("new", "target", flags: 0)
    #expect(try files.get("target/K") == "new\n")
    #expect(try files.names("target") == ["K"])
  }
}
