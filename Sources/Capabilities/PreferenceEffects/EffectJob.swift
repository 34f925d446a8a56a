import EffectiveDocuments
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// One time that a rule is carried out.
///
/// Threads: any. `perform` waits for disks, for another process that carries out the rule, and for
/// the command.
public struct EffectJob: Sendable {
  let rule: EffectRule
  let digests: EffectValues
  let values: [EffectKey: Value]
  let changes: [EffectKey]
  let isOver: Bool

  /// How many of the keys that it was for are kept.
  private static let mostKeys = 3
  private static let unsaved = "its state cannot be saved"

  /// - Parameters:
  ///   - digests: what the rule is carried out for.
  ///   - values: the values of its keys.
  ///   - done: what it was last carried out for; nil means nothing. If that is no different, the
  ///     command gets all values.
  ///   - isOver: whether a file is replaced that prefsfs has not written.
  public init(
    _ rule: EffectRule, _ digests: EffectValues, _ values: [EffectKey: Value],
    since done: EffectValues?, isOver: Bool = false
  ) {
    (self.rule, self.digests, self.values, self.isOver) = (rule, digests, values, isOver)
    let changes = digests.changes(since: done)
    self.changes = changes.isEmpty ? values.keys.sorted() : changes
  }

  /// Carries out the rule, and notes how that went durably. A command whose success could not be
  /// noted, for lack of room, does not run.
  /// - Returns: why it has failed; nil if it has not.
  public func perform(
    _ file: EffectStateFile, _ layout: StoreLayout, log: @Sendable (LogLine) -> Void
  ) -> String? {
    do throws(EffectProblem) {
      let lock = try EffectProblem.wrapping(Self.unsaved) { () throws(EngineError) in
        try file.lock(rule: rule.name)
      }
      defer { lock.unlock() }
      return try performAlone(file, layout, log)
    } catch {
      return error.sentence
    }
  }

  private func performAlone(
    _ file: EffectStateFile, _ layout: StoreLayout, _ log: @Sendable (LogLine) -> Void
  ) throws(EffectProblem) -> String? {
    var report: ValueDictionary = [
      "time": .string(Timestamp.now.text), "count": .integer(WideInteger(Int64(changes.count))),
      "keys": .array(changes.prefix(Self.mostKeys).map { .string($0.line) }),
    ]
    var written: [Digest]?
    do throws(EffectProblem) {
      written = try write(file, layout, &report)
      try command(file, &report, written, log)
    } catch {
      report["problem"] = .string(error.sentence)
    }
    let problem = report["problem"]?.string
    try note(file) { end(&$0, report, written) }
    return problem
  }

  /// Changes what is known of the rule to how that went.
  private func end(
    _ known: inout EffectState.Rule, _ report: ValueDictionary, _ written: [Digest]?
  ) {
    known.last = report
    known.file = written ?? known.file
    if report["problem"] == nil { known.done = digests }
  }

  /// Changes what is known of the rule, durably.
  @discardableResult
  private func note(
    _ file: EffectStateFile, _ body: (inout EffectState.Rule) -> Void = { _ in }
  ) throws(EffectProblem) -> EffectState {
    try EffectProblem.wrapping(Self.unsaved) { () throws(EngineError) in
      try file.update { body(&$0.rules[rule.name, default: EffectState.Rule()]) }
    }
  }

  /// Writes the file of the rule.
  /// - Returns: what the file has; nil if the rule writes none.
  private func write(
    _ file: EffectStateFile, _ layout: StoreLayout, _ report: inout ValueDictionary
  ) throws(EffectProblem) -> [Digest]? {
    let writer = EffectWriter(layout)
    guard let path = writer.path(of: rule) else { return nil }
    let entries = values.sorted { $0.key < $1.key }.map { (key: $0.key.key, value: $0.value) }
    let bytes = EffectiveDocument.bytes(of: ValueDictionary(entries), as: rule.form)
    let target = try writer.target(path)
    let state = try note(file)
    if !isOver {
      let known = state.rules[rule.name]
      let written = known?.path == target.path ? known?.file ?? [] : []
      try writer.check(target, bytes, rule: rule.name, known: written, key: state.key)
    }
    // After a crash the file may be the old one or the new one.
    let new = Digest(of: bytes, key: state.key)
    let old = target.present.map { [Digest(of: $0, key: state.key)] } ?? []
    try note(file) { ($0.file, $0.path) = (old + [new], target.path) }
    try writer.write(bytes, to: target)
    report["file"] = .string(path)
    return [new]
  }

  private func command(
    _ file: EffectStateFile, _ report: inout ValueDictionary, _ written: [Digest]?,
    _ log: @Sendable (LogLine) -> Void
  ) throws(EffectProblem) {
    guard let command = rule.command else { return }
    var success = report
    (success["end"], success["milliseconds"]) = ("status 0", .integer(WideInteger(Int64.max)))
    try EffectProblem.wrapping(Self.unsaved) { () throws(EngineError) in
      try file.checkRoom {
        end(&$0.rules[rule.name, default: EffectState.Rule()], success, written)
      }
    }
    let input = EffectInput(changes, values)
    let variables = ["PREFS_EFFECT=\(rule.name)", "PREFS_CHANGED=\(input.lines)"]
    let outcome = try EffectProblem.wrapping("the command could not be started") {
      () throws(SystemError) in
      try EffectRunner.run(
        command, input: input.document, variables: variables, timeout: rule.timeout)
    }
    report["end"] = .string(outcome.end)
    report["milliseconds"] = .integer(WideInteger(outcome.milliseconds))
    let text = String(decoding: outcome.output, as: UTF8.self)
    for line in text.split(separator: "\n") { log(.notice("\(rule.name): \(line)")) }
    if outcome.status != 0 { throw EffectProblem("the command failed: \(outcome.end)") }
  }
}
