/// What a figure should be.
enum Goal {
  /// At most so many times the figure of another subject, and so much more, in the figure's unit.
  case times(Double, of: String, plus: Double = 0)
  /// At most this, in the figure's unit; of the first subject, or of the one that is named.
  case atMost(Double, of: String? = nil)
  /// At least this, in the figure's unit.
  case atLeast(Double)

  /// The subject whose figure the goal is about; nil means the first one.
  private var subject: String? {
    if case .atMost(_, let subject) = self { subject } else { nil }
  }

  /// What it is compared with: a number, or the figure of a peer. It is nil if the peer was not
  /// measured.
  private func limit(_ medians: [String: Double]) -> Double? {
    switch self {
    case .times(let factor, let peer, let extra): medians[peer].map { $0 * factor + extra }
    case .atMost(let most, _): most
    case .atLeast(let least): least
    }
  }

  private var isAtLeast: Bool { if case .atLeast = self { true } else { false } }

  /// The goal, and whether the figure meets it: `at most x0.6 of bindfs: met`. nil where the peer
  /// that it names was not measured.
  /// - Parameters:
  ///   - samples: what was measured, our own first.
  ///   - text: how a value of the figure's unit is printed.
  func verdict(_ samples: [Report.Samples], _ text: (Double) -> String) -> String? {
    let medians = Dictionary(
      samples.map { ($0.subject, Spread($0.values).median) },
      uniquingKeysWith: { first, _ in first })
    guard let name = subject ?? samples.first?.subject, let own = medians[name],
      let limit = limit(medians)
    else { return nil }
    let isMet = isAtLeast ? own >= limit : own <= limit
    return "\(sentence(text)): \(isMet ? "met" : "MISSED")"
  }

  private func sentence(_ text: (Double) -> String) -> String {
    switch self {
    case .times(let factor, let peer, let extra):
      "at most x\(factor) of \(peer)" + (extra == 0 ? "" : " and \(text(extra))")
    case .atMost(let most, nil): "at most \(text(most))"
    case .atMost(let most, let subject?): "\(subject) at most \(text(most))"
    case .atLeast(let least): "at least \(text(least))"
    }
  }
}
