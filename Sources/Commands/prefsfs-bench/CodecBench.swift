import CLinux
import Foundation
import PropertyList

/// Measures reading and writing lists of realistic keys and values, in nanoseconds a key, beside
/// Foundation's PropertyListSerialization and libplist; and the memory that it takes.
enum CodecBench {
  static func run() {
    let report = Report("Property lists")
    for count in [100, 10_000, 100_000] {
      binaryAndXML(count, report)
      let json = (try? Document.write(jsonSample(count), as: .json)) ?? []
      compare(
        "read json", count, report, ours: { _ = try? Document.read(json) },
        theirs: { _ = try? JSONSerialization.jsonObject(with: Data(json)) })
      let old = openStep(count)
      compare(
        "read old-style", count, report, ours: { _ = try? Document.read(old) },
        theirs: { _ = try? PropertyListSerialization.propertyList(from: Data(old), format: nil) })
    }
    MemoryBench.run(sample(100_000), report)
  }

  private static func binaryAndXML(_ count: Int, _ report: Report) {
    for (format, theirs) in [
      (PropertyList.Format.binary, PropertyListSerialization.PropertyListFormat.binary),
      (.xml, .xml),
    ] {
      // Each writes what it has read from the list itself, in its own representation.
      guard let bytes = try? Document.write(sample(count), as: format),
        let value = try? Document.read(bytes).value,
        let object = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
      else { continue }
      let peer = LibPlist.shared
      compare(
        "read \(format.rawValue)", count, report, ours: { _ = try? Document.read(bytes) },
        theirs: {
          _ = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
        },
        libplist: peer.map { peer in { peer.read(bytes, isBinary: format == .binary) } })
      compare(
        "write \(format.rawValue)", count, report,
        ours: { _ = try? Document.write(value, as: format) },
        theirs: {
          _ = try? PropertyListSerialization.data(
            fromPropertyList: object, format: theirs, options: 0)
        },
        libplist: peer.map { peer in
          let node = peer.parse(bytes, isBinary: format == .binary)
          return { peer.write(node, isBinary: format == .binary) }
        })
    }
  }

  private static func compare(
    _ title: String, _ count: Int, _ report: Report, ours: @escaping () -> Void,
    theirs: @escaping () -> Void, libplist: (() -> Void)? = nil
  ) {
    func perKey(_ body: @escaping () -> Void) -> () -> Double {
      let repetitions = max(1, 10_000 / count)
      return {
        // The heap is trimmed first; otherwise one subject would pay for what another has freed.
        malloc_trim(0)
        return Bench.time(repetitions) { _ in body() } / Double(count)
      }
    }
    var subjects = [Subject("prefsfs", perKey(ours)), Subject("Foundation", perKey(theirs))]
    if let libplist { subjects.append(Subject("libplist", perKey(libplist))) }
    report.add("\(title), \(count) keys", .nanoseconds, Bench.samples(subjects, rounds: 5))
  }

  /// Returns a dictionary whose keys and values are like those of real preferences.
  static func sample(_ count: Int) -> Value {
    var values: ValueDictionary = [:]
    for index in 0..<count { values[Key("NSWindow Frame Setting \(index)")] = item(index) }
    return .dictionary(values)
  }

  private static func item(_ index: Int) -> Value {
    switch index % 10 {
    case 0: .boolean(index % 20 == 0)
    case 1, 2: .integer(WideInteger(Int64(index * 7919)))
    case 3: .real(Double(index) * 1.25)
    case 4: .date(AbsoluteTime(seconds: Double(index) * 1000))
    case 5: .data(Array(repeating: UInt8(truncatingIfNeeded: index), count: 24))
    case 6: .array([.string("item \(index)"), .integer(1), .boolean(true)])
    case 7: .dictionary(["name": .string("value \(index)"), "enabled": true])
    default: .string("the value of setting number \(index)")
    }
  }

  private static func jsonSample(_ count: Int) -> Value {
    var values: ValueDictionary = [:]
    for index in 0..<count {
      let value = item(index)
      let isPlain = value.kind != .date && value.kind != .data
      values[Key("NSWindow Frame Setting \(index)")] = isPlain ? value : .string("plain \(index)")
    }
    return .dictionary(values)
  }

  private static func openStep(_ count: Int) -> [UInt8] {
    var text = "{\n"
    for index in 0..<count {
      text += "  \"NSWindow Frame Setting \(index)\" = \"the value of setting number \(index)\";\n"
    }
    return Array((text + "}\n").utf8)
  }
}
