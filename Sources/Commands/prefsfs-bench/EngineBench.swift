import Glibc
import PreferenceModel
import PreferenceStore
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// Measures the store in this process: what changes, reads and rewrites cost in domains of 10 to
/// 1,000,000 keys, and how long a rewrite delays reads.
enum EngineBench {
  /// The numbers of keys of the domains, the largest first.
  private static let sizes = [1_000_000, 100_000, 10_000, 1000, 100, 10]

  /// - Parameter directory: an empty directory, for the lists and the journal.
  static func run(_ directory: String) throws {
    let store = try Store(layout(directory)) { print($0) }
    let report = Report("The store")
    for count in sizes { try fill(location(count), count, store) }
    try fill(many, 100_000, store)
    try changes(store, directory, report)
    try reads(store, report)
    try delays(store, report)
    try loading(store, directory, report)
    try memory(directory, report)
  }

  static func layout(_ directory: String) -> StoreLayout {
    StoreLayout(
      userDirectory: directory + "/lists", systemDirectory: directory + "/system",
      stateDirectory: directory + "/state", hostIdentifier: "HOST", userName: "bench")
  }

  /// A domain of which many keys are set.
  private static let many = Location(.user, "many")

  private static func location(_ count: Int) -> Location {
    Location(.user, DomainName("keys\(count)"))
  }

  private static func key(_ index: Int) -> Key { Key("NSWindow Frame Setting \(index)") }

  private static func fill(_ location: Location, _ count: Int, _ store: Store) throws {
    guard case .dictionary(let values) = CodecBench.sample(count) else { return }
    let items = values.map { Changeset.Item(location, .set($0.key, $0.value, .canonical)) }
    _ = try store.commit(items)
    try store.checkpoint(location)
  }

  /// Sets one of the first 10 keys, so that only the size of the domain differs.
  private static func set(_ index: Int, _ location: Location, _ store: Store) throws {
    let value = Value.integer(WideInteger(Instant.now.nanoseconds))
    _ = try store.commit([Changeset.Item(location, .set(key(index % 10), value, .canonical))])
  }

  private static func changes(
    _ store: Store, _ directory: String, _ report: Report
  ) throws {
    for isHeld in [false, true] {
      let subjects = sizes.map { count in
        Subject("\(count) keys") {
          var held: LocationSnapshot?
          defer { _ = held }
          return Bench.time(5000) { index in
            if isHeld { held = try? store.lists.snapshot(of: location(count)) }
            try? set(index, location(count), store)
          }
        }
      }
      let title = isHeld ? "set, a snapshot held" : "set"
      report.add(title, .nanoseconds, Bench.samples(subjects), goals: [.times(1.5, of: "10 keys")])
    }
    for count in sizes { try store.checkpoint(location(count)) }
    try manySets(store, directory, report)
  }

  /// Measures sets of 20,000 keys, beside a write(2) of a record's size to a file of the same
  /// directory.
  private static func manySets(
    _ store: Store, _ directory: String, _ report: Report
  ) throws {
    let peer = try Descriptor(
      opening: directory + "/peer", O_WRONLY | O_CREAT | O_APPEND)
    let record = [UInt8](repeating: 7, count: 130)
    let samples = Bench.samples([
      Subject("prefsfs") {
        1e9
          / Bench.time(20_000) { index in
            let value = Value.integer(WideInteger(Instant.now.nanoseconds))
            let edit = Edit.set(key(index), value, .canonical)
            _ = try? store.commit([Changeset.Item(many, edit)])
          }
      },
      Subject("write(2)") { 1e9 / Bench.time(20_000) { _ in try? peer.write(record) } },
    ])
    report.add("sets of 20,000 keys", .perSecond, samples, goals: [.atLeast(100e3)])
    try store.checkpoint(many)
  }

  private static func reads(_ store: Store, _ report: Report) throws {
    let place = location(1000)
    let table = Mutex(try table(store, place))
    for (title, key) in [("find, hit", key(7)), ("find, miss", Key("no such key"))] {
      let name = key.string
      report.add(
        title, .nanoseconds,
        Bench.samples([
          Subject("prefsfs") {
            Bench.time(100_000) { _ in _ = try? store.lists.find(key, at: place) }
          },
          Subject("dictionary") { Bench.time(100_000) { _ in _ = table.withLock { $0[name] } } },
        ]), goals: [.times(2, of: "dictionary")])
    }
  }

