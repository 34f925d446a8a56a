import Foundation
import PropertyList
import Support
import Testing

@Suite("Round trips") struct RoundTripTests {
  @Test(
    "a format reads back the values that it holds",
    arguments: [
      (Format.binary, Samples.exact), (.xml, Samples.portable), (.json, Samples.json),
    ])
  func format(_ format: Format, _ samples: [(name: String, value: Value)]) throws {
    for (name, value) in samples {
      let (read, found) = try Document.read(Document.write(value, as: format))
      #expect(read == value, "\(name)")
      #expect(found == format, "\(name)")
    }
  }

  @Test("the text of a value denotes it in every style", arguments: Samples.exact.indices)
  func text(_ index: Int) {
    guard case .dictionary(let items) = Samples.exact[index].value else { return }
    for value in [Samples.exact[index].value] + items.values {
      for style in ValueText.Style.allCases {
        let text = ValueText.canonical(value, style: style)
        #expect(ValueText.denotes(text, value), "\(Samples.exact[index].name) \(style)")
      }
    }
  }

  @Test("a value that a format cannot hold is refused, not lost")
  func refused() {
    #expect(throws: FormatError.self) {
      try Document.write(["d": .date(AbsoluteTime(seconds: 0.5))], as: .xml)
    }
    #expect(throws: FormatError.self) { try Document.write(["d": "\u{1}"], as: .xml) }
    #expect(throws: FormatError.self) { try Document.write(["d": .data([1])], as: .json) }
    #expect(throws: FormatError.self) { try Document.write(["d": .real(.nan)], as: .json) }
  }
}

/// Other programs judge our lists: each reads a list of ours and writes it again, and we must read
/// the same value from that.
@Suite("Third-party judges") struct JudgeTests {
  @Test("we read what Foundation makes of our lists", arguments: Samples.portable.indices)
  func foundation(_ index: Int) throws {
    let (name, value) = Samples.portable[index]
    // Foundation on Linux has no number above Int64.max, and compares keys by canonical
    // equivalence, so that it keeps one of two.
    if ["largest integer", "normal forms"].contains(name) { return }
    for format in [Format.binary, .xml] {
      let data = Data(try Document.write(value, as: format))
      let object = try PropertyListSerialization.propertyList(from: data, format: nil)
      for output in [PropertyListSerialization.PropertyListFormat.binary, .xml] {
        let again = try PropertyListSerialization.data(
          fromPropertyList: object, format: output, options: 0)
        let back = try Document.read(Array(again)).value
        #expect(back == value, "\(name), \(format), back as \(output)")
      }
    }
  }

  @Test("years before 0 and after 9999 are written and read as Foundation does it")
  func farDates() throws {
    let times = [3e11, -1e12, -63_300_000_000, -63_113_990_400, 1e15]
    let value: Value = .array(times.map { .date(AbsoluteTime(seconds: $0)) })
    let xml = try Document.write(value, as: .xml)
    let text = String(decoding: xml, as: UTF8.self)
    for date in [
      "11507-08-17T05:20:00Z", "-29688-04-06T22:13:20Z", "-005-02-08T02:40:00Z",
      "0000-12-31T00:00:00Z", "31690739-07-06T01:46:40Z",
    ] {
      #expect(text.contains("<date>\(date)</date>"), "\(date)")
    }
    let object = try PropertyListSerialization.propertyList(from: Data(xml), format: nil)
    for format in [PropertyListSerialization.PropertyListFormat.binary, .xml] {
      let theirs = try PropertyListSerialization.data(
        fromPropertyList: object, format: format, options: 0)
      #expect(try Document.read(Array(theirs)).value == value)
    }
  }

  @Test("we read what plistlib and plistutil make of our lists", arguments: [Format.binary, .xml])
  func programs(_ format: Format) throws {
    try withSandbox { sandbox in
      for (index, sample) in Samples.portable.enumerated() {
        let bytes = try Document.write(sample.value, as: format)
        try Data(bytes).write(to: URL(fileURLWithPath: "\(sandbox.root)/in\(index)"))
      }
      let python = """
        import plistlib, sys, os
        d = sys.argv[1]
        for n in range(\(Samples.portable.count)):
            v = plistlib.load(open(f'{d}/in{n}', 'rb'))
            for f in ('XML', 'BINARY'):
                plistlib.dump(v, open(f'{d}/out{n}.{f}', 'wb'), fmt=getattr(plistlib, 'FMT_' + f))
        """
      let outcome = Program.run(
        "/usr/bin/python3", ["-c", python, sandbox.root], environment: sandbox.environment)
      #expect(outcome.status == 0, "\(outcome.errors)")
      for (index, sample) in Samples.portable.enumerated() {
        for suffix in ["XML", "BINARY"] {
          let back = try read("\(sandbox.root)/out\(index).\(suffix)")
          #expect(back == sample.value, "plistlib \(suffix): \(sample.name)")
        }
        // libplist changes dates before 2001 and numbers above Int64.max.
        if ["dates", "largest integer"].contains(sample.name) { continue }
        let other = format == .binary ? "xml" : "bin"
        let converted = sandbox.shell(
          "plistutil -f \(other) -i \(sandbox.root)/in\(index) -o \(sandbox.root)/util\(index)")
        #expect(converted.status == 0, "\(converted.errors)")
        let back = try read("\(sandbox.root)/util\(index)")
        // libplist writes a real in four bytes where single precision holds it.
        #expect(back.inDoublePrecision == sample.value, "plistutil \(other): \(sample.name)")
      }
    }
  }

  private func read(_ path: String) throws -> Value {
    try Document.read(Array(try Data(contentsOf: URL(fileURLWithPath: path)))).value
  }

  @Test("an old-style list reads as Foundation reads it", arguments: OldStyle.cases.indices)
  func oldStyle(_ index: Int) throws {
    let text = OldStyle.cases[index]
    let ours = try Document.read(Array(text.utf8)).value
    let object = try PropertyListSerialization.propertyList(from: Data(text.utf8), format: nil)
    let xml = try PropertyListSerialization.data(fromPropertyList: object, format: .xml, options: 0)
    let theirs = try Document.read(Array(xml)).value
    #expect(ours == theirs, "\(text)")
  }
}

enum OldStyle {
  static let cases = [
    "{ a = b; }", "{}", "( )", "(a, b, c)", "(a, \"b c\", )", "{ a = { b = ( c, { d = e; } ); }; }",
    "{ \"quoted key\" = \"line\\nbreak \\\"x\\\" \\\\\"; }", "{ a = <0fbd77 1c2735ae>; }",
    "{ a = <>; }",
    "// comment\n{ a = b; /* another */ c = d; }", "{ a = 1; b = 1.5; c = YES; }",
    "{ a = /usr/bin; b = a.b-c_d:e$f; }", "{ a = \"\\U00e9\\101\"; }",
    "{ 'single' = 'quotes \"in\"'; }",
    "key = value;\nother = \"x\";\n",
  ]
}

extension Value {
  fileprivate var inDoublePrecision: Value {
    switch self {
    case .single(let number): .real(Double(number))
    case .array(let items): .array(items.map(\.inDoublePrecision))
    case .dictionary(let items): .dictionary(items.mapValues(\.inDoublePrecision))
    default: self
    }
  }
}
