import Glibc
import SystemCalls

/// Prints a line for each figure: ours, the ratio to each peer's, and whether the goals are met. It
/// appends all that was measured to the file that PREFSFS_BENCH_FIGURES names, if that is set.
final class Report {
  enum Unit: String {
    case nanoseconds = "ns"
    case perSecond = "1/s"
    case bytes = "bytes"
    case times = "times"
  }

  /// What was measured of one subject, one value for each round.
  struct Samples {
    var subject: String
    var values: [Double]
  }

  private let kept: Descriptor?

  /// - Parameter title: the heading of the figures.
  init(_ title: String) {
    print("\n\(title)")
    let path = getenv("PREFSFS_BENCH_FIGURES").map { String(cString: $0) }
    kept = path.flatMap { try? Descriptor(opening: $0, O_WRONLY | O_CREAT | O_APPEND, mode: 0o644) }
  }

  /// Adds a figure. The first samples are those of prefsfs, the others those of its peers.
  func add(_ title: String, _ unit: Unit, _ samples: [Samples], goals: [Goal] = []) {
    guard let own = samples.first else { return }
    let spread = Spread(own.values)
    let peers = samples.dropFirst().map { peer in
      "\(ratio(spread.median / Spread(peer.values).median)) of \(peer.subject)"
    }
    let line =
      "  " + pad(title, 40) + pad(text(spread.median, unit), 10)
      + pad("\(text(spread.low, unit)) to \(text(spread.high, unit))", 22)
      + peers.joined(separator: ", ")
    let verdicts = goals.compactMap { $0.verdict(samples) { text($0, unit) } }
    print(line + (verdicts.isEmpty ? "" : "  [\(verdicts.joined(separator: "; "))]"))
    for sample in samples { keep(title, unit, sample) }
  }

  private func keep(_ title: String, _ unit: Unit, _ samples: Samples) {
    let spread = Spread(samples.values)
    let fields = [title, samples.subject, unit.rawValue] + spread.all.map { "\($0)" }
    let line = fields.joined(separator: "\t") + "\n"
    do { try kept?.write(Array(line.utf8)) } catch {
      print("the figure could not be kept: \(error)")
    }
  }

  private func text(_ value: Double, _ unit: Unit) -> String {
    switch unit {
    case .nanoseconds:
      value < 1e3
        ? "\(Int(value)) ns"
        : value < 1e6 ? "\(tenths(value / 1e3)) us" : "\(tenths(value / 1e6)) ms"
    case .perSecond: value < 1e6 ? "\(Int(value / 1e3)) k/s" : "\(tenths(value / 1e6)) M/s"
    case .bytes: "\(Int(value)) B"
    case .times: "\(tenths(value))"
    }
  }

  private func tenths(_ value: Double) -> Double { (value * 10).rounded() / 10 }
  private func ratio(_ value: Double) -> String { "x\((value * 100).rounded() / 100)" }

  private func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }
}

/// The median of some samples, and their lower and upper quartiles.
struct Spread {
  let low: Double
  let median: Double
  let high: Double

  init(_ values: [Double]) {
    let sorted = values.sorted()
    func at(_ part: Double) -> Double {
      sorted.isEmpty ? .nan : sorted[Int((Double(sorted.count - 1) * part).rounded())]
    }
    (low, median, high) = (at(0.25), at(0.5), at(0.75))
  }

  /// Median, lower and upper quartile, in the order of a figure's line.
  var all: [Double] { [median, low, high] }
}
