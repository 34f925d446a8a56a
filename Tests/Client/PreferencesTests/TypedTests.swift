import Foundation
import Testing

import class Preferences.UserDefaults
@testable import Preferences

enum Theme: String, PreferenceValue { case light, dark }
enum Level: Int, Codable, PreferenceValue { case low = 1, high }

struct Frame: Codable, Equatable, PreferenceValue {
  var width = 800
  var title = "é"
  var tags: [String] = ["a"]
  var nested: [String: Double] = ["x": 0.5]
  var home: URL?
  var made = Date(timeIntervalSinceReferenceDate: 1)
  var bytes = Data([1, 2])
}

/// A type that was `struct Window { var width: Int }` when its values were stored.
struct Window: Codable, Equatable, PreferenceValue {
  var width = 800
  var scale = 1.0
  var level = Level.low
  var frame = Size()
  var opened: Date?
  var sizes = ["main": 1]

  struct Size: Codable, Equatable { var height = 600, isFull = false }
}

/// A type whose values have no default of a key in an array.
struct Tab: Equatable, PreferenceRecord { var title = "", isPinned = false }

extension PreferenceKey<Int> {
  static var tabWidth: Self { Self("TabWidth", default: 4) }
}

/// Typed keys, the property wrapper and Codable values.
@Suite("Typed preferences") struct TypedTests {
  private let defaults = UserDefaults.inMemory()

  private func roundTrip<Value: PreferenceValue & Equatable>(_ value: Value, _ other: Value) {
    let key = PreferenceKey("K", default: other)
    defaults.removeObject(forKey: "K")
    #expect(defaults[key] == other)
    defaults[key] = value
    #expect(defaults[key] == value)
  }

