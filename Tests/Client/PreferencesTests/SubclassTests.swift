import Foundation
import Testing

import class Preferences.UserDefaults
@testable import Preferences

/// A stand-in for UserDefaults, as programs write it for their tests.
private final class Recorder: UserDefaults, @unchecked Sendable {
  // Only the test's thread uses it.
  var objects: [String: Any] = [:]
  var names: [String] = []

  override func object(forKey defaultName: String) -> Any? { objects[defaultName] }

  override func set(_ value: Any?, forKey defaultName: String) {
    names.append(defaultName)
    objects[defaultName] = value
  }
}

@Suite("UserDefaults as a class") struct SubclassTests {
  @Test("typed getters and setters use the methods that a subclass overrides")
  func stub() {
    // In memory: the session of the process would start an owner of the user's store.
    let memory = UserDefaults.inMemory()
    let defaults = Recorder(domain: memory.domain, session: memory.session)
    defaults.set(5, forKey: "I")
    defaults.set(true, forKey: "B")
    defaults.set("text", forKey: "S")
    defaults.objects["D"] = ["k": 1.5]
    #expect(defaults.names == ["I", "B", "S"])
    #expect(defaults.integer(forKey: "I") == 5 && defaults.bool(forKey: "B"))
    #expect(defaults.string(forKey: "S") == "text" && defaults.string(forKey: "None") == nil)
    #expect(defaults.dictionary(forKey: "D") as? [String: Double] == ["k": 1.5])
  }

  @Test("equality is identity, and a description names the domain")
  func identity() {
    let (one, other) = (UserDefaults.inMemory(), UserDefaults.inMemory())
    #expect(one == one && one != other)
    #expect(Set([one, other, one]).count == 2)
    #expect(one.description.hasPrefix("<UserDefaults "))
  }

  @Test("a suite's name must be one that a list can have", arguments: ["/tmp/x", "", "a/b", ".."])
  func names(_ name: String) { #expect(UserDefaults(suiteName: name) == nil) }
}
