import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

// The history as lines of text, and as JSON.

extension HistoryDirectory.Entry {
  /// The lines that `prefs history` prints of the changes of the filter; empty if it has none.
  package func text(_ filter: HistoryFilter) -> String {
    switch self {
    case .gap(let reason): return "--- changes are missing here: \(reason.printable())\n"
    case .change(let record) where filter.contains(record):
      let items = record.items.filter { filter.contains($0.recordedKey) }
      if items.isEmpty { return "" }
      let lines = items.map { record.line(of: $0).printable() + "\n" }.joined()
      return lines + "    \(record.source.text.printable())\n"
    case .change: return ""
    }
  }

  /// The same as a dictionary; nil if the filter has none of its changes.
  package func values(_ filter: HistoryFilter) -> ValueDictionary? {
    switch self {
    case .gap(let reason): return ["gap": .string(reason)]
    case .change(let record) where filter.contains(record):
      let items = record.items.filter { filter.contains($0.recordedKey) }
      return items.isEmpty ? nil : record.values(of: items)
    case .change: return nil
    }
  }
}

extension HistoryRecord {
  fileprivate func line(of item: Item) -> String {
    let isUnknown = item.before == .notKept && item.after == .notKept
    let change = isUnknown ? "changed (not kept)" : item.before.text(to: item.after)
    let many = count > 1 ? " (\(count) changes since \(first))" : ""
    return "\(number) \(time.text) \(item.recordedKey.text): \(change)\(many)"
  }

  fileprivate func values(of items: [Item]) -> ValueDictionary {
    var values: ValueDictionary = [
      "number": .integer(WideInteger(number)), "first": .integer(WideInteger(first)),
      "count": .integer(WideInteger(UInt64(clamping: count))), "time": .string(time.text),
      "via": .string("\(source.via)"), "user": .integer(WideInteger(UInt64(source.user))),
      "process": .integer(WideInteger(Int64(source.process))),
      "program": .string(source.program), "unit": .string(source.unit),
      "changes": .array(
        items.map { .dictionary($0.recordedKey.values(from: $0.before, to: $0.after)) }),
    ]
    if !source.because.isEmpty { values["because"] = .string(source.because) }
    return values
  }
}

extension RecordedKey {
  /// The place, domain and key, as lines name them.
  package var text: String { "\(location.place.rawValue) \(location.domain) \(key)" }

  /// A change of the key as a dictionary, for JSON.
  package func values(
    from before: RecordedValue, to after: RecordedValue
  ) -> ValueDictionary {
    var values: ValueDictionary = [
      "place": .string(location.place.rawValue), "domain": .string(location.domain.string),
      "key": .string(key.string),
    ]
    for (name, value) in [("before", before), ("after", after)] {
      if let value = value.shown { values[Key(name)] = value }
      if !value.isKnown { values[Key(name + "-not-kept")] = true }
    }
    return values
  }
}

extension Value? {
  /// The value in one line; `(none)` if there is none.
  package var line: String { map { ValueDescription.line(of: $0, false) } ?? "(none)" }
}

extension RecordedValue {
  /// The value in one line.
  package var text: String {
    switch self {
    case .none: "(none)"
    case .list, .parts: shown.map { ValueDescription.line(of: $0, false) } ?? "(damaged)"
    case .large(let size): "(\(size) bytes, not kept)"
    case .notKept: "(not kept)"
    }
  }

  /// A change to another value in one line.
  package func text(to new: Self) -> String {
    guard let first = shown, let second = new.shown else { return "\(text) -> \(new.text)" }
    let lines = ValueDescription.lines(from: first, to: second)
    return "\(lines.old) -> \(lines.new)"
  }
}

extension ChangeSource {
  /// The way, the program and the unit, as far as they are known, and why if that was said.
  package var text: String {
    let way: [Via: String] = [
      .unknown: "unknown (the owner was killed)",
      .list: program.isEmpty ? "list (another program)" : "list (another machine)",
    ]
    let isOfProcess = ![.unknown, .list, .profile, .once].contains(via)
    let program = isOfProcess && program.isEmpty ? "a program that has ended" : program
    let who = [way[via] ?? "\(via)", program, unit].filter { !$0.isEmpty }.joined(separator: ", ")
    return because.isEmpty ? who : "\(who): \(because)"
  }
}
