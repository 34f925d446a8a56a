import Foundation
import PreferenceModel
import PropertyList
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

/// The files of a disk, as it may have them after a loss of power: names that point to files, and
/// the bytes of the files.
private struct Disk: Equatable {
  var names: [String: UInt64] = [:]
  var files: [UInt64: Data] = [:]

  init() {}

  /// Reads the regular files below the directories; their numbers are their inodes.
  init(reading roots: [String]) {
    for root in roots {
      let walk = FileManager.default.enumerator(atPath: root)
      while let name = walk?.nextObject() as? String {
        var status = stat()
        let path = "\(root)/\(name)"
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
        names[path] = UInt64(status.st_ino)
        files[UInt64(status.st_ino)] = FileManager.default.contents(atPath: path) ?? Data()
      }
    }
  }

  /// Writes the files below another root.
  func write(from root: String, to other: String) throws {
    for (path, file) in names {
      let target = other + path.dropFirst(root.count)
      try Files.makeDirectories(Files.parent(of: target), mode: 0o700)
      #expect(FileManager.default.createFile(atPath: target, contents: files[file] ?? Data()))
    }
  }
}

/// One change of a disk. Files have numbers of their own, because inodes are used again.
private enum Operation {
  case create(String, UInt64)
  case link(String, UInt64)
  case unlink(String)
  /// Writes bytes at an offset, and gives the file that size.
  case write(UInt64, at: Int, Data, size: Int)

  func apply(to disk: inout Disk) {
    switch self {
    case .create(let path, let file): (disk.names[path], disk.files[file]) = (file, Data())
    case .link(let path, let file): disk.names[path] = file
    case .unlink(let path): disk.names[path] = nil
    case .write(let file, let offset, let bytes, let size):
      var content = disk.files[file, default: Data()]
      let room = max(size, offset + bytes.count)
      if content.count < room { content += Data(count: room - content.count) }
      content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
      disk.files[file] = Data(content.prefix(size))
    }
  }

  /// Whether fsync(2) of the path, a file or a directory, makes the operation durable.
  func isCovered(by path: String, _ file: UInt64?) -> Bool {
    switch self {
    case .create(let name, _), .link(let name, _), .unlink(let name):
      Files.parent(of: name) == path
    case .write(let written, _, _, _): written == file
    }
  }
}

/// The operations of a store on a disk, in order, from the first one that is not yet durable.
private struct History {
  /// The disk with the operations before that, which are certain to be durable.
  private(set) var base = Disk()
  private(set) var operations: [(operation: Operation, isDurable: Bool)] = []
  /// The numbers of files, by inode.
  private var numbers: [UInt64: UInt64] = [:]
  private var lastNumber: UInt64 = 0
  private var last = Disk()

  /// Adds the operations that turned the last disk into this one, and notes what the call made
  /// durable.
  mutating func add(_ disk: Disk, _ call: Interposition.Call?) {
    let known = Set(last.names.values)
    for (path, inode) in disk.names where last.names[path] != inode {
      if !known.contains(inode) {
        lastNumber += 1
        numbers[inode] = lastNumber
        operations.append((.create(path, lastNumber), false))
      } else if let number = numbers[inode] {
        operations.append((.link(path, number), false))
      }
    }
    for path in last.names.keys where disk.names[path] == nil {
      operations.append((.unlink(path), false))
    }
    for (inode, bytes) in disk.files {
      let before = known.contains(inode) ? last.files[inode] ?? Data() : Data()
      guard before != bytes, let number = numbers[inode] else { continue }
      let isLonger = bytes.prefix(before.count) == before
      let start = isLonger ? before.count : 0
      operations.append(
        (.write(number, at: start, Data(bytes.dropFirst(start)), size: bytes.count), false))
    }
    if let call, ["fsync", "fdatasync"].contains(call.name) { noteDurable(call.path) }
    last = disk
  }

  private mutating func noteDurable(_ path: String) {
    let file = last.names[path].flatMap { numbers[$0] }
    for place in operations.indices where operations[place].operation.isCovered(by: path, file) {
      operations[place].isDurable = true
    }
    while operations.first?.isDurable == true {
      operations.removeFirst().operation.apply(to: &base)
    }
  }

  /// The disk with nothing but what is certain to be durable.
  var durable: Disk {
    var disk = base
    for (operation, isDurable) in operations where isDurable { operation.apply(to: &disk) }
    return disk
  }

  /// Returns the disk with all operations but the one at `left`; nil means with all of them.
  func disk(without left: Int?) -> Disk {
    var disk = base
    for place in operations.indices where place != left {
      operations[place].operation.apply(to: &disk)
    }
    return disk
  }
}

/// Records the disk before each call of a store that changes files.
private final class Recording: Sendable {
  struct Entry {
    /// The disk before the call.
    var disk: Disk
    var call: Interposition.Call
    /// The step that was under way.
    var step: Int
    /// The last step that synchronised all before it.
    var durable: Int
  }

  private let roots: [String]
  private let state = Mutex((entries: [Entry](), step: -1, durable: -1))

  init(_ sandbox: Sandbox) { roots = [sandbox.config, sandbox.state] }

  func verdict(_ call: Interposition.Call) -> Interposition.Verdict {
    let changing: Set = [
      "open", "write", "ftruncate", "rename", "unlink", "fsync", "fdatasync", "mkdir", "fchmod",
    ]
    guard changing.contains(call.name) else { return .proceed }
    let disk = Disk(reading: roots)
    state.withLock { state in
      state.entries.append(
        Entry(disk: disk, call: call, step: state.step, durable: state.durable))
    }
    return .proceed
  }

  func begin(_ step: Int) { state.withLock { $0.step = step } }
  func noteDurable(_ step: Int) { state.withLock { $0.durable = step } }
  var entries: [Entry] { state.withLock { $0.entries } }
}

