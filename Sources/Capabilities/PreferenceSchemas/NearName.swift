/// Finds the name that somebody may have meant.
package enum NearName {
  /// Returns the nearest of the names; nil if none is near: a name may differ by a third of its
  /// characters, at most three, where an exchange of neighbours counts once. Upper and lower case
  /// count as half a difference.
  package static func find(_ name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.unicodeScalars.prefix(longest))
    let most = min(2 * max(1, wanted.count / 3), 6)
    var best: (name: String, distance: Int)?
    for other in names {
      let scalars = Array(other.unicodeScalars.prefix(longest))
      guard abs(scalars.count - wanted.count) <= most / 2 else { continue }
      let distance = distance(wanted, scalars)
      if distance <= best.map({ $0.distance - 1 }) ?? most { best = (other, distance) }
    }
    return best?.name
  }

  private static let longest = 64

  /// Twice the number of single changes that make one text the other.
  private static func distance(_ one: [Unicode.Scalar], _ other: [Unicode.Scalar]) -> Int {
    var (before, last) = ([Int](), Array(stride(from: 0, through: 2 * other.count, by: 2)))
    for (row, first) in one.enumerated() {
      var line = [2 * (row + 1)]
      for (column, second) in other.enumerated() {
        let isSameLetter = first.properties.lowercaseMapping == second.properties.lowercaseMapping
        let cost = first == second ? 0 : isSameLetter ? 1 : 2
        var best = min(last[column] + cost, last[column + 1] + 2, line[column] + 2)
        if row > 0, column > 0, first == other[column - 1], one[row - 1] == second {
          best = min(best, before[column - 1] + 2)
        }
        line.append(best)
      }
      (before, last) = (last, line)
    }
    return last.last ?? 0
  }
}