  private static func table(_ store: Store, _ place: Location) throws -> [String: Value] {
    let snapshot = try store.lists.snapshot(of: place)
    return snapshot.keys.reduce(into: [:]) { $0[$1.string] = snapshot[$1] }
  }

  private final class Flag: Sendable { let value = Atomic<Bool>(false) }

  /// Measures single reads, while a list of 100,000 keys is rewritten again and again, and while
  /// nothing is rewritten.
  private static func delays(_ store: Store, _ report: Report) throws {
    let (place, quiet) = (location(100_000), location(10))
    let isOver = Flag()
    var late: [String: [Double]] = [:]
    for _ in 0..<3 {
      late["quiet", default: []].append(slowest(quiet, store))
      isOver.value.store(false, ordering: .relaxed)
      let writer = try WorkerThread(name: "rewrites") {
        while !isOver.value.load(ordering: .relaxed) {
          try? set(1, place, store)
          try? store.checkpoint(place)
        }
      }
      late["rewriting", default: []].append(slowest(place, store))
      isOver.value.store(true, ordering: .relaxed)
      writer.join()
    }
    report.add(
      "slowest of 99.99 % of reads, rewriting", .nanoseconds,
      [
        Report.Samples(subject: "rewriting", values: late["rewriting"] ?? []),
        Report.Samples(subject: "quiet", values: late["quiet"] ?? []),
      ], goals: [.atMost(1e6)])
  }

  /// Returns the time, in nanoseconds, that 99.99 % of the reads of two seconds stay below.
  private static func slowest(_ place: Location, _ store: Store) -> Double {
    var times: [Double] = []
    let end = Instant.now.advanced(milliseconds: 2000)
    while Instant.now < end {
      times.append(Bench.time(1) { _ in _ = try? store.lists.find(key(3), at: place) })
    }
    times.sort()
    return times[Int(Double(times.count - 1) * 0.9999)]
  }

  /// Measures a rewrite, and the first read of a key, which reads the whole list.
  private static func loading(_ store: Store, _ directory: String, _ report: Report) throws {
    let rewrites = sizes.map { count in
      Subject("\(count) keys") {
        try? set(1, location(count), store)
        return Bench.time(1) { _ in try? store.checkpoint(location(count)) }
      }
    }
    report.add("rewrite", .nanoseconds, Bench.samples(rewrites, rounds: 5))
    let reads = sizes.map { count in
      Subject("\(count) keys") {
        guard let fresh = reader(directory) else { return .nan }
        return Bench.time(1) { _ in _ = try? fresh.lists.find(key(3), at: location(count)) }
      }
    }
    report.add(
      "first read", .nanoseconds, Bench.samples(reads, rounds: 5),
      goals: [.atMost(5e6, of: "100000 keys")])
  }

  /// A store that has read no list yet.
  private static func reader(_ directory: String) -> Store? {
    try? Store(layout(directory), readOnly: true) { _ in }
  }

  /// Measures the memory that a domain takes once a key of it was read, by
  /// the size of its list. Rewrites the lists in each of the formats.
  private static func memory(_ directory: String, _ report: Report) throws {
    for format in [Format.binary, .xml] {
      let samples = try sizes.filter { $0 >= 10_000 }.map { count in
        let path = layout(directory).path(location(count))
        let list = try Document.read(Files.contents(path, limit: 1 << 30) ?? []).value
        try Files.replace(path, with: Document.write(list, as: format))
        return Report.Samples(subject: "\(count) keys", values: [try memory(directory, count)])
      }
      report.add(
        "memory of a domain, of its \(format.rawValue) list", .times, samples,
        goals: [.atMost(1.5)])
    }
  }

  /// The memory of a domain, as a multiple of the size of its list.
  private static func memory(_ directory: String, _ count: Int) throws -> Double {
    let status = try Files.status(layout(directory).path(location(count)))
    let (kilobytes, _) = MemoryBench.measure { () -> Store? in
      let store = reader(directory)
      _ = try? store?.lists.find(key(3), at: location(count))
      return store
    }
    return kilobytes * 1024 / Double(status?.st_size ?? 1)
  }
}
