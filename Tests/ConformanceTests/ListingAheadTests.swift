import Foundation
import Support
import Testing

/// Parts of listings that the driver makes before the kernel asks for them.
@Suite("Listings made ahead") struct ListingAheadTests {
  /// A mount whose domain `many` has 900 keys, which are five parts of a listing.
  private func withKeys(_ body: (Sandbox, _ domain: String, MountedFiles) throws -> Void) throws {
    let list = "{f'Key{i}': {'a': i + 1000} for i in range(900)}"
    try withMount(prepare: { $0.makeList($0.config + "/many.plist", list) }) { sandbox, mount in
      try body(sandbox, mount.path("many"), MountedFiles(mount.path("")))
    }
  }

  /// The names of the domain in the order of its listing, from a tree of its own.
  private func order(_ sandbox: Sandbox) -> [String] {
    sandbox.shell("ls -U $M/.prefs/places/user/many").output.split(separator: "\n").map(String.init)
  }

  private func nodes(_ files: MountedFiles) throws -> Int {
    let status = Data(try files.get(".prefs/status.json").utf8)
    let items = try JSONSerialization.jsonObject(with: status) as? [String: Any]
    return try #require(items?["nodes"] as? Int)
  }

  private struct Change: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// The mount that the change is made through: a second one of the store, or the one that is
    /// read. While there are two, the kernel asks for attributes after each change.
    var usesSecond = false
    /// Done before the directory is read.
    var before: @Sendable (MountedFiles, _ path: String) throws -> Void = { _, _ in }
    /// Done after the driver has made the part with the key ahead.
    let change: @Sendable (MountedFiles, _ path: String) throws -> Void
    /// The size of the key's file afterwards; nil: it is gone.
    let size: Int?
  }

  @Sendable private static func truncate(_ files: MountedFiles, _ path: String) throws {
    let key = try files.open(path, O_WRONLY)
    try files.truncate(key, to: 0)
    files.close(key)
  }

  private static let changes: [Change] = [
    Change(
      testDescription: "a write", change: { files, path in try files.put(path, "{\"a\":1}\n") },
      size: 8),
    Change(
      testDescription: "a write of incomplete text",
      change: { files, path in try files.put(path, "{\n") }, size: 2),
    Change(
      testDescription: "a removal", change: { files, path in try files.unlink(path) }, size: nil),
    Change(
      testDescription: "a write to another mount", usesSecond: true,
      change: { files, path in try files.put(path, "{\"a\":1}\n") }, size: 8),
    Change(
      testDescription: "the end of a truncation that nothing follows",
      before: truncate,
      change: { _, _ in usleep(50_000) }, size: 16),
    Change(
      testDescription: "an fsync that decides about a truncation",
      before: truncate,
      change: { files, path in
        let key = try files.open(path, O_WRONLY)
        try files.synchronize(key)
        files.close(key)
      },
      size: 16),
  ]

  @Test(
    "a part that was made ahead shows a change that comes before it is read", arguments: changes)
  private func changed(_ example: Change) throws {
    try withKeys { sandbox, domain, files in
      let second = example.usesSecond ? try Mount(sandbox, at: sandbox.secondMountPoint) : nil
      defer { second?.unmount() }
      let writer = second.map { MountedFiles($0.path("")) } ?? files
      let path = "many/" + order(sandbox)[250]
      let before = try nodes(files)
      try example.before(files, path)
      let directory = try #require(opendir(domain))
      defer { closedir(directory) }
      _ = readdir(directory)
      usleep(10_000)
      #expect(try nodes(files) > before + 250, "no part was made ahead")
      try example.change(writer, path)
      // What the change itself invalidates, the kernel has dropped by then.
      usleep(10_000)
      while readdir(directory) != nil {}
      #expect((try? files.status(path).size) == example.size)
    }
  }

  @Test("a part that nobody reads is dropped, with the look-ups that it counted")
  func unread() throws {
    try withKeys { _, domain, files in
      let before = try nodes(files)
      let directory = try #require(opendir(domain))
      defer { closedir(directory) }
      _ = readdir(directory)
      usleep(10_000)
      let made = try nodes(files)
      #expect(made > before + 250, "no part was made ahead")
      usleep(300_000)
      #expect(try nodes(files) < made - 100)
      var count = 1
      while readdir(directory) != nil { count += 1 }
      #expect(count == 902)
    }
  }

  @Test("a directory that is opened again and again counts its nodes once")
  func repeated() throws {
    try withKeys { _, domain, files in
      let before = try nodes(files)
      for _ in 0..<5 {
        let directory = try #require(opendir(domain))
        _ = readdir(directory)
        closedir(directory)
        usleep(10_000)
      }
      usleep(300_000)
      #expect(try nodes(files) < before + 250)
    }
  }

  @Test("a process that looks at each file of a large directory looks one name up")
  func large() throws {
    let list = "{f'Key{i}': i + 1000 for i in range(6000)}"
    try withMount(["-d"], prepare: { $0.makeList($0.config + "/many.plist", list) }) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("cat $M/many/Key1")
      usleep(100_000)
      let before = mount.requests.count
      #expect(sandbox.shell("ls -l $M/many | grep -c ' 5 '").output == "6000\n")
      usleep(100_000)
      let made = mount.requests.dropFirst(before)
      #expect(made.filter { $0 == "LOOKUP" }.count == 1, "\(made)")
      #expect(made.filter { $0 == "READDIRPLUS" }.count <= 40, "\(made)")
    }
  }
}
