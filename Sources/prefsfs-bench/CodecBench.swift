import Foundation
import PropertyList

/// Reading and writing lists of realistic keys and values, beside Foundation's
/// PropertyListSerialization in the same run.
enum CodecBench {
  static func run() {
    print("microseconds a key; ratio: Foundation's time by ours, higher is better\n")
    for count in [100, 10_000, 100_000] {
      let value = sample(count)
      for (format, theirs) in [
        (PropertyList.Format.binary, PropertyListSerialization.PropertyListFormat.binary),
        (.xml, .xml),
      ] {
        guard let bytes = try? Document.write(value, as: format) else { continue }
        let data = Data(bytes)
        guard let object = try? PropertyListSerialization.propertyList(from: data, format: nil)
        else { continue }
        report("read \(format.rawValue)", count, ours: { _ = try? Document.read(bytes) }) {
          _ = try? PropertyListSerialization.propertyList(from: data, format: nil)
        }
        report(
          "write \(format.rawValue)", count, ours: { _ = try? Document.write(value, as: format) }
        ) {
          _ = try? PropertyListSerialization.data(
            fromPropertyList: object, format: theirs, options: 0)
        }
      }
      let json = (try? Document.write(jsonSample(count), as: .json)) ?? []
      report("read json", count, ours: { _ = try? Document.read(json) }) {
        _ = try? JSONSerialization.jsonObject(with: Data(json))
      }
      let old = openStep(count)
      report("read old-style", count, ours: { _ = try? Document.read(old) }) {
        _ = try? PropertyListSerialization.propertyList(from: Data(old), format: nil)
      }
    }
  }

  /// Does nothing but one step, over and over, for a profiler: `read` or `write` and a format.
  static func repeatStep(_ step: String, _ format: String) {
    guard let format = PropertyList.Format(rawValue: format) else { return }
    let value = format == .json ? jsonSample(10_000) : sample(10_000)
    let bytes =
      format == .openStep ? openStep(10_000) : (try? Document.write(value, as: format)) ?? []
    for _ in 0..<200 {
      if step == "read" {
        _ = try? Document.read(bytes)
      } else {
        _ = try? Document.write(value, as: format)
      }
    }
  }

  private static func report(
    _ title: String, _ count: Int, ours: () -> Void, theirs: () -> Void
  ) {
    let repetitions = max(1, 10_000 / count)
    let own = median { Bench.time(repetitions) { _ in ours() } } / Double(count)
    let other = median { Bench.time(1) { _ in theirs() } } / Double(count)
    print(
      Bench.pad(title, 16) + Bench.pad("\(count) keys", 13)
        + Bench.pad("\(thousandths(own)) us", 10)
        + "Foundation " + Bench.pad("\(thousandths(other)) us", 10) + Bench.ratio(other / own))
  }

  private static func thousandths(_ nanoseconds: Double) -> Double {
    nanoseconds.rounded() / 1000
  }

  private static func median(_ sample: () -> Double) -> Double {
    (0..<5).map { _ in sample() }.sorted()[2]
  }

  /// Keys and values as preferences have them.
  private static func sample(_ count: Int) -> Value {
    var values: [Key: Value] = [:]
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
    var values: [Key: Value] = [:]
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
