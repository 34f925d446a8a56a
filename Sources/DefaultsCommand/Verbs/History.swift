import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `history`: shows what was changed, when, and by whom.
enum History {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    var selection = HistorySelection()
    var isJSON = false
    if arguments.first == "forget", arguments.count > 1 { return try forget(&arguments) }
    if let word = arguments.first, !word.hasPrefix("--") { try selection.readTarget(&arguments) }
    while !arguments.isEmpty {
      if arguments.first == "--json" {
        _ = try arguments.removeNext()
        isJSON = true
      } else if try !selection.read(&arguments) {
        throw .usage
      }
    }
    do throws(EngineError) {
      let history = try HistoryView(StoreView())
      for entry in history.entries { show(entry, selection, isJSON) }
    } catch {
      throw Refusal("Could not read the history", error)
    }
  }

  private static func forget(_ arguments: inout Arguments) throws(Refusal) {
    _ = try arguments.removeNext()
    let target = try Target(&arguments)
    let key = arguments.isEmpty ? nil : Key(try arguments.removeNext())
    try arguments.end()
    do throws(EngineError) {
      let report = try StoreView().places.report(.forget(target.domain, key))
      guard case .integer(let count) = report else { return }
      Output.write("\(count) records had values, which are removed\n")
    } catch {
      throw Refusal("Could not remove the values", error)
    }
  }

  private static func show(
    _ entry: HistoryDirectory.Entry, _ selection: HistorySelection, _ isJSON: Bool
  ) {
    switch entry {
    case .gap(let reason):
      if isJSON {
        write(json: ["gap": .string(reason)])
      } else {
        Output.write(line: "--- changes are missing here: \(reason)")
      }
    case .change(let record) where selection.contains(record):
      let items = record.items.filter { selection.contains($0) }
      if items.isEmpty { return }
      if isJSON { return write(json: json(record, items)) }
      for item in items { Output.write(line: line(record, item)) }
      Output.write(line: "    \(record.source.text)")
    case .change: break
    }
  }

  private static func line(_ record: HistoryRecord, _ item: HistoryRecord.Item) -> String {
    let values = "\(item.before.text) -> \(item.after.text)"
    let change = item.before == .notKept && item.after == .notKept ? "changed (not kept)" : values
    let many = record.count > 1 ? " (\(record.count) changes since \(record.first))" : ""
    return "\(record.number) \(record.time.text) \(item.text): \(change)\(many)"
  }

  private static func json(_ record: HistoryRecord, _ items: [HistoryRecord.Item])
    -> ValueDictionary
  {
    let source = record.source
    return [
      "number": .integer(WideInteger(record.number)),
      "first": .integer(WideInteger(record.first)),
      "count": .integer(WideInteger(UInt64(clamping: record.count))),
      "time": .string(record.time.text),
      "via": .string("\(source.via)"), "user": .integer(WideInteger(UInt64(source.user))),
      "process": .integer(WideInteger(Int64(source.process))),
      "program": .string(source.program), "unit": .string(source.unit),
      "changes": .array(
        items.map { item in
          var values: ValueDictionary = [
            "place": .string(item.location.place.rawValue),
            "domain": .string(item.location.domain.string), "key": .string(item.key.string),
          ]
          for (name, value) in [("before", item.before), ("after", item.after)] {
            if let value = value.value { values[Key(name)] = value }
            if !value.isKnown { values[Key(name + "-not-kept")] = true }
          }
          return .dictionary(values)
        }),
    ]
  }

  /// Writes a line of JSON. What JSON has no form for is a text.
  private static func write(json values: ValueDictionary) {
    let bytes = (try? Document.json(.dictionary(values))) ?? Array("{}".utf8)
    let text = String(decoding: bytes, as: UTF8.self)
    Output.write(text.split(separator: "\n").map { $0.drop { $0 == " " } }.joined() + "\n")
  }
}

extension HistoryRecord.Item {
  /// The place, domain and key, as lines name them.
  var text: String { "\(location.place.rawValue) \(location.domain) \(key)" }
}

extension RecordedValue {
  /// The value in one line.
  var text: String {
    switch self {
    case .none: "(none)"
    case .list: value.map { ValueDescription.line(of: $0, false) } ?? "(damaged)"
    case .large(let size): "(\(size) bytes, not kept)"
    case .notKept: "(not kept)"
    }
  }
}

extension Timestamp {
  /// ISO 8601, UTC, to the second.
  var text: String {
    let second: Int64 = 1_000_000_000
    let whole = Timestamp(nanoseconds: nanoseconds - (nanoseconds % second + second) % second)
    return String(
      decoding: ValueText.canonical(.date(AbsoluteTime(whole))).dropLast(), as: UTF8.self)
  }
}

extension ChangeSource {
  /// The way, the program and the unit, as far as they are known.
  var text: String {
    let way: [Via: String] = [
      .unknown: "unknown (the owner was killed)", .list: "list (another program)",
    ]
    let isOfProcess = [.mount, .command, .library, .cloud, .undo].contains(via)
    let program = isOfProcess && program.isEmpty ? "a program that has ended" : program
    return [way[via] ?? "\(via)", program, unit].filter { !$0.isEmpty }.joined(separator: ", ")
  }
}
