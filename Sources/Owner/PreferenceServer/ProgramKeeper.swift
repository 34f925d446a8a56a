import Glibc
import PreferenceEngine
import PreferenceModel
import SystemCalls

/// Runs a program of this project as long as something in the store asks for it (`KeptProgram`).
///
/// Promises: where nothing asks for it no program runs, and no thread but for the moment of a look.
/// A program that ends is started again after a pause (`RestartPauses`): after 1 s where it has lived
/// for 10 s. `stop` ends the program. The program ends too when this process does, however that
/// happens: its standard input ends then.
///
/// Threads: one of its own, while the program is wanted; any thread may call. Lock: `state`, held
/// for a look. The thread reads lists; nobody waits for it but `stop`.
final class ProgramKeeper: Sendable {
  private struct State {
    var isRunning = false
    var isStopping = false
    var hasNewSettings = false
  }

  private let program: KeptProgram
  private let log: @Sendable (LogLine) -> Void
  private let onProcess: @Sendable (pid_t, _ isThere: Bool) -> Void
  private let wakeup: Wakeup
  private let state = Monitor(State())

  /// Begins to look after the program.
  /// - Parameter onProcess: is called, by the thread, with the number of the program's process when
  ///   it has been started, and when it has ended.
  init(
    _ program: KeptProgram, for places: LocalPlaces, log: @escaping @Sendable (LogLine) -> Void,
    onProcess: @escaping @Sendable (pid_t, _ isThere: Bool) -> Void
  ) throws(SystemError) {
    (self.program, self.log, self.onProcess) = (program, log, onProcess)
    wakeup = try Wakeup()
    places.observe(except: nil) { [weak self] notice in
      if program.isConcerned(notice.changeset) { self?.look() }
    }
    look()
  }

  /// Ends the program and the thread.
  func stop() {
    state.change { $0.isStopping = true }
    wakeup.signal()
    _ = state.wait { $0.isRunning ? nil : true }
  }

  /// Has the thread ask again whether the program is wanted.
  private func look() {
    let starts = state.change { state in
      state.hasNewSettings = true
      guard !state.isRunning, !state.isStopping else { return false }
      state.isRunning = true
      return true
    }
    wakeup.signal()
    guard starts else { return }
    do throws(SystemError) {
      try WorkerThread(name: program.thread) { [self] in run() }.detach()
    } catch {
      state.change { $0.isRunning = false }
      log("\(program.name) is not looked after: \(error)")
    }
  }

  // MARK: - The thread

  private func run() {
    var (isWanted, pauses) = (false, RestartPauses())
    while true {
      let isNew = state.withLock { state in
        defer { state.hasNewSettings = false }
        return state.hasNewSettings
      }
      if isNew { isWanted = asks(isWanted) }
      let ends = state.change { state in
        guard state.isStopping || !(isWanted || state.hasNewSettings) else { return false }
        state.isRunning = false
        return true
      }
      if ends { return }
      guard isWanted else { continue }
      let began = Instant.now
      let status = runProgram()
      guard let status else { continue }
      log("\(program.name) ended with status \(status); it is started again")
      let pause = pauses.next(afterRunOf: Int64(Instant.now.milliseconds(after: began)))
      // A signal that came while the program ended has been seen already.
      let isAwaited = state.withLock { $0.isStopping || $0.hasNewSettings }
      if !isAwaited { wakeup.wait(until: Instant.now.advanced(milliseconds: pause)) }
    }
  }

  /// Whether the program is wanted; while that cannot be read, what was known before.
  private func asks(_ known: Bool) -> Bool {
    do throws(EngineError) {
      return try program.isWanted()
    } catch {
      log("whether \(program.name) is needed cannot be read: \(error)")
      return known
    }
  }

  /// Runs the program until it ends, or is no longer wanted.
  /// - Returns: its exit status; nil where it was ended.
  private func runProgram() -> Int32? {
    do throws(SystemError) {
      var child = try LinkedChild.start(program.path, program.arguments)
      let process = child.process
      onProcess(process, true)
      defer { onProcess(process, false) }
      var isEnding = false
      while true {
        wakeup.wait(until: nil, or: child.endDescriptor)
        if let status = child.status() { return isEnding ? nil : status }
        let mayGoOn = state.withLock { !$0.isStopping && !$0.hasNewSettings }
        if isEnding, state.withLock({ $0.isStopping }) { return nil }
        if mayGoOn || isEnding || isStillWanted() { continue }
        guard program.endsByItself else {
          child.end()
          return nil
        }
        child.endInput()
        isEnding = true
        if state.withLock({ $0.isStopping }) { return nil }
      }
    } catch {
      log("\(program.name) could not be started: \(error)")
      return 1
    }
  }

  /// Whether the program is still wanted, after a signal.
  private func isStillWanted() -> Bool {
    if state.withLock({ $0.isStopping }) { return false }
    state.change { $0.hasNewSettings = false }
    if asks(true) { return true }
    state.change { $0.hasNewSettings = true }
    return false
  }
}
