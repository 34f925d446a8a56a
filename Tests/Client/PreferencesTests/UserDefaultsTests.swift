import Foundation
import Synchronization
import Testing

import class Preferences.UserDefaults
@testable import Preferences

/// UserDefaults as its documentation describes it, in memory.
@Suite("UserDefaults") struct UserDefaultsTests {
  private let defaults = UserDefaults.inMemory()

  @Test("a value comes from the first place of the search list that has it")
  func searchList() {
    let name = ProcessInfo.processInfo.processName
    func value() -> String? { defaults.string(forKey: "K") }
    defaults.register(defaults: ["K": "registered"])
    #expect(value() == "registered")
    defaults.setPersistentDomain(["K": "global"], forName: UserDefaults.globalDomain)
    #expect(value() == "global")
    defaults.setPersistentDomain(["K": "suite"], forName: "suite")
    #expect(value() == "global")
    defaults.addSuite(named: "suite")
    #expect(value() == "suite")
    defaults.setPersistentDomain(["K": "second"], forName: "second")
    defaults.addSuite(named: "second")
    #expect(value() == "second", "the last that was added comes first")
    defaults.set("own", forKey: "K")
    #expect(value() == "own")
    defaults.setVolatileDomain(["K": "argument"], forName: UserDefaults.argumentDomain)
    #expect(value() == "argument")
    defaults.set("stored", forKey: "K")
    #expect(value() == "argument")
    defaults.removeVolatileDomain(forName: UserDefaults.argumentDomain)
    #expect(value() == "stored", "what an argument hides is stored for the next launch")
    defaults.removePersistentDomain(forName: name)
    #expect(value() == "second")
    defaults.removeSuite(named: "second")
    defaults.removeSuite(named: "suite")
    #expect(value() == "global")
    defaults.removePersistentDomain(forName: UserDefaults.globalDomain)
    #expect(value() == "registered")
    defaults.setVolatileDomain([:], forName: UserDefaults.registrationDomain)
    #expect(value() == nil)
  }

  @Test("a missing key is read once a suite, the global domain or registration has it")
  func missesArePromptlyForgotten() {
    defaults.addSuite(named: "suite")
    for (index, domain) in ["suite", UserDefaults.globalDomain].enumerated() {
      #expect(defaults.object(forKey: "K\(index)") == nil)
      defaults.setPersistentDomain(["K\(index)": 1], forName: domain)
      #expect(defaults.integer(forKey: "K\(index)") == 1)
    }
    #expect(defaults.object(forKey: "R") == nil)
    defaults.register(defaults: ["R": 1])
    #expect(defaults.integer(forKey: "R") == 1)
  }

  @Test("registration merges, the last value counts, and all instances share it")
  func registration() {
    defaults.register(defaults: ["A": 1, "B": 1])
    defaults.register(defaults: ["B": 2])
    #expect(defaults.integer(forKey: "A") == 1)
    #expect(defaults.integer(forKey: "B") == 2)
    let other = UserDefaults(domain: "other", session: defaults.session)
    #expect(other.integer(forKey: "B") == 2)
    defaults.register(defaults: ["C": 1, "Bad": NSNull()])
    #expect(defaults.integer(forKey: "C") == 1 && defaults.object(forKey: "Bad") == nil)
    #expect(
      defaults.volatileDomain(forName: UserDefaults.registrationDomain) as? [String: Int]
        == ["A": 1, "B": 2, "C": 1])
  }

  @Test("volatile domains of other names are kept, and are in no search list")
  func volatileDomains() {
    defaults.setVolatileDomain(["K": 1], forName: "mine")
    #expect(defaults.object(forKey: "K") == nil)
    #expect(defaults.volatileDomain(forName: "mine") as? [String: Int] == ["K": 1])
    #expect(
      defaults.volatileDomainNames == [
        UserDefaults.argumentDomain, UserDefaults.registrationDomain, "mine",
      ])
    defaults.removeVolatileDomain(forName: "mine")
    #expect(defaults.volatileDomain(forName: "mine").isEmpty)
  }

  @Test("persistent domains are replaced whole, and cannot have names of volatile ones")
  func persistentDomains() {
    defaults.setPersistentDomain(["A": 1, "B": ["x"]], forName: "d")
    defaults.setPersistentDomain(["A": 2], forName: "d")
    #expect(defaults.persistentDomain(forName: "d") as? [String: Int] == ["A": 2])
    defaults.setPersistentDomain(["A": 1], forName: "another")
    #expect(defaults.persistentDomainNames() == ["another", "d"])
    defaults.removePersistentDomain(forName: "d")
    #expect(defaults.persistentDomain(forName: "d") == nil)
    #expect(defaults.persistentDomainNames() == ["another"])
    defaults.setPersistentDomain(["A": 1], forName: UserDefaults.argumentDomain)
    #expect(defaults.object(forKey: "A") == nil)
  }

  @Test("dictionaryRepresentation is the search list flattened")
  func representation() {
    defaults.register(defaults: ["A": 0, "R": 1])
    defaults.setPersistentDomain(["A": 1, "G": 1], forName: UserDefaults.globalDomain)
    defaults.set(2, forKey: "A")
    #expect(defaults.dictionaryRepresentation() as? [String: Int] == ["A": 2, "R": 1, "G": 1])
  }

  @Test("a suite cannot have the program's name or the global domain's")
  func suiteNames() throws {
    let name = ProcessInfo.processInfo.processName
    #expect(UserDefaults(suiteName: name) == nil)
    #expect(UserDefaults(suiteName: UserDefaults.globalDomain) == nil)
  }

  @Test("setValuesForKeys sets all keys or none")
  func severalKeys() {
    defaults.setValuesForKeys(["A": 1, "B": "x"])
    #expect(defaults.integer(forKey: "A") == 1)
    defaults.setValuesForKeys(["Home": URL(fileURLWithPath: "/x"), "B": "y"])
    #expect(defaults.url(forKey: "Home")?.path == "/x")
    defaults.setValuesForKeys(["A": 2, "C": NSNull()])
    #expect(defaults.integer(forKey: "A") == 1)
  }

  @Test("didChangeNotification comes on the thread of the change, with the object")
  func notification() {
    let count = Mutex(0)
    let (own, thread) = (defaults, pthread_self())
    let token = NotificationCenter.default.addObserver(
      forName: UserDefaults.didChangeNotification, object: defaults, queue: nil
    ) { note in
      if note.object as? UserDefaults === own, pthread_self() == thread {
        count.withLock { $0 += 1 }
      }
    }
    defer { NotificationCenter.default.removeObserver(token) }
    defaults.set(1, forKey: "K")
    defaults.removeObject(forKey: "K")
    defaults.register(defaults: ["R": 1])
    #expect(count.withLock { $0 } == 3)
  }

  @Test("a stored value does not change with the object it was made from")
  func immutable() {
    let array = NSMutableArray(array: ["a"])
    defaults.set(array, forKey: "K")
    array.add("b")
    #expect(defaults.stringArray(forKey: "K") == ["a"])
  }
}