  @Test("a value of every type reads back as it was set")
  func roundTrips() throws {
    roundTrip(true, false)
    roundTrip(Int.min, 0)
    roundTrip(UInt64.max, 0)
    roundTrip(Int8(-1), 0)
    roundTrip(0.1, 0)
    roundTrip(Float(0.1), 0)
    roundTrip("é\n", "")
    roundTrip(Date(timeIntervalSinceReferenceDate: -0.5), .now)
    roundTrip(Data([0, 255]), Data())
    roundTrip(try #require(URL(string: "https://a.b/c")), URL(fileURLWithPath: "/"))
    roundTrip([[1, 2], []], [[0]])
    roundTrip(["a": ["b": true]], [:])
    roundTrip(Theme.dark, .light)
    roundTrip(Level.high, .low)
    roundTrip(Frame(width: 1, home: URL(string: "https://a.b")), Frame())
    roundTrip([Theme.dark, .light], [])
    roundTrip(UUID(), UUID())
    roundTrip(Set(["b", "a", "é"]), [])
    roundTrip(Set([10, 9, -1]), [])
    for text in ["12.34", "-0.1", "12345678901234567890.123456789", "1e100"] {
      roundTrip(try #require(Decimal(string: text)), 0)
    }
    for parts in [(0, 0), (1, 0), (0, 1), (-1, -1), (0, 100_000_000_000_000_000), (1 << 62, 1)] {
      roundTrip(
        Duration(secondsComponent: Int64(parts.0), attosecondsComponent: Int64(parts.1)), .zero)
    }
    roundTrip(1..<5, 0..<1)
    roundTrip("a"..."b", "-"..."-")
  }

  @Test("a Codable value is stored as a dictionary that others can read, not as an archive")
  func readable() throws {
    try defaults.set(Frame(), for: PreferenceKey("Frame", default: Frame()))
    let stored = try #require(defaults.dictionary(forKey: "Frame"))
    #expect(stored["width"] as? Int == 800)
    #expect(stored["tags"] as? [String] == ["a"])
    #expect(stored["made"] as? Date == Date(timeIntervalSinceReferenceDate: 1))
    #expect(stored["bytes"] as? Data == Data([1, 2]))
    defaults.set(["width": "wide"], forKey: "Frame")
    #expect(defaults[PreferenceKey("Frame", default: Frame(width: 1))].width == 1)
  }

  /// What is stored, and what is read; the default is `usual`.
  static let windows: [(stored: [String: any Sendable], read: Window)] = [
    (["width": 1024], with { $0.width = 1024 }),
    (["width": "1024", "scale": "2.5"], with { ($0.width, $0.scale) = (1024, 2.5) }),
    (["width": "wide", "level": 9, "scale": 2] as [String: any Sendable], with { $0.scale = 2 }),
    (["frame": ["height": 1]], with { $0.frame = .init(height: 1, isFull: true) }),
    (
      ["frame": ["height": [1], "isFull": "no"] as [String: any Sendable]],
      with { $0.frame.isFull = false }
    ),
    // Nothing stands for nil in a list, and a dictionary has no members of a type.
    (
      ["opened": "today", "sizes": [String: Int]()] as [String: any Sendable],
      with { $0.sizes = [:] }
    ),
    (["sizes": ["other": 2]], with { $0.sizes = ["other": 2] }),
    (["sizes": ["other": "x"], "Unknown": 1] as [String: any Sendable], with { _ in }),
  ]

  private static let usual = Window(
    scale: 3, level: .high, frame: .init(height: 5, isFull: true),
    opened: Date(timeIntervalSinceReferenceDate: 7))

  /// Returns the default with changes; without an `opened`, as most of what is stored.
  private static func with(_ change: (inout Window) -> Void) -> Window {
    var window = usual
    window.opened = nil
    change(&window)
    return window
  }

  @Test("members that are not stored or cannot be read come from the default", arguments: windows)
  func members(_ stored: [String: any Sendable], _ read: Window) {
    let key = PreferenceKey("W", default: Self.usual)
    defaults.set(stored, forKey: "W")
    var read = read
    // One that is there and cannot be read is the default's.
    if stored["opened"] != nil { read.opened = Self.usual.opened }
    #expect(defaults[key] == read)
    defaults[key].width = 5
    read.width = 5
    #expect(defaults[key] == read)
  }

  @Test("what a person writes for values that are not scalars of a list is read")
  func written() {
    defaults.setValuesForKeys([
      "D": 12.34, "E": "12.5 ", "F": "12 apples", "T": 1.5, "U": "2", "V": "soon", "R": [3, 1],
      "S": [1, 1],
    ])
    #expect(defaults[PreferenceKey<Decimal?>("D")] == Decimal(string: "12.34"))
    #expect(defaults[PreferenceKey<Decimal?>("E")] == Decimal(string: "12.5"))
    #expect(defaults[PreferenceKey<Decimal?>("F")] == nil)
    #expect(defaults[PreferenceKey<Duration?>("T")] == .milliseconds(1500))
    #expect(defaults[PreferenceKey<Duration?>("U")] == .seconds(2))
    #expect(defaults[PreferenceKey<Duration?>("V")] == nil)
    #expect(defaults[PreferenceKey<Range<Int>?>("R")] == nil)
    #expect(defaults[PreferenceKey<Set<Int>?>("S")] == [1])
    defaults[PreferenceKey<Set<Int>>("S", default: [])] = [10, 9, -1]
    #expect(defaults.object(forKey: "S") as? [Int] == [-1, 9, 10])
  }

  @Test("in an array, members that are not stored come from the type's own defaults")
  func records() {
    let key = PreferenceKey<[Tab]>("T", default: [])
    defaults.set([["title": "one"], ["title": "two", "isPinned": "x"]], forKey: "T")
    defaults[key].append(Tab(title: "three", isPinned: true))
    #expect(defaults[key].map(\.title) == ["one", "two", "three"])
    #expect(defaults[key].map(\.isPinned) == [false, false, true])
  }

  @Test("setting an optional key to nil removes it")
  func optional() {
    let key = PreferenceKey<String?>("K")
    #expect(defaults[key] == nil)
    defaults[key] = "x"
    #expect(defaults[key] == "x")
    defaults[key] = nil
    #expect(defaults.object(forKey: "K") == nil)
  }

  /// A stored object, and what keys of type Int, Bool and String read, whose defaults are -1, true
  /// and "-".
  static let strict: [(stored: any Sendable, int: Int, bool: Bool, string: String)] = [
    (8, 8, true, "-"), (0, 0, false, "-"), (1, 1, true, "-"), (2.0, 2, true, "-"),
    (2.5, -1, true, "-"),
    ("8", 8, true, "8"), ("8 apples", -1, true, "8 apples"), ("no", -1, false, "no"),
    (false, -1, false, "-"), ([1], -1, true, "-"), (1e300, -1, true, "-"),
  ]

  @Test("reading is strict: a value of the wrong type gives the default", arguments: strict)
  func strictness(_ stored: any Sendable, _ int: Int, _ bool: Bool, _ string: String) {
    defaults.set(stored, forKey: "K")
    #expect(defaults[PreferenceKey("K", default: -1)] == int)
    #expect(defaults[PreferenceKey("K", default: true)] == bool)
    #expect(defaults[PreferenceKey("K", default: "-")] == string)
  }

  @Test("a value that cannot be encoded is refused, and the old value stays")
  func notEncodable() {
    let key = PreferenceKey<[String?]>("K", default: [])
    defaults.set(["old"], forKey: "K")
    #expect(throws: PreferenceError.noValue) { try defaults.set([nil], for: key) }
    defaults[key] = [nil]
    #expect(defaults.stringArray(forKey: "K") == ["old"])
  }

  @Test("updates by many threads, and sets beside them, are all in the value")
  func updates() async throws {
    let (defaults, key) = (defaults, PreferenceKey<[String: Int]>("K", default: ["start": 1]))
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<4 {
        group.addTask {
          for _ in 0..<100 { _ = try? defaults.update(key) { $0["\(thread)", default: 0] += 1 } }
        }
      }
    }
    #expect(defaults[key] == ["start": 1, "0": 100, "1": 100, "2": 100, "3": 100])
  }

  @Test("an update to nil removes the key; one that changes nothing, or throws, sets nothing")
  func updateKinds() throws {
    let key = PreferenceKey<Int?>("K")
    let two = try defaults.update(key) { $0 = ($0 ?? 1) + 1 }
    #expect(two == 2 && defaults.integer(forKey: "K") == 2)
    for _ in 0..<2 {
      try defaults.update(key) { $0 = nil }
      #expect(defaults.object(forKey: "K") == nil)
    }
    let four = try defaults.update(.tabWidth) { _ in }
    #expect(four == 4)
    #expect(defaults.object(forKey: "TabWidth") == nil)
    #expect(throws: PreferenceError.noValue) {
      try defaults.update(.tabWidth) { width in
        width = 5
        throw PreferenceError.noValue
      }
    }
    #expect(defaults.object(forKey: "TabWidth") == nil)
    // A value of another place counts too, and one that comes between the two steps.
    defaults.setPersistentDomain(["TabWidth": 7], forName: UserDefaults.globalDomain)
    var calls = 0
    let width = try defaults.update(.tabWidth) { width in
      calls += 1
      if calls == 1 { defaults.set(10, forKey: "TabWidth") }
      width += 1
    }
    #expect(width == 11 && calls == 2)
  }

  @Test("a wrapper of an optional needs no initial value")
  func optionalWrapper() {
    @Preference("Name", in: defaults) var name: String?
    #expect(name == nil)
    name = "x"
    #expect(name == "x" && defaults.value(forKey: "Name") as? String == "x")
    defaults.setValue(nil, forKey: "Name")
    #expect(name == nil)
  }

  @Test("the property wrapper reads and sets its key, and observes it")
  func wrapper() async throws {
    @Preference("TabWidth", in: defaults) var tabWidth = 4
    #expect(tabWidth == 4)
    let changes = $tabWidth.changes
    tabWidth = 8
    #expect(defaults[.tabWidth] == 8)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next() == PreferenceChange(old: 4, new: 8, isOwn: true))
  }
}
