import Glibc
import PreferenceClient
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import SystemCalls

/// The test program `prefs-probe`, which uses preferences as a client of their store. Each line of
/// its output is an acknowledgement that a test may rely on.
enum Probe {
  private static let usage = """
    usage: probe get DOMAIN KEY
           probe set DOMAIN KEY TEXT [sync]
           probe remove DOMAIN KEY
           probe keys DOMAIN FIRST COUNT sync|fast    sets COUNT keys, and prints a line for each
           probe count DOMAIN KEY SECONDS             counts the key up, and prints each value
           probe read DOMAIN KEY COUNT                reads it COUNT times, between getppid(2) calls
           probe answer DOMAIN KEY                    prints it for each line of the input
           probe watch DOMAIN SECONDS                 prints a line for each change

    """

  static func run(_ words: [String]) -> Int32 {
    do {
      if words.first == "get" || words.first == "set" {
        let client = try StoreClient(clientOf: Surroundings(), isBrief: true, log: { _ in })
        return try Session(client).run(words) ? 0 : 2
      }
      let member = try StoreClient(clientOf: Surroundings()) { write("probe: \($0)\n", to: 2) }
      defer { member.close() }
      return try Session(member).run(words) ? 0 : 2
    } catch {
      write("probe: \(error)\n", to: 2)
      return 1
    }
  }

  /// Writes the text with one write(2), so that no buffer holds it when the process is killed.
  static func write(_ text: String, to descriptor: CInt = 1) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(descriptor, bytes, bytes.count)
  }

  private struct Session {
    let engine: SearchEngine
    let places: any PersistentPlaces & DurabilityService
    let author = Author.unique()

    init(_ places: any PersistentPlaces & DurabilityService) {
      self.places = places
      engine = SearchEngine(places: places)
    }

    /// Carries out a command.
    /// - Returns: Whether the words are a command.
    func run(_ words: [String]) throws -> Bool {
      guard words.count > 1 else {
        write(usage, to: 2)
        return false
      }
      let domain = DomainName(words[1])
      switch (words[0], words.count) {
      case ("get", 3): try get(domain, Key(words[2]))
      case ("set", 4...5):
        try set(domain, Key(words[2]), .string(words[3]))
        if words.last == "sync" { try places.synchronize() }
      case ("remove", 3): _ = try engine.apply([.remove(Key(words[2]), domain)], by: author)
      case ("keys", 5):
        try keys(domain, Int(words[2]) ?? 0, Int(words[3]) ?? 0, isSynchronous: words[4] == "sync")
      case ("count", 4): try count(domain, Key(words[2]), Double(words[3]) ?? 1)
      case ("read", 4): try read(domain, Key(words[2]), Int(words[3]) ?? 1)
      case ("answer", 3): while readLine() != nil { try get(domain, Key(words[2])) }
      case ("watch", 3): watch(domain, Int64(words[2]) ?? 1)
      default:
        write(usage, to: 2)
        return false
      }
      return true
    }

    private func text(_ domain: DomainName, _ key: Key) throws -> String {
      guard let found = try engine.resolve(key, in: domain) else { return "(none)\n" }
      return String(decoding: ValueText.canonical(found.value), as: UTF8.self)
    }

    private func get(_ domain: DomainName, _ key: Key) throws { write(try text(domain, key)) }

    private func set(_ domain: DomainName, _ key: Key, _ value: Value) throws {
      _ = try engine.apply([.set(key, domain, value, .canonical)], by: author)
    }

    private func keys(
      _ domain: DomainName, _ first: Int, _ count: Int, isSynchronous: Bool
    ) throws {
      for index in first..<first + count {
        try set(domain, Key("Key\(index)"), .integer(WideInteger(Int64(index))))
        if isSynchronous { try places.synchronize() }
        write("\(index)\n")
      }
    }

    private func count(_ domain: DomainName, _ key: Key, _ seconds: Double) throws {
      let end = Instant.now.advanced(milliseconds: Int64(seconds * 1000))
      var index: Int64 = 0
      while Instant.now < end {
        index += 1
        try set(domain, key, .integer(WideInteger(index)))
        write("\(index)\n")
      }
    }

    private func read(_ domain: DomainName, _ key: Key, _ count: Int) throws {
      _ = try engine.resolve(key, in: domain)
      _ = getppid()
      for _ in 0..<count { _ = try engine.resolve(key, in: domain) }
      _ = getppid()
      try get(domain, key)
    }

    private func watch(_ domain: DomainName, _ seconds: Int64) {
      engine.observe(except: author) { notice in
        for event in notice.events where event.domain == domain {
          write("\(event.kind) \(event.key)\n")
        }
      }
      // A client is told of the domains that it has asked for.
      _ = try? engine.keys(of: domain)
      write("watching\n")
      Instant.sleep(milliseconds: UInt32(clamping: seconds * 1000))
    }
  }
}
