import Foundation
import PreferenceCloud
import PreferenceModel
import PropertyList
import Testing

@testable import DirectoryClient

/// Machines with a copy of the directory each, and a synchroniser that copies files in any order, at
/// any time, torn, twice and late, while machines end at any moment.
@Suite("A synchroniser at its worst") struct DirectoryStormTests {
  private static let keys = (0..<3).map { CloudKey("d", Key("K\($0)")) }

  /// The value that a set replaced, as its user saw it.
  private var replaced: [Int64: Int64?] = [:]
  private var count: Int64 = 0

  /// Copies the file of a machine to another one.
  private static func copy(_ from: TestHost, _ to: TestHost, isTorn: Bool) throws {
    let file = URL(fileURLWithPath: from.ownFile)
    let bytes = try Data(contentsOf: file)
    let target = URL(fileURLWithPath: "\(to.path)/\(file.lastPathComponent)")
    try (isTorn ? bytes.dropLast(Int.random(in: 0...60)) : bytes).write(to: target)
  }

  private static func number(_ value: Value) -> Int64? {
    if case .integer(let number) = value { number.signed } else { nil }
  }

  private mutating func set(_ host: TestHost) {
    guard let key = Self.keys.randomElement() else { return }
    count += 1
    replaced[count] = .some(host.values[key].flatMap { Self.number($0) })
    host.set(key, .integer(WideInteger(count)))
  }

  @Test(
    "all agree in the end, and each set was replaced knowingly, or is in a log", arguments: 1...6)
  func storm(_ seed: Int) throws {
    var storm = self
    try withDirectory { path in
      let hosts = try (0..<(2 + seed % 3)).map { number in
        let directory = "\(path)/\(number)"
        try FileManager.default.createDirectory(
          atPath: directory, withIntermediateDirectories: true)
        return TestHost(directory, "host\(number)")
      }
      for host in hosts { host.skew = .random(in: -50_000...50_000) }
      for _ in 0..<120 {
        guard let host = hosts.randomElement(), let other = hosts.randomElement() else { return }
        switch Int.random(in: 0..<10) {
        case ..<3: storm.set(host)
        case ..<6: host.run()
        case ..<7: host.begin()
        default: if host !== other { try Self.copy(host, other, isTorn: Bool.random()) }
        }
      }
      for _ in 0..<4 {
        for host in hosts { host.run() }
        for host in hosts {
          for other in hosts where other !== host { try Self.copy(host, other, isTorn: false) }
        }
      }
      for host in hosts { host.run() }
      storm.check(hosts)
    }
  }

  private func check(_ hosts: [TestHost]) {
    for host in hosts {
      #expect(host.values == hosts[0].values && host.error == nil)
      #expect(host.machine.state.pending.isEmpty)
    }
    let last = Array(hosts[0].values.values) + hosts.flatMap(\.replacedValues)
    var found = Set(last.compactMap { Self.number($0) })
    var rest = Array(found)
    while let value = rest.popLast() {
      guard let before = replaced[value] ?? nil, found.insert(before).inserted else { continue }
      rest.append(before)
    }
    for value in replaced.keys { #expect(found.contains(value), "\(value) is gone") }
  }
}
