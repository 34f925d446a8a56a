import Foundation
import PreferenceModel
import PreferenceStore
import PropertyList
import StoreAccess
import Support
import Testing

@testable import PreferenceEngine

/// The machine's lists (`/etc/preferences`), which the owners of several users' stores change.
@Suite("Several users of one machine") struct SharedPlaceTests {
  private static let shared = Location(.anyUser, "shared")

  private func places(_ sandbox: Sandbox, _ user: String) throws -> LocalPlaces {
    let layout = StoreLayout(
      userDirectory: "\(sandbox.root)/\(user)/config", systemDirectory: sandbox.system,
      stateDirectory: "\(sandbox.root)/\(user)/state", hostIdentifier: "HOST", userName: user)
    return try LocalPlaces(store: try Store(layout) { _ in }) { _ in }
  }

  private func set(_ places: LocalPlaces, _ key: Key, _ value: Value) throws {
    _ = try places.store.commit([.init(Self.shared, .set(key, value, .canonical))])
    places.writer.wake()
  }

  /// Returns the seconds until the places have the value; nil if they do not within 5 s.
  private func delay(_ places: LocalPlaces, _ key: Key, _ value: Value) throws -> Double? {
    let start = Date()
    while Date().timeIntervalSince(start) < 5 {
      if try places.find(key, at: Self.shared)?.value == value {
        return Date().timeIntervalSince(start)
      }
      usleep(5000)
    }
    return nil
  }

  @Test("two owners that change a list in turn lose nothing and see it within a second")
  func inTurn() throws {
    try withSandbox { sandbox in
      let owners = [try places(sandbox, "root"), try places(sandbox, "ada")]
      defer { for owner in owners { owner.close() } }
      for index in 0..<10 {
        let (writer, reader) = (owners[index % 2], owners[(index + 1) % 2])
        _ = try reader.find("K0", at: Self.shared)
        try set(writer, Key("K\(index)"), .integer(WideInteger(Int64(index))))
        try set(writer, "Last", .integer(WideInteger(Int64(index))))
        let delay = try delay(reader, "Last", .integer(WideInteger(Int64(index))))
        #expect(try #require(delay) < 1, "round \(index)")
      }
      for owner in owners { #expect(try owner.keys(at: Self.shared).count == 11) }
      #expect(sandbox.evaluate(sandbox.system + "/shared.plist", "len(d)") == "11")
    }
  }

  @Test("two owners that change a list at once do not lose each other's keys")
  func atOnce() throws {
    try withSandbox { sandbox in
      let owners = [try places(sandbox, "root"), try places(sandbox, "ada")]
      for index in 0..<200 {
        for (number, owner) in owners.enumerated() {
          try set(owner, Key("\(number) \(index % 20)"), .integer(WideInteger(Int64(index))))
        }
        usleep(10_000)
      }
      for owner in owners { owner.close() }
      let sum = "sorted(d.values()) == sorted(list(range(180, 200)) * 2)"
      #expect(sandbox.evaluate(sandbox.system + "/shared.plist", sum) == "True")
    }
  }
}
