import Foundation
import PreferenceClient
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import PreferenceSearch
import PreferenceServer
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// Measures a store as programs use it: in its owner, and as a client of an owner in another
/// process (`prefsd`), beside the preference systems that programs use today.
enum ClientBench {
  private static let author = Author.unique()

  /// - Parameter directory: an empty directory; everything happens below it.
  static func run(_ directory: String) throws {
    let report = Report("Programs")
    let names = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"]
    for name in names {
      try Files.makeDirectories("\(directory)/\(name)", mode: 0o700)
      setenv(name, "\(directory)/\(name)", 1)
    }
    setenv("PREFSFS_SYSTEM_DIR", directory + "/system", 1)
    LibraryBench.run(report)
    try SocketFloor.measure(report)
    try reads(directory, report)
    try changes(report)
    try together(report)
    try takeover(directory, report)
  }

  private static func key(_ index: Int) -> Key { Key("NSWindow Frame Setting \(index)") }

  private static func domain(_ count: Int) -> DomainName { DomainName("com.example.keys\(count)") }

  /// Opens a store below the directory, with this process as its owner.
  private static func owned(_ directory: String) throws -> OwnedStore {
    try OwnedStore(Surroundings(store: directory)) { print($0) }
  }

  private static func fill(_ engine: SearchEngine, _ count: Int) throws {
    guard case .dictionary(let values) = CodecBench.sample(count) else { return }
    let all = values.map { Intent.set($0.key, domain(count), $0.value, .canonical) }
    for start in stride(from: 0, to: all.count, by: 1000) {
      _ = try engine.apply(Array(all[start..<min(start + 1000, all.count)]), by: author)
    }
  }

  // MARK: - Reads

  private static func reads(_ directory: String, _ report: Report) throws {
    let own = try owned(directory + "/owned")
    defer { own.close() }
    let owner = SearchEngine(places: own.places)
    let member = try StoreClient(clientOf: Surroundings()) { print($0) }
    defer { member.close() }
    let client = SearchEngine(places: member)
    for engine in [owner, client] { try fill(engine, 1000) }
    let subjects = [
      ("owner", owner.reader(of: domain(1000))), ("client", client.reader(of: domain(1000))),
    ]
    let table = Mutex(try self.table(client))
    let foundation = try defaults(client)
    let gnustep = GNUstep()
    gnustep?.set(Array(try self.table(client).keys))
    for (title, key, goal) in [
      ("read, hit", key(7), Goal.times(1, of: "dictionary")),
      ("read, miss", Key("no such key"), Goal.times(0.6, of: "dictionary")),
    ] {
      let name = key.string
      var all = subjects.map { subject, reader in
        Subject(subject) { Bench.time(200_000) { _ in _ = try? reader.value(key) } }
      }
      all.append(
        Subject("dictionary") { Bench.time(200_000) { _ in _ = table.withLock { $0[name] } } })
      all.append(
        Subject("Foundation") { Bench.time(20_000) { _ in _ = foundation.object(forKey: name) } })
      if let gnustep {
        let count = 20_000
        all.append(
          Subject("GNUstep") { Bench.time(1) { _ in gnustep.read(name, count) } / Double(count) })
      }
      if let dconf = DConf(directory, Array(try self.table(client).keys)) {
        all.append(Subject("dconf") { Bench.time(50_000) { _ in dconf.read(name) } })
      }
      report.add(title, .nanoseconds, Bench.samples(all), goals: [goal])
    }
  }

  private static func table(_ engine: SearchEngine) throws -> [String: Value] {
    var table: [String: Value] = [:]
    for key in try engine.keys(of: domain(1000)) {
      table[key.string] = try engine.resolve(key, in: domain(1000))?.value
    }
    return table
  }

  private static func defaults(_ engine: SearchEngine) throws -> UserDefaults {
    let defaults = UserDefaults(suiteName: "foundation") ?? .standard
    for key in try engine.keys(of: domain(1000)) { defaults.set(key.string, forKey: key.string) }
    return defaults
  }

  // MARK: - Changes

