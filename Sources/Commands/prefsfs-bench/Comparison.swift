import Foundation

/// Compares two files of figures, as `scripts/bench --against` makes them.
enum Comparison {
  private struct Figure {
    var title: String
    var unit: String
    var medians: [Double] = []
  }

  /// Prints each figure that both files have: the median over the rounds, its range, the ratio, and
  /// whether the ranges of the two files lie apart.
  static func run(_ before: String, _ after: String) {
    let (old, new) = (figures(before), figures(after))
    print("median of the rounds (lowest to highest); ratio: after by before\n")
    for (key, now) in new.sorted(by: { $0.key < $1.key }) {
      guard let then = old[key], let line = compare(then, now) else { continue }
      print(line)
    }
  }

  private static func compare(_ old: Figure, _ new: Figure) -> String? {
    guard let oldLow = old.medians.min(), let oldHigh = old.medians.max(),
      let newLow = new.medians.min(), let newHigh = new.medians.max()
    else { return nil }
    let (before, after) = (Spread(old.medians).median, Spread(new.medians).median)
    let apart = newHigh < oldLow ? "  lower" : newLow > oldHigh ? "  higher" : ""
    return String(
      format: "%@ (%@): %.4g (%.4g to %.4g) -> %.4g (%.4g to %.4g)  x%.2f%@", new.title, new.unit,
      before, oldLow, oldHigh, after, newLow, newHigh, after / before, apart)
  }

  private static func figures(_ path: String) -> [String: Figure] {
    var figures: [String: Figure] = [:]
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 6, let median = Double(fields[3]) else { continue }
      let title = "\(fields[0]), \(fields[1])"
      figures[title, default: Figure(title: title, unit: fields[2])].medians.append(median)
    }
    return figures
  }
}
