import Foundation
import Support
import Testing

/// What listings of large directories cost.
@Suite("Listings") struct DirectoryTests {
  /// A mount whose domain `many` has 900 keys, which are five parts of a listing.
  private func withKeys(_ body: (_ domain: String, MountedFiles) throws -> Void) throws {
    let list = "{f'Key{i}': {'a': i + 1000} for i in range(900)}"
    try withMount(prepare: { $0.makeList($0.config + "/many.plist", list) }) { _, mount in
      try body(mount.path("many"), MountedFiles(mount.path("")))
    }
  }

  private func nodes(_ files: MountedFiles) throws -> Int {
    let status = Data(try files.get(".prefs/status.json").utf8)
    let items = try JSONSerialization.jsonObject(with: status) as? [String: Any]
    return try #require(items?["nodes"] as? Int)
  }

  @Test("a directory that is opened again and again counts its nodes once")
  func repeated() throws {
    try withKeys { domain, files in
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

  @Test("a directory's time moves with names that come and go, not with values")
  func times() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/d; defaults write d A 1; stat -c %y $M/d; sleep 0.1
        look() { sleep 0.1; [ "$(stat -c %y $M/d)" = "$last" ] && echo same || echo moved
          last=$(stat -c %y $M/d); }
        last=$(stat -c %y $M/d); defaults write d A 2; look; echo 3 > $M/d/A; look
        defaults write d B 1; look; defaults write d '{A = 4; B = 1;}'; look
        defaults delete d B; look; cat $M/d/A; ls $M/d
        """)
      let lines = outcome.output.split(separator: "\n").dropFirst()
      #expect(lines == ["same", "same", "moved", "same", "moved", "4", "A"], "\(outcome)")
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

  @Test("processes that list a large directory at the same time get all names, made once for all")
  func together() throws {
    let list = "{f'Key{i}': i + 1000 for i in range(20000)}"
    try withMount(prepare: { $0.makeList($0.config + "/many.plist", list) }) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        for i in $(seq 8); do ls $M/many | wc -l & done; wait
        cat /proc/\(mount.pid)/task/*/comm | grep -c prefs-listing
        """)
      let lines = outcome.output.split(separator: "\n")
      #expect(lines.count == 9 && lines.dropLast().allSatisfy { $0 == "20000" }, "\(outcome)")
      // A thread that has just made a listing may not be free again when the next one is needed.
      let threads = try #require(lines.last.flatMap { Int($0) })
      // An idle thread ends after 2 s, which may have gone by.
      #expect((0...2).contains(threads), "\(outcome)")
    }
  }
}
