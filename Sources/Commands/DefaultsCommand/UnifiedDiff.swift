/// The differences of two texts by lines, as `diff -u` writes them.
enum UnifiedDiff {
  /// How many lines around a difference are shown.
  private static let context = 3

  /// A line of either text.
  private struct Line {
    let mark: Character
    let text: ArraySlice<UInt8>
  }

  /// Returns the differences; empty if there are none. Cost: O(lines + differences^2).
  static func text(of path: String, from old: [UInt8], to new: [UInt8]) -> String {
    let lines = merged(Self.lines(of: old), Self.lines(of: new))
    let changed = lines.indices.filter { lines[$0].mark != " " }
    guard var last = changed.first else { return "" }
    var text = "--- \(path)\n+++ \(path)\n"
    var first = last
    for index in changed.dropFirst() {
      if index - last > 2 * context + 1 {
        text += hunk(lines, first, last)
        first = index
      }
      last = index
    }
    return text + hunk(lines, first, last)
  }

  /// The lines, each with its end.
  private static func lines(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    var lines: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while let end = rest.firstIndex(of: 0x0A) {
      lines.append(rest[...end])
      rest = rest[(end + 1)...]
    }
    if !rest.isEmpty { lines.append(rest) }
    return lines
  }

  private static func merged(
    _ old: [ArraySlice<UInt8>], _ new: [ArraySlice<UInt8>]
  ) -> [Line] {
    let difference = new.difference(from: old)
    let removed = Set(difference.removals.map(offset))
    let added = Set(difference.insertions.map(offset))
    var (lines, index): ([Line], Int) = ([], 0)
    for (number, line) in old.enumerated() {
      while !removed.contains(number), added.contains(index) {
        lines.append(Line(mark: "+", text: new[index]))
        index += 1
      }
      if removed.contains(number) {
        lines.append(Line(mark: "-", text: line))
      } else {
        lines.append(Line(mark: " ", text: line))
        index += 1
      }
    }
    for line in new[index...] { lines.append(Line(mark: "+", text: line)) }
    return lines
  }

  private static func offset(
    _ change: CollectionDifference<ArraySlice<UInt8>>.Change
  ) -> Int {
    switch change {
    case .insert(let offset, _, _), .remove(let offset, _, _): offset
    }
  }

  private static func hunk(_ lines: [Line], _ first: Int, _ last: Int) -> String {
    let range = max(0, first - context)..<min(lines.count, last + context + 1)
    let before = lines[..<range.lowerBound]
    let part = lines[range]
    let old = place(before.count { $0.mark != "+" }, part.count { $0.mark != "+" })
    let new = place(before.count { $0.mark != "-" }, part.count { $0.mark != "-" })
    var text = "@@ -\(old) +\(new) @@\n"
    for line in part {
      text.append(line.mark)
      text += String(decoding: line.text, as: UTF8.self)
      if line.text.last != 0x0A { text += "\n\\ No newline at end of file\n" }
    }
    return text
  }

  /// Where lines are, from 1; of no lines, the one before them.
  private static func place(_ before: Int, _ count: Int) -> String {
    count == 1 ? "\(before + 1)" : "\(count == 0 ? before : before + 1),\(count)"
  }
}