@Suite("Store: loss of power") struct PowerLossTests {
  private static let location = Location(.user, "first")
  private static let other = Location(.host, "second")

  /// A step: values that are set, or removed where they are nil; a rewrite of a list; or a
  /// synchronisation of all before it.
  private enum Step {
    case set([(Location, Key, Value?)])
    case checkpoint(Location)
    case synchronize
  }

  private static let steps: [Step] = [
    .set([(location, "A", 1)]), .synchronize, .set([(location, "A", 2)]),
    .set([(location, "B", "two"), (other, "C", [1, 2])]), .synchronize, .checkpoint(location),
    .set([(location, "A", 3)]), .checkpoint(other), .set([(other, "C", 4)]), .synchronize,
    .set([(location, "Long", .string(String(repeating: "long", count: 2000)))]), .synchronize,
    .set([(location, "Long", .string(String(repeating: "long", count: 2100)))]),
    .checkpoint(location), .set([(location, "B", nil)]), .checkpoint(location), .synchronize,
    .set([(other, "Moved", 3), (location, "A", nil)]), .checkpoint(other), .checkpoint(location),
    .set([(location, "Large", .data(Array(repeating: 7, count: 1 << 20)))]),
    .set([(location, "E", 5)]), .synchronize, .checkpoint(location), .set([(location, "E", 6)]),
    .checkpoint(location), .synchronize,
  ]

  private func live(_ sandbox: Sandbox, _ recording: Recording) throws {
    let store = try Store(TestStore.layout(sandbox)) { _ in }
    for (index, step) in Self.steps.enumerated() {
      recording.begin(index)
      switch step {
      case .set(let values):
        _ = try store.commit(
          values.map { location, key, value in
            .init(location, value.map { .set(key, $0, .canonical) } ?? .remove(key))
          })
      case .checkpoint(let location): try store.checkpoint(location)
      case .synchronize:
        try store.journal.synchronize()
        recording.noteDurable(index)
      }
    }
  }

  /// Returns the values that a key may have: the one it had at the last synchronisation, or a later
  /// one.
  private func possible(_ location: Location, _ key: Key, _ entry: Recording.Entry) -> [Value?] {
    var values: [Value?] = [nil]
    for (index, step) in Self.steps.enumerated() where index <= entry.step {
      guard case .set(let changes) = step else { continue }
      for (place, name, value) in changes where place == location && name == key {
        if index <= entry.durable { values = [value] } else { values.append(value) }
      }
    }
    return values
  }

  private func check(_ disk: Disk, _ entry: Recording.Entry, _ root: String, _ title: String) throws
  {
    try withSandbox { sandbox in
      try disk.write(from: root, to: sandbox.root)
      let store = try Store(TestStore.layout(sandbox)) { _ in }
      for place in [Self.location, Self.other] {
        for key in ["A", "B", "C", "Long", "Moved", "Large", "E"] as [Key] {
          let found = try store.lists.find(key, at: place)?.value
          if !possible(place, key, entry).contains(found) {
            Issue.record("\(title): \(place) \(key) is not what was synchronised")
          }
        }
      }
      let isMoved = try store.lists.find("Moved", at: Self.other) != nil
      if isMoved, try store.lists.find("A", at: Self.location) != nil {
        Issue.record("\(title): half of a transaction")
      }
    }
  }

  @Test(
    "no record of a rewritten list comes back over another program's edit",
    arguments: [false, true])
  func outsideEdit(_ hasUnsaved: Bool) throws {
    try withSandbox { sandbox in
      let recording = Recording(sandbox)
      try Interposition.with(recording.verdict) {
        let store = try Store(TestStore.layout(sandbox)) { _ in }
        _ = try store.commit([.init(Self.location, .set("A", 1, .canonical))])
        // With a list that lacks a change, the journal is not emptied.
        if hasUnsaved { _ = try store.commit([.init(Self.other, .set("C", 2, .canonical))]) }
        try store.checkpoint(Self.location)
        store.journal.makeReleaseDurable()
      }
      var history = History()
      var previous = Interposition.Call?.none
      for entry in recording.entries {
        history.add(entry.disk, previous)
        previous = entry.call
      }
      history.add(Disk(reading: [sandbox.config, sandbox.state]), previous)
      let path = TestStore.layout(sandbox).path(Self.location)
      for var disk in [history.durable, history.disk(without: nil)] {
        let file = try #require(disk.names[path])
        disk.files[file] = Data(Document.binary(["A": 9]))
        try withSandbox { other in
          try disk.write(from: sandbox.root, to: other.root)
          let store = try Store(TestStore.layout(other)) { _ in }
          #expect(try store.lists.find("A", at: Self.location)?.value == 9)
        }
      }
    }
  }

  @Test("any prefix of a disk's operations has what was synchronised, even if one is lost")
  func prefixes() throws {
    try withSandbox { sandbox in
      let recording = Recording(sandbox)
      do { try Interposition.with(recording.verdict) { try live(sandbox, recording) } }
      let entries = recording.entries
      #expect(entries.count > 80)
      var history = History()
      var (tried, previous) = (0, Interposition.Call?.none)
      for (index, entry) in entries.enumerated() {
        history.add(entry.disk, previous)
        previous = entry.call
        let title = "before call \(index), \(entry.call.name) \(entry.call.path)"
        try check(history.disk(without: nil), entry, sandbox.root, title)
        for left in history.operations.indices where !history.operations[left].isDurable {
          tried += 1
          let operation = "\(history.operations[left].operation)".prefix(80)
          let disk = history.disk(without: left)
          try check(disk, entry, sandbox.root, "\(title), without \(operation)")
        }
      }
      #expect(tried > 100, "\(tried)")
    }
  }
}
