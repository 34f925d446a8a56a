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

  /// Carries out the rule, and notes how that went durably.
  /// - Returns: how it went. If only the note could not be saved, `problem` is nil, and the second
  ///   value says why.
  public func perform(
    _ file: EffectStateFile, _ layout: StoreLayout, log: @Sendable (LogLine) -> Void
  ) -> (run: EffectState.Run, unsaved: SystemError?) {
    var run = EffectState.Run()
    run.keys = changes.prefix(Self.mostKeys).map(\.line)
    run.count = changes.count
    do throws(EffectProblem) {
      // Until the end of this function.
      let lock = try Self.stated { () throws(SystemError) in try file.lock(rule: rule.name) }
      defer { lock.unlock() }
      try write(file, layout, &run)
      try command(&run, log)
    } catch {
      run.problem = error.sentence
    }
    let done = run
    do throws(SystemError) {
      try file.update { state in
        var known = state.rules[rule.name] ?? EffectState.Rule()
        known.last = done
        if done.problem == nil { known.done = digests }
        state.rules[rule.name] = known
      }
      return (run, nil)
    } catch {
      return (run, error)
    }
  }

  private static func stated<Result: ~Copyable>(
    _ body: () throws(SystemError) -> Result
  ) throws(EffectProblem) -> Result {
    do throws(SystemError) {
      return try body()
    } catch {
      throw EffectProblem("its state cannot be saved: \(error)")
    }
  }

  private func write(
    _ file: EffectStateFile, _ layout: StoreLayout, _ run: inout EffectState.Run
  ) throws(EffectProblem) {
    let writer = EffectWriter(layout)
    guard let path = writer.path(of: rule) else { return }
    var entries: ValueDictionary = [:]
    for (name, value) in values.sorted(by: { $0.key < $1.key }) { entries[name.key] = value }
    let bytes = EffectiveDocument.bytes(of: entries, as: rule.form)
    let target = try writer.target(path)
    let state = try Self.stated { () throws(SystemError) in try file.update { _ in } }
    let known = state.rules[rule.name]
    if !isOver {
      let written = known?.path == target.path ? known?.file ?? [] : []
      try writer.check(target, bytes, rule: rule.name, known: written, key: state.key)
    }
    // Saved before and after: after a crash in between, the file is one of the two.
    let new = Digest(of: bytes, key: state.key)
    let old = target.present.map { [Digest(of: $0, key: state.key)] } ?? []
    try note(old + [new], target.path, file)
    try writer.write(bytes, to: target)
    try note([new], target.path, file)
    run.file = path
  }

  private func note(
    _ digests: [Digest], _ path: String, _ file: EffectStateFile
  ) throws(EffectProblem) {
    _ = try Self.stated { () throws(SystemError) in
      try file.update { state in
        var known = state.rules[rule.name] ?? EffectState.Rule()
        (known.file, known.path) = (digests, path)
        state.rules[rule.name] = known
      }
    }
  }

  private func command(
    _ run: inout EffectState.Run, _ log: @Sendable (LogLine) -> Void
  ) throws(EffectProblem) {
    guard let command = rule.command else { return }
    let input = EffectInput(changes, values)
    let variables = ["PREFS_EFFECT=\(rule.name)", "PREFS_CHANGED=\(input.lines)"]
    let outcome: EffectRunner.Outcome
    do throws(SystemError) {
      outcome = try EffectRunner.run(
        command, input: input.document, variables: variables, timeout: rule.timeout)
    } catch {
      throw EffectProblem("the command could not be started: \(error)")
    }
    (run.end, run.milliseconds) = (outcome.end, outcome.milliseconds)
    let text = String(decoding: outcome.output, as: UTF8.self)
    for line in text.split(separator: "\n") { log(.notice("\(rule.name): \(line)")) }
    if outcome.status != 0 { throw EffectProblem("the command failed: \(outcome.end)") }
  }
}
