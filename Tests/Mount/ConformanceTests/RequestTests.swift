import Foundation
import Support
import Testing

/// Counts the kernel's requests: a warm read must not leave the kernel, and a change must not take
/// more requests than it needs. With `-d` libfuse prints a line for each request.
@Suite("Requests to the driver") struct RequestTests {
  /// Returns the requests that a second run of `body` makes; the first run warms the caches.
  private func requests(_ mount: Mount, _ body: () throws -> Void) throws -> [String] {
    try body()
    usleep(100_000)
    let before = mount.requests.count
    try body()
    usleep(100_000)
    return Array(mount.requests.dropFirst(before))
  }

  @Test("warm reads, stats and missing names make no request, warm listings only open")
  func warm() throws {
    try withMount(["-d"], prepare: Fixture.make) { (_, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      var cases: [(name: String, body: () throws -> Void)] = [
        ("missing key", { for _ in 0..<1000 { _ = try? files.status("d/None") } }),
        ("missing domain", { for _ in 0..<1000 { _ = try? files.status("none/None") } }),
        ("listing", { for _ in 0..<100 { _ = try files.names("d") } }),
      ]
      for path in ["d/Integer", "d/Dict", "d/Inherited", "d/Forced"] {
        cases.append(("read \(path)", { for _ in 0..<1000 { _ = try files.get(path) } }))
        cases.append(("stat \(path)", { for _ in 0..<1000 { _ = try files.status(path) } }))
      }
      // A listing is cached once it has been the same for two seconds.
      sleep(3)
      for example in cases {
        let made = try requests(mount, example.body)
        // The kernel opens the directory; the names come from its cache. A program that asks every
        // mount of the machine for its space (df) may come at any time.
        let others = made.filter { !["OPENDIR", "RELEASEDIR", "STATFS"].contains($0) }
        #expect(others == [], "\(example.name)")
        let opens = made.filter { $0.hasSuffix("DIR") }
        #expect(opens.isEmpty || example.name == "listing", "\(example.name)")
      }
    }
  }

  /// Returns the requests since `before` other than GETXATTR, and the number of GETXATTR requests.
  /// With those the kernel asks for security.capability before it changes a file whose attributes
  /// it has just read; only a file system without extended attributes could avoid them.
  private func since(_ before: Int, _ mount: Mount) -> (made: [String], probes: Int) {
    let all = mount.requests.dropFirst(before)
    return (all.filter { $0 != "GETXATTR" }, all.filter { $0 == "GETXATTR" }.count)
  }

  @Test("a save by temporary file and rename makes at most eight requests")
  func save() throws {
    try withMount(["-d"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      func save(_ text: String) throws {
        let file = try files.open("d/.Integer.a1B2c3", O_RDWR | O_CREAT | O_EXCL)
        try files.write(file, text, at: 0)
        files.close(file)
        try files.rename("d/.Integer.a1B2c3", "d/Integer", flags: 0)
      }
      try save("1\n")
      usleep(100_000)
      let before = mount.requests.count
      try save("2\n")
      usleep(200_000)
      let requests = since(before, mount).made.filter { $0 != "FORGET" && $0 != "BATCH_FORGET" }
      #expect(requests.contains("CREATE") && requests.contains("RENAME"))
      #expect(requests.count <= 8, "\(requests)")
    }
  }

  @Test("an overwrite makes two requests, the truncation and the write, and a GETATTR at most")
  func overwrite() throws {
    try withMount(["-d"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      sandbox.shell("cat $M/d/Integer; echo 1 > $M/d/Integer; cat $M/d/Integer")
      usleep(100_000)
      var before = mount.requests.count
      try files.put("d/Integer", "2\n")
      var requests = since(before, mount)
      #expect(requests.made.filter { $0 != "GETATTR" } == ["SETATTR", "WRITE"])
      #expect(requests.made.count <= 3)
      #expect(requests.probes <= 2)
      let text = try files.get("d/Integer")
      #expect(text == "2\n")
      before = mount.requests.count
      #expect(sandbox.shell("echo 3 > $M/d/Integer").status == 0)
      requests = since(before, mount)
      #expect(requests.made.filter { $0 != "GETATTR" } == ["SETATTR", "WRITE"])
      #expect(requests.made.count <= 3)
    }
  }

  @Test("overwrites that follow each other at once ask for no attributes")
  func overwrites() throws {
    try withMount(["-d"], prepare: Fixture.make) { (_, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      try files.put("d/Integer", "1\n")
      let before = mount.requests.count
      // An overwrite that takes longer than the attributes are valid asks for them.
      var (late, begin) = (2, ContinuousClock.now)
      for number in 0..<200 {
        try files.put("d/Integer", "\(number)\n")
        let end = ContinuousClock.now
        if end - begin > .milliseconds(10) { late += 1 }
        begin = end
      }
      let requests = since(before, mount)
      #expect(requests.made.filter { $0 == "GETATTR" }.count <= late)
      #expect(requests.made.filter { $0 != "GETATTR" }.count == 400)
      #expect(requests.probes <= 200 + late)
    }
  }

  @Test("a text in many pieces makes one request for each piece")
  func pieces() throws {
    try withMount(["-d"], prepare: Fixture.make) { (_, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      _ = try files.get("d/String")
      let before = mount.requests.count
      try files.put("d/String", String(repeating: "x", count: 50), pieces: 1)
      let requests = since(before, mount)
      #expect(requests.made == ["SETATTR"] + Array(repeating: "WRITE", count: 50))
      #expect(requests.probes <= 2)
    }
  }

  @Test("the first look at the files of a directory makes one request for each, which reads it")
  func cold() throws {
    try withMount(
      ["-d"],
      prepare: { sandbox in
        sandbox.makeList(
          sandbox.config + "/many.plist", "{f'Key{i}': f'text {i}' for i in range(900)}")
      }
    ) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("cat $M/many/Key1")
      usleep(100_000)
      let before = mount.requests.count
      let outcome = sandbox.shell("grep -r text $M/many | wc -l")
      #expect(outcome.output == "900\n")
      usleep(100_000)
      let made = Dictionary(grouping: mount.requests.dropFirst(before)) { $0 }.mapValues(\.count)
      #expect(made["READ"] == 899 && made["LOOKUP", default: 0] == 0, "\(made)")
      #expect(made["GETATTR", default: 0] <= 2 && made["READDIRPLUS", default: 0] <= 12, "\(made)")
    }
  }

  @Test("the kernel sends OPEN and FLUSH once at most, for the first file")
  func firstLook() throws {
    try withMount(["-d"], prepare: Fixture.make) { sandbox, mount in
      sandbox.shell("cat $M/d/Integer")
      #expect(mount.requests.filter { $0 == "OPEN" }.count == 1)
      sandbox.shell("cat $M/d/String")
      #expect(mount.requests.filter { $0 == "OPEN" }.count == 1)
      #expect(
        !mount.requests.contains("FLUSH") || mount.requests.filter { $0 == "FLUSH" }.count == 1)
    }
  }
}
