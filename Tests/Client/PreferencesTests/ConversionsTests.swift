import Foundation
import Testing

import class Preferences.UserDefaults
@testable import Preferences

/// The implicit conversions of the getters. The table in Conversions.swift gives the rules.
@Suite("Conversions") struct ConversionsTests {
  /// A value, and what each getter returns for it.
  struct Row: Sendable, CustomTestStringConvertible {
    var name: String
    var value: @Sendable () -> Any
    var string: String?
    var integer = 0
    var double = 0.0
    var bool = false
    var testDescription: String { name }
  }

  static let rows: [Row] = [
    Row(name: "text", value: { "abc" }, string: "abc"),
    Row(name: "a number's text", value: { " 12abc" }, string: " 12abc", integer: 12, double: 12),
    Row(name: "a real's text", value: { "1e3" }, string: "1e3", integer: 1, double: 1000),
    Row(name: "a signed text", value: { "-5" }, string: "-5", integer: -5, double: -5),
    Row(name: "hexadecimal text", value: { "0x10" }, string: "0x10"),
    Row(
      name: "a real's text, rounded like a literal", value: { "0.3" }, string: "0.3", double: 0.3),
    Row(
      name: "a text of many digits", value: { "99999999999999999999" },
      string: "99999999999999999999", integer: .max, double: 1e20),
    Row(name: "a point without a fraction", value: { "5." }, string: "5.", integer: 5, double: 5),
    Row(name: "a fraction without an integer", value: { "+.5e1x" }, string: "+.5e1x", double: 5),
    Row(name: "an exponent without digits", value: { "2e" }, string: "2e", integer: 2, double: 2),
    Row(name: "an emoji, at which Foundation crashes", value: { "😀1" }, string: "😀1"),
    Row(name: "a sign without digits", value: { "-" }, string: "-"),
    Row(name: "YES", value: { "YES" }, string: "YES", bool: true),
    Row(name: "true", value: { "true" }, string: "true", bool: true),
    Row(name: "1", value: { "1" }, string: "1", integer: 1, double: 1, bool: true),
    Row(name: "Y3, which Foundation takes for true", value: { "Y3" }, string: "Y3"),
    Row(
      name: "2, which Foundation takes for true", value: { "2" }, string: "2", integer: 2, double: 2
    ),
    Row(name: "1.0", value: { "1.0" }, string: "1.0", integer: 1, double: 1, bool: true),
    Row(
      name: "a Float", value: { Float(12.34) }, string: "12.34", integer: 12,
      double: Double(Float(12.34)), bool: true),
    Row(name: "NO", value: { "NO" }, string: "NO"),
    Row(name: "an integer", value: { 42 }, string: "42", integer: 42, double: 42, bool: true),
    Row(name: "zero", value: { 0 }, string: "0"),
    Row(
      name: "the largest integer", value: { UInt64.max }, string: "18446744073709551615",
      integer: .max, double: 18446744073709551616, bool: true),
    Row(name: "a real", value: { -2.75 }, string: "-2.75", integer: -2, double: -2.75, bool: true),
    Row(name: "a whole real", value: { 3.0 }, string: "3", integer: 3, double: 3, bool: true),
    Row(
      name: "a real that no integer holds", value: { 1e20 }, string: "1e+20", integer: .max,
      double: 1e20, bool: true),
    Row(
      name: "a small negative real", value: { -1e20 }, string: "-1e+20", integer: .min,
      double: -1e20, bool: true),
    Row(name: "true itself", value: { true }, string: "1", integer: 1, double: 1, bool: true),
    Row(name: "false itself", value: { false }, string: "0"),
    Row(name: "a date", value: { Date(timeIntervalSinceReferenceDate: 5) }),
    Row(name: "data", value: { Data([1, 2]) }),
    Row(name: "an array", value: { ["1"] }),
    Row(name: "a dictionary", value: { ["a": 1] }),
  ]

  @Test("each getter converts a value by the table", arguments: rows)
  func scalars(_ row: Row) {
    let defaults = UserDefaults.inMemory()
    defaults.set(row.value(), forKey: "K")
    #expect(defaults.string(forKey: "K") == row.string)
    #expect(defaults.integer(forKey: "K") == row.integer)
    #expect(defaults.double(forKey: "K") == row.double)
    #expect(defaults.float(forKey: "K") == Float(row.double))
    #expect(defaults.bool(forKey: "K") == row.bool)
  }

  @Test("a Float can be cast to Float and Double, and a registered URL reads as a set one")
  func floatsAndURLs() {
    let defaults = UserDefaults.inMemory()
    defaults.set(Float(12.34), forKey: "F")
    #expect(defaults.object(forKey: "F") as? Float == 12.34)
    #expect(defaults.object(forKey: "F") as? Double == Double(Float(12.34)))
    let url = URL(fileURLWithPath: "/hello/world")
    defaults.register(defaults: ["URL": url, "NSURL": url as NSURL, "Bad": defaults, "Good": 1])
    #expect(defaults.url(forKey: "URL") == url && defaults.url(forKey: "NSURL") == url)
    #expect(defaults.object(forKey: "Bad") == nil && defaults.integer(forKey: "Good") == 1)
  }

