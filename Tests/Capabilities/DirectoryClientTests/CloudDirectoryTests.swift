import Foundation
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import DirectoryClient

@Suite("Machines over a directory") struct CloudDirectoryTests {
  private static let key = CloudKey("d", "K")

  private static func files(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  /// Copies a machine's file to the directory of another one, as a synchroniser does.
  private static func copy(_ host: TestHost, to other: String, as name: String? = nil) throws {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: host.ownFile))
    let target = other + "/" + (name ?? HostFileName.name(of: host.file.host))
    try bytes.write(to: URL(fileURLWithPath: target), options: .atomic)
  }

  /// Runs the body with two machines, each with its own copy of the directory.
  private static func withReplicas(_ body: (TestHost, TestHost) throws -> Void) throws {
    try withDirectory { left in
      try withDirectory { right in
        let hosts = (TestHost(left, "left"), TestHost(right, "right"))
        hosts.0.run()
        hosts.1.run()
        try body(hosts.0, hosts.1)
      }
    }
  }

  @Test("what one machine sets or removes, the other one has")
  func roundTrip() throws {
    try withDirectory { path in
      let (left, right) = (TestHost(path, "left"), TestHost(path, "right"))
      for value: Value? in [1, "text", nil, 2] {
        left.set(Self.key, value)
        left.run()
        right.run()
        #expect(right.values[Self.key] == value)
      }
      right.set(Self.key, 3)
      right.run()
      left.run()
      #expect(left.values == [Self.key: 3] && left.error == nil)
      #expect(left.replacedValues.isEmpty && right.replacedValues.isEmpty)
      #expect(left.machine.state.pending.isEmpty && right.machine.state.pending.isEmpty)
      try #expect(Self.files(path).count == 2)
    }
  }

  @Test("two change a key at once: the later wins on both, and the first one has it in its log")
  func conflict() throws {
    try Self.withReplicas { left, right in
      left.set(Self.key, "old")
      left.run()
      try Self.copy(left, to: right.path)
      right.run()
      #expect(right.values[Self.key] == "old")
      left.set(Self.key, "first")
      left.run()
      usleep(2000)
      right.set(Self.key, "second")
      right.run()
      try Self.copy(left, to: right.path)
      try Self.copy(right, to: left.path)
      left.run()
      right.run()
      #expect(left.values[Self.key] == "second" && right.values[Self.key] == "second")
      #expect(left.replacedValues == ["first"] && right.replacedValues == [])
      // It is logged once, also after a restart.
      left.begin()
      left.run()
      #expect(left.replacedValues == ["first"])
    }
  }

  @Test("a value that another machine replaced knowingly, several times, is not in the log")
  func chain() throws {
    try Self.withReplicas { left, right in
      left.set(Self.key, 0)
      left.run()
      try Self.copy(left, to: right.path)
      right.run()
      for value in 1...5 {
        right.begin()
        right.run()
        right.set(Self.key, .integer(WideInteger(Int64(value))))
        right.run()
      }
      try Self.copy(right, to: left.path)
      left.run()
      #expect(left.values[Self.key] == 5 && left.replacedValues == [])
    }
  }

  @Test("the name of a new file is on the disk before its records count as sent")
  func durableName() throws {
    try withDirectory { path in
      for (reason, isThere) in [(Errno.inputOutput, false), (.invalidArgument, true)] {
        // A machine makes its file when it begins.
        let host = Interposition.with({
          $0.name == "fsync" && $0.path == path ? .fail(reason) : .proceed
        }) {
          let host = TestHost(path, "left")
          host.set(Self.key, 1)
          host.run()
          return host
        }
        #expect(host.machine.state.pending.isEmpty == isThere, "\(reason)")
        #expect((host.error == nil) == isThere, "\(reason)")
      }
    }
  }

  @Test("a process that ends between the file and its own records repeats and loses nothing")
  func killed() throws {
    try withDirectory { path in
      let (left, right) = (TestHost(path, "left"), TestHost(path, "right"))
      right.run()
      for value in 1...20 {
        left.run()
        left.set(Self.key, .integer(WideInteger(Int64(value))))
        // The answer is lost.
        left.begin()
      }
      left.run()
      right.run()
      #expect(left.values[Self.key] == 20 && right.values[Self.key] == 20)
      #expect(left.replacedValues == [] && right.replacedValues == [])
      try #expect(Self.files(path).count == 2, "it goes on with its file")
    }
  }

  @Test("copies of one machine notice each other, and take files of their own", arguments: [1, 2])
  func clones(_ directories: Int) throws {
    try withDirectory { path in
      try withDirectory { other in
        let left = TestHost(path, "left")
        left.run()
        left.set(Self.key, 1)
        left.run()
        if directories == 2 { try Self.copy(left, to: other) }
        let clone = TestHost(cloneOf: left, directories == 2 ? other : path, "clone")
        for host in [left, clone] {
          host.run()
          host.set(CloudKey("d", host === left ? "Left" : "Clone"), 2)
          host.run()
        }
        if directories == 2 {
          // Both have written to the file of one name: one becomes a copy.
          let name = "\(left.file.host).sync-conflict-20261129-051300-ABCDEFG.prefscloud"
          try Self.copy(clone, to: path, as: name)
          try Self.copy(left, to: other)
          left.run()
          clone.run()
          try #expect(!Self.files(path).contains(name), "it was read")
          try Self.copy(left, to: other)
          try Self.copy(clone, to: path)
        }
        left.run()
        clone.run()
        left.run()
        #expect(left.file.host != clone.file.host)
        let all: [CloudKey: Value] = [
          Self.key: 1, CloudKey("d", "Left"): 2, CloudKey("d", "Clone"): 2,
        ]
        #expect(left.values == all && clone.values == all)
        #expect(!(left.lines + clone.lines).isEmpty || directories == 1)
      }
    }
  }

  @Test(
    "a file that is gone, went back, is torn or was replaced is written again",
    arguments: ["gone", "back", "power", "torn", "zeros", "link", "garbage"])
  func damaged(_ how: String) throws {
    try withDirectory { path in
      let left = TestHost(path, "left")
      left.run()
      left.set(Self.key, 1)
      left.run()
      let file = URL(fileURLWithPath: left.ownFile)
      let earlier = try Data(contentsOf: file)
      left.set(CloudKey("d", "L"), 2)
      left.run()
      let whole = try Data(contentsOf: file)
      switch how {
      case "gone": try FileManager.default.removeItem(at: file)
      // The state was on the disk, and the end of the file was not when the power went.
      case "back", "power": try earlier.write(to: file, options: .atomic)
      case "torn": try whole.dropLast(9).write(to: file)
      case "zeros": try (whole + Data(count: 99)).write(to: file)
      case "link":
        try FileManager.default.moveItem(atPath: left.ownFile, toPath: path + "/moved")
        try FileManager.default.createSymbolicLink(
          atPath: left.ownFile, withDestinationPath: path + "/moved")
      default: try Data("prefscl1 what is this".utf8).write(to: file)
      }
      if ["power", "torn", "garbage"].contains(how) { left.begin() }
      left.run()
      left.set(CloudKey("d", "M"), 3)
      left.run()
      let right = TestHost(path, "right")
      right.run()
      let all: [CloudKey: Value] = [Self.key: 1, CloudKey("d", "L"): 2, CloudKey("d", "M"): 3]
      #expect(left.values == all && right.values == all && left.error == nil, "\(left.error ?? "")")
    }
  }

  @Test("the values of a file that somebody removed come from the machines that have read it")
  func retired() throws {
    try withDirectory { path in
      let (left, right) = (TestHost(path, "left"), TestHost(path, "right"))
      left.run()
      left.set(Self.key, 1)
      left.run()
      right.run()
      try FileManager.default.removeItem(atPath: left.ownFile)
      right.run()
      #expect(right.values[Self.key] == 1)
      right.begin()
      right.run()
      let third = TestHost(path, "third")
      third.run()
      #expect(third.values[Self.key] == 1)
    }
  }

  @Test("links, pipes, large files and those of other keys and programs are not read")
  func others() throws {
    try withDirectory { path in
      let left = TestHost(path, "left")
      left.run()
      left.set(Self.key, 1)
      left.run()
      let manager = FileManager.default
      try manager.createSymbolicLink(
        atPath: path + "/link.prefscloud", withDestinationPath: left.ownFile)
      #expect(mkfifo(path + "/pipe.prefscloud", 0o600) == 0)
      try manager.createDirectory(
        atPath: path + "/dir.prefscloud", withIntermediateDirectories: true)
      #expect(manager.createFile(atPath: path + "/large.prefscloud", contents: nil))
      #expect(truncate(path + "/large.prefscloud", 65 << 20) == 0)
      try Data("some text".utf8).write(to: URL(fileURLWithPath: path + "/text.prefscloud"))
      try Data("text".utf8).write(to: URL(fileURLWithPath: path + "/README"))
      let right = TestHost(path, "right")
      right.run()
      #expect(right.values == [Self.key: 1] && right.error == nil)
      #expect(right.lines.count == 1 && right.lines[0].contains("text.prefscloud"))
      let stranger = TestHost(path, "stranger", key: 8)
      stranger.run()
      #expect(stranger.error?.contains("copy the key file") == true)
      #expect(stranger.values == [:])
    }
  }

  @Test("a directory that is gone for a while is found again; what was set meanwhile goes there")
  func absent() throws {
    try withDirectory { path in
      let left = TestHost(path, "left")
      left.run()
      left.set(Self.key, 1)
      left.run()
      try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
      left.run()
      #expect(left.error?.contains("No such file or directory") == true)
      left.set(Self.key, 2)
      left.run()
      #expect(left.machine.state.pending.count == 1)
      try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
      left.run()
      left.run()
      #expect(left.machine.state.pending.isEmpty && left.error == nil)
      let right = TestHost(path, "right")
      right.run()
      #expect(right.values == [Self.key: 2])
    }
  }

  @Test("a file is written again when more than half of it was replaced")
  func compaction() throws {
    try withDirectory { path in
      let left = TestHost(path, "left")
      left.run()
      let text = String(repeating: "x", count: 1000)
      var largest = 0
      for number in 0..<60 {
        left.set(CloudKey("d", Key("K\(number % 3)")), .string("\(number)\(text)"))
        left.run()
        let size = try FileManager.default.attributesOfItem(atPath: left.ownFile)[.size] as? Int
        largest = max(largest, size ?? .max)
      }
      #expect(largest < 16_000, "3 values of 1 kB")
      let right = TestHost(path, "right")
      right.run()
      #expect(right.values == left.values && right.values.count == 3)
    }
  }

  @Test("one change of many keys is one frame, and comes as one change")
  func batch() throws {
    try withDirectory { path in
      let (left, right) = (TestHost(path, "left"), TestHost(path, "right"))
      left.run()
      right.run()
      // Nothing is sent while the first answer is awaited; then everything goes together.
      for number in 0..<50 { left.set(CloudKey("d", Key("K\(number)")), 1) }
      left.run()
      right.run()
      #expect(right.values.count == 50)
      let revisions = Set(right.machine.state.known.values.map(\.revision))
      #expect(revisions.count == 1)
    }
  }
}
