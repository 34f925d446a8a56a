import Glibc
import PreferenceClient
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import SystemCalls

/// Measures mounts of large stores: one domain of up to 1,000,000 keys, and 10,000 domains. What a
/// step costs for each key should not grow with their number.
enum ScaleBench {
  /// The numbers of keys of the domains, the largest first.
  private static let sizes = [1_000_000, 100_000, 10_000]
  private static let domain: DomainName = "large"

  /// - Parameters:
  ///   - prefsfs: the path of the program.
  ///   - directory: an empty directory.
  ///   - floor: the path of the program of scripts/floor.c, which need not exist.
  static func run(_ prefsfs: String, _ directory: String, floor: String) throws {
    let report = Report("Large stores")
    let all = try sizes.map { count in
      let lists = "\(directory)/\(count)"
      try Files.makeDirectories(lists, mode: 0o755)
      let bytes = try Document.write(CodecBench.sample(count), as: .binary)
      try Files.replace("\(lists)/\(domain.string).plist", with: bytes)
      return try measure(count, LargeMount(prefsfs, lists), list: bytes.count)
    }
    for (index, figure) in figures.enumerated() {
      let samples = zip(sizes, all).map { count, values in
        Report.Samples(subject: "\(count) keys", values: [values[index]])
      }
      report.add(figure.title, figure.unit, samples, goals: figure.goals)
    }
    try footprint(LargeMount(prefsfs, "\(directory)/\(footprintSize)"), report)
    try manyDomains(prefsfs, "\(directory)/domains", floor: floor, report)
  }

  // MARK: - One large domain

  /// A step, and what it should cost. "No worse than linear": for each key as much as with fewer.
  private static let figures: [(title: String, unit: Report.Unit, goals: [Goal])] = [
    ("mount and first read", .nanoseconds, [.atMost(50e6, of: "100000 keys")]),
    ("ls, for each key", .nanoseconds, [.times(1.5, of: "10000 keys")]),
    ("ls -l, for each key", .nanoseconds, [.times(1.5, of: "10000 keys")]),
    ("memory of a mount, for each node", .bytes, [.atMost(300)]),
    ("overwrite", .nanoseconds, [.times(1.5, of: "10000 keys")]),
    ("second mount and first read", .nanoseconds, []),
    ("memory of a client, of its list", .times, [.atMost(1.5)]),
    ("kill -9, for each node", .nanoseconds, [.times(1.5, of: "10000 keys")]),
  ]

  /// - Returns: a value for each of `figures`.
  private static func measure(_ count: Int, _ mount: LargeMount, list: Int) throws -> [Double] {
    defer { mount.unmount() }
    // A string: an integer would refuse the text of `overwrite`.
    let file = "\(mount.point)/\(domain.string)/NSWindow Frame Setting 8"
    let first = try Bench.time(1) { _ in
      try mount.mount()
      _ = try Files.contents(file, limit: 64)
    }
    let directory = Files.parent(of: file)
    let listing = Bench.time(1) { _ in FileBench.spawn(["ls", "-U", directory]) }
    let before = try mount.memory()
    let details = Bench.time(1) { _ in FileBench.spawn(["ls", "-lU", directory]) }
    let memory = try mount.memory() - before
    let overwrite = FileBench.overwrite(file, 1000)
    let (second, client) = try others(mount, file, list: list)
    let takeover = try Bench.time(1) { _ in try mount.killDriver() }
    let keys = Double(count)
    return [
      first, listing / keys, details / keys, memory / keys, overwrite, second, client,
      takeover / keys,
    ]
  }

  /// Measures a second mount of the store, and a client of it that reads all keys.
  private static func others(
    _ mount: LargeMount, _ file: String, list: Int
  ) throws -> (second: Double, client: Double) {
    let other = mount.another
    defer { other.unmount() }
    let second = try Bench.time(1) { _ in
      try other.mount()
      _ = try Files.contents(other.point + file.dropFirst(mount.point.count), limit: 64)
    }
    let (kilobytes, _) = MemoryBench.measure { () -> SearchEngine? in
      guard
        let member = try? StoreClient(
          clientOf: Surroundings(store: mount.lists), log: { print($0) })
      else { return nil }
      let engine = SearchEngine(places: member)
      for key in (try? engine.keys(of: domain)) ?? [] { _ = try? engine.resolve(key, in: domain) }
      return engine
    }
    return (second, kilobytes * 1024 / Double(list))
  }

  private static let footprintSize = 100_000

  /// Measures the memory of a mount and of the store's owner, once all keys have been listed and
  /// read.
  private static func footprint(_ mount: LargeMount, _ report: Report) throws {
    try mount.mount()
    defer { mount.unmount() }
    let directory = "\(mount.point)/\(domain.string)"
    for command in [["ls", "-lU"], ["grep", "-rc", "no such text"]] {
      FileBench.spawn(command + [directory])
    }
    report.add(
      "memory of mount and owner, \(footprintSize) keys read", .bytes,
      [Report.Samples(subject: "prefsfs", values: [try mount.memoryWithOwner()])],
      goals: [.atMost(70e6)])
  }

  // MARK: - Many domains

  private static let domains = 10_000

  private static func manyDomains(
    _ prefsfs: String, _ lists: String, floor: String, _ report: Report
  ) throws {
    try Files.makeDirectories(lists, mode: 0o755)
    let list = try Document.write(CodecBench.sample(10), as: .binary)
    for number in 0..<domains { try Files.replace("\(lists)/domain\(number).plist", with: list) }
    let mount = LargeMount(prefsfs, lists)
    defer { mount.unmount() }
    var all: [String: [Double]] = [:]
    for _ in 0..<3 {
      let listing = try Bench.time(1) { _ in
        try mount.mount()
        _ = try Files.names(in: mount.point, withDirectories: true)
      }
      all["mount and ls", default: []].append(listing)
      all["prefsfs", default: []].append(try keyOfEach(mount.point))
      mount.unmount()
      if let time = try floorOfEach(floor, "\(lists).floor") {
        all["floor", default: []].append(time)
      }
    }
    let samples = { Report.Samples(subject: $0, values: all[$0] ?? []) }
    report.add("mount and ls, 10,000 domains", .nanoseconds, [samples("mount and ls")])
    report.add(
      "a key of each of them", .nanoseconds,
      [samples("prefsfs")] + (all["floor"] == nil ? [] : [samples("floor")]),
      goals: [.times(1.5, of: "floor")])
  }

  /// The time of the first reads of a key of each domain.
  private static func keyOfEach(_ point: String) throws -> Double {
    try Bench.time(1) { _ in
      for number in 0..<domains {
        _ = try Files.contents("\(point)/domain\(number)/NSWindow Frame Setting 1", limit: 64)
      }
    }
  }

  /// The same for the floor; nil if it was not compiled.
  private static func floorOfEach(_ program: String, _ point: String) throws -> Double? {
    guard try Files.status(program) != nil else { return nil }
    try Files.makeDirectories(point, mode: 0o755)
    guard try Child.run(program, [point]) == 0 else { return nil }
    defer { _ = try? Child.run("fusermount3", ["-u", point]) }
    return try keyOfEach(point)
  }
}