  /// Measures changes. One client more is connected than those that make them: it is notified of
  /// each.
  private static func changes(_ report: Report) throws {
    let member = try StoreClient(clientOf: Surroundings()) { print($0) }
    defer { member.close() }
    let client = SearchEngine(places: member)
    for count in [10, 1000, 100_000] { try fill(client, count) }
    // The owner rewrites the lists first, so that the measurements do not run beside that.
    Instant.sleep(milliseconds: 4000)
    // The first row of sets is not measured: both processes run this code for the first time, and
    // each set takes half as long again.
    _ = try set(1000, 1, false)
    for isSynchronous in [false, true] {
      for writers in [1, 4, 16] {
        var samples = try [100_000, 1000, 10].map { count in
          Report.Samples(
            subject: "\(count) keys",
            values: try (0..<3).map { _ in try set(count, writers, isSynchronous) })
        }
        let title = "set\(isSynchronous ? ", synchronize" : ""), \(writers) writers"
        let isGoal = writers == 1 && !isSynchronous
        if isGoal { samples.append(SocketFloor.sleeping("message")) }
        report.add(
          title, .nanoseconds, samples,
          goals: isGoal ? [.atMost(25e3)] : [])
      }
    }
    try fill(client, 10_000)
    let reader = client.reader(of: domain(10_000))
    let foundation = UserDefaults(suiteName: "large") ?? .standard
    for index in 0..<10_000 { foundation.set("value \(index)", forKey: "Key \(index)") }
    report.add(
      "set, then read, 10,000 keys", .nanoseconds,
      Bench.samples(
        [
          Subject("client") {
            Bench.time(1000) { index in
              try? set(client, domain(10_000), index)
              _ = try? reader.value(key(index % 10))
            }
          },
          Subject("Foundation") {
            Bench.time(20) { index in
              foundation.set("text \(index)", forKey: "Key 1")
              _ = foundation.string(forKey: "Key 2")
            }
          },
        ], rounds: 5))
  }

  private static func set(_ engine: SearchEngine, _ domain: DomainName, _ index: Int) throws {
    let value = Value.integer(WideInteger(Instant.now.nanoseconds))
    _ = try engine.apply([.set(key(index % 10), domain, value, .canonical)], by: author)
  }

  /// Returns the mean time of one set, in nanoseconds, while `writers` connections set at once.
  private static func set(
    _ count: Int, _ writers: Int, _ isSynchronous: Bool
  ) throws -> Double {
    let repetitions = isSynchronous ? 100 : 2000
    let members = try (0..<writers).map { _ in
      try StoreClient(clientOf: Surroundings()) { print($0) }
    }
    defer { for member in members { member.close() } }
    let start = Instant.now
    let threads = try members.map { member in
      try WorkerThread(name: "writer") {
        let engine = SearchEngine(places: member)
        for index in 0..<repetitions {
          try? set(engine, domain(count), index)
          if isSynchronous { try? member.synchronize() }
        }
      }
    }
    for thread in threads { thread.join() }
    return Double(Instant.now.nanoseconds - start.nanoseconds) / Double(repetitions * writers)
  }

  /// Measures two clients in turns: one sets a key, the other reads the new value.
  private static func together(_ report: Report) throws {
    let members = try (0..<2).map { _ in try StoreClient(clientOf: Surroundings()) { print($0) } }
    defer { for member in members { member.close() } }
    let engines = members.map { SearchEngine(places: $0) }
    let readers = engines.map { $0.reader(of: domain(1000)) }
    let samples = Bench.samples([
      Subject("client") {
        Bench.time(2000) { index in
          try? set(engines[index % 2], domain(1000), 1)
          _ = try? readers[(index + 1) % 2].value(key(1))
        }
      }
    ])
    report.add("set by one, read by the other", .nanoseconds, samples)
  }

  /// Measures the time from kill -9 of the owner until a client's next set has returned.
  private static func takeover(_ directory: String, _ report: Report) throws {
    // Another store, whose journal is small.
    setenv("XDG_CONFIG_HOME", directory + "/small", 1)
    let member = try StoreClient(clientOf: Surroundings()) { print($0) }
    defer { member.close() }
    let client = SearchEngine(places: member)
    let samples = Bench.samples(
      [
        Subject("client") {
          try? set(client, domain(10), 1)
          guard let owner = try? Bench.owner() else { return .nan }
          kill(owner, SIGKILL)
          return Bench.time(1) { _ in try? set(client, domain(10), 1) }
        }
      ], rounds: 5)
    report.add("kill -9 of prefsd until a set returns", .nanoseconds, samples)
  }
}
