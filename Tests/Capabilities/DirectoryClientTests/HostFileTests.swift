import PreferenceCloud
import PreferenceModel
import PropertyList
import Testing

@testable import DirectoryClient

extension HostFile.Record {
  /// The record of a set, or of a removal, at that time.
  static func sample(
    _ key: String, _ value: Value?, _ time: Int64, _ host: String = "h"
  ) -> HostFile.Record {
    let stamp = Stamp(milliseconds: time, counter: 0, host: host)
    return HostFile.Record(
      name: Array("dir:d/\(key)".utf8), stamp: stamp, isRemoval: value == nil,
      bytes: CloudRecord(value: value, stamp: stamp, replaced: nil, ancestors: []).bytes)
  }
}

@Suite("The bytes of a host's file") struct HostFileTests {
  private static let sealer = TestSealer()
  private static let frames = [
    HostFile.Frame(records: [.sample("A", 1, 5), .sample("B", nil, 6)]),
    HostFile.Frame(session: [1, 2, 3]), HostFile.Frame(records: [.sample("A", 2, 7)]),
  ]

  private static func file(_ frames: [HostFile.Frame] = frames) throws -> [UInt8] {
    try #require(HostFile.bytes(of: frames, "h", sealer)).bytes
  }

  private static func read(
    _ bytes: [UInt8], from position: inout HostFile.Position, _ host: String = "h"
  ) -> (frames: [HostFile.Frame], refused: Int) {
    let (frames, refused) = HostFile.read(bytes, from: &position, host, sealer)
    return (frames.map { HostFile.Frame(records: $0.records, session: $0.session) }, refused)
  }

  @Test("what is written is read, as a whole and frame by frame; marks are different")
  func roundTrip() throws {
    let bytes = try Self.file()
    var position = HostFile.Position()
    #expect(Self.read(bytes, from: &position) == (Self.frames, 0))
    #expect(position == HostFile.Position(offset: bytes.count, number: 3))
    #expect(Self.read([], from: &position) == ([], 0))
    let more = HostFile.Frame(records: [.sample("C", 3, 9)])
    let added = try #require(HostFile.bytes(of: more, "h", 3, Self.sealer))
    #expect(Self.read(added.bytes, from: &position) == ([more], 0))
    #expect(position.number == 4)
    let marks = try #require(HostFile.bytes(of: Self.frames + Self.frames, "h", Self.sealer)).marks
    #expect(Set(marks).count == 6)
  }

  @Test("a file that ends anywhere gives its whole frames; the rest is read when it has come")
  func torn() throws {
    let bytes = try Self.file()
    for count in 0...bytes.count {
      var position = HostFile.Position()
      let first = Self.read(Array(bytes.prefix(count)), from: &position)
      #expect(first.refused == 0 && Self.frames.starts(with: first.frames), "\(count)")
      let rest = Self.read(Array(bytes.dropFirst(position.offset)), from: &position)
      #expect(first.frames + rest.frames == Self.frames && rest.refused == 0, "\(count)")
    }
    // Zeros where bytes have not come yet.
    var position = HostFile.Position()
    let cut = bytes.count - 30
    let zeros = Array(bytes.prefix(cut)) + [UInt8](repeating: 0, count: 30)
    #expect(Self.read(zeros, from: &position) == (Array(Self.frames.prefix(2)), 1))
    let rest = Self.read(Array(bytes.dropFirst(position.offset)), from: &position)
    #expect(rest == ([Self.frames[2]], 0))
  }

  @Test("a frame of another key, file or place is skipped")
  func foreign() throws {
    let own = try Self.file([Self.frames[0]])
    let other = try #require(HostFile.bytes(of: Self.frames[1], "h", 1, TestSealer(key: 9)))
    let last = try #require(HostFile.bytes(of: Self.frames[2], "h", 2, Self.sealer))
    var position = HostFile.Position()
    #expect(
      Self.read(own + other.bytes + last.bytes, from: &position)
        == ([Self.frames[0], Self.frames[2]], 1))
    position = HostFile.Position()
    #expect(Self.read(own + last.bytes, from: &position) == ([Self.frames[0]], 1))
    position = HostFile.Position()
    #expect(Self.read(try Self.file(), from: &position, "other") == ([], 3))
    #expect(position.offset == HostFile.magic.count)
  }

  @Test("no bytes trap", arguments: 0..<200)
  func garbage(_ seed: Int) throws {
    var bytes = try Self.file()
    for _ in 0...(seed % 4) { bytes[.random(in: 0..<bytes.count)] = .random(in: 0...255) }
    var position = HostFile.Position()
    for frame in Self.read(bytes, from: &position).frames { #expect(Self.frames.contains(frame)) }
    position = HostFile.Position()
    let noise = HostFile.magic + (0..<seed).map { _ in UInt8.random(in: 0...255) }
    #expect(Self.read(noise, from: &position).frames.isEmpty)
    for length: [UInt8] in [[255, 255, 255, 255], [0, 0, 0, 0], [1, 0, 64, 0]] {
      position = HostFile.Position()
      #expect(Self.read(HostFile.magic + length + [1], from: &position).frames.isEmpty)
    }
  }

  @Test("a frame that is too large is not written; many records are divided")
  func limits() {
    let large = HostFile.Record(
      name: [1], stamp: Stamp(milliseconds: 1, counter: 0, host: "h"), isRemoval: false,
      bytes: [UInt8](repeating: 0, count: 1_000_000))
    let tooLarge = HostFile.Frame(records: [large, large, large, large, large])
    #expect(HostFile.bytes(of: tooLarge, "h", 0, Self.sealer) == nil)
    let frames = HostFile.frames(of: [large, large, large] + [.sample("A", 1, 1)])
    #expect(frames.map(\.records.count) == [1, 1, 2])
    #expect(HostFile.frames(of: []).isEmpty)
  }

  @Test(
    "names of files",
    arguments: [
      ("vm-1.prefscloud", "vm-1", false), ("a_B.prefscloud", "a_B", false),
      ("vm-1.sync-conflict-20261129-051300-ABCDEFG.prefscloud", "vm-1", true),
    ])
  func names(_ name: String, _ host: String, _ isCopy: Bool) {
    let read = HostFileName(name)
    #expect(read?.host == host && read?.isCopy == isCopy && read?.name == name)
  }

  @Test(
    "names of other programs",
    arguments: [
      "", ".prefscloud", ".vm.prefscloud", "vm.prefscloud.new", "vm", "v m.prefscloud",
      "vm.x.prefscloud", ".vm-1.prefscloud.new", ".syncthing.vm.prefscloud.tmp",
      "vm.sync-conflict.prefscloud",
    ])
  func others(_ name: String) { #expect(HostFileName(name) == nil) }
}