  @Test("getters of containers and data convert no other types")
  func containers() {
    let defaults = UserDefaults.inMemory()
    let values: [String: Any] = [
      "Strings": ["a", "b"], "Mixed": ["a", 1], "Dictionary": ["k": ["v"]], "Data": Data([1]),
      "Text": "t",
    ]
    for (key, value) in values { defaults.set(value, forKey: key) }
    #expect(defaults.stringArray(forKey: "Strings") == ["a", "b"])
    #expect(defaults.stringArray(forKey: "Mixed") == nil)
    #expect(defaults.array(forKey: "Mixed")?.count == 2)
    #expect(defaults.array(forKey: "Text") == nil)
    #expect(defaults.dictionary(forKey: "Dictionary") as? [String: [String]] == ["k": ["v"]])
    #expect(defaults.dictionary(forKey: "Strings") == nil)
    #expect(defaults.data(forKey: "Data") == Data([1]))
    #expect(defaults.data(forKey: "Text") == nil)
  }

  @Test("objects keep their types, and objects of Foundation's classes can be set")
  func objects() {
    let defaults = UserDefaults.inMemory()
    let date = Date(timeIntervalSinceReferenceDate: 1.5)
    let cases: [(any Sendable, String)] = [
      (1, "Int"), (1.0, "Double"), (true, "Bool"), ("s", "String"), (date, "Date"),
      (Data([1]), "Data"), (UInt64.max, "UInt64"), (Int8(1), "Int"), (Float(0.5), "NSNumber"),
    ]
    for (value, type) in cases {
      defaults.set(value, forKey: "K")
      #expect(defaults.object(forKey: "K").map { "\(Swift.type(of: $0))" } == type)
    }
    let classes: [(Any, String)] = [
      (NSString("s"), "String"), (NSNumber(value: true), "Bool"), (NSNumber(value: 5), "Int"),
      (NSNumber(value: 0.5), "Double"), (NSArray(array: [1, "a"]), "Array<Any>"),
      (NSDictionary(dictionary: ["a": NSNumber(value: false)]), "Dictionary<String, Any>"),
      (NSNumber(value: UInt64.max), "UInt64"), (NSNumber(value: Int8(1)), "Int"),
    ]
    for (value, type) in classes {
      defaults.set(value, forKey: "K")
      #expect(defaults.object(forKey: "K").map { "\(Swift.type(of: $0))" } == type, "\(value)")
    }
  }

  @Test("an object that is no property list, at which Foundation crashes, is refused")
  func refused() {
    let defaults = UserDefaults.inMemory()
    defaults.set("old", forKey: "K")
    struct Own {}
    let objects: [Any] = [Own(), ["a": Own()], [1: "a"], [Own()], NSNull()]
    for object in objects {
      defaults.set(object, forKey: "K")
      #expect(defaults.string(forKey: "K") == "old", "\(object)")
    }
    defaults.set(nil, forKey: "K")
    #expect(defaults.object(forKey: "K") == nil)
  }

  @Test("URLs are kept as paths with ~ or as archives, which Foundation reads and writes too")
  func urls() throws {
    let defaults = UserDefaults.inMemory()
    let home = NSHomeDirectory()
    defaults.set(URL(fileURLWithPath: home + "/a file"), forKey: "K")
    #expect(defaults.string(forKey: "K") == "~/a file")
    #expect(defaults.url(forKey: "K")?.path == home + "/a file")
    let web = try #require(URL(string: "https://example.org/a?b#c"))
    defaults.set(web, forKey: "K")
    #expect(defaults.url(forKey: "K") == web)
    let archive = try #require(defaults.data(forKey: "K"))
    let judged = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURL.self, from: archive)
    #expect(judged?.absoluteString == web.absoluteString)
    let base = try #require(URL(string: "https://example.org/x/"))
    let theirs = try NSKeyedArchiver.archivedData(
      withRootObject: try #require(NSURL(string: "y", relativeTo: base)),
      requiringSecureCoding: false)
    defaults.set(theirs, forKey: "K")
    #expect(defaults.url(forKey: "K")?.absoluteString == "https://example.org/x/y")
    defaults.set("http://a.b/c", forKey: "K")
    #expect(defaults.url(forKey: "K")?.isFileURL == true)
  }

  @Test("data that is no archive, at which Foundation crashes, is no URL")
  func damagedArchives() throws {
    let defaults = UserDefaults.inMemory()
    defaults.set(URL(string: "https://example.org"), forKey: "K")
    let whole = try #require(defaults.data(forKey: "K"))
    for count in 0..<whole.count {
      defaults.set(whole.prefix(count), forKey: "K")
      #expect(defaults.url(forKey: "K") == nil)
    }
    for index in whole.indices {
      var other = whole
      other[index] ^= 0xFF
      defaults.set(other, forKey: "K")
      _ = defaults.url(forKey: "K")
    }
  }
}
