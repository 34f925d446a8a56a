import Glibc
import PreferenceCloud
import PreferenceEngine
import PreferenceModel
import StoreAccess
import Synchronization
import SystemCalls

/// Runs the program that carries the cloud's changes (`prefs-cloud`) while a cloud is configured,
/// and tells the engine which keys belong in the cloud.
///
/// Promises: without `Endpoints` no program runs, and no thread but for the moment of a look at the
/// settings. A program that ends is started again after a pause (`RestartPauses`): after 1 s where
/// it has lived for 10 s. `stop` ends the program. The program ends too when
/// this process does, however that happens: its standard input ends then.
///
/// Threads: one of its own, while a cloud is configured; any thread may call. Lock: `state`, held
/// for a look. The thread reads lists; nobody waits for it but `stop`.
final class CloudKeeper: Sendable {
  private struct State {
    var isRunning = false
    var isStopping = false
    var hasNewSettings = false
  }

  private let places: LocalPlaces
  private let store: String
  private let log: @Sendable (LogLine) -> Void
  private let onProcess: @Sendable (pid_t?) -> Void
  private let bell: Wakeup
  private let state = Monitor(State())

  /// Begins to look after the cloud of the places.
  /// - Parameters:
  ///   - store: the directory of the user's lists.
  ///   - onProcess: is called, by the thread, with the number of the program's process when it has
  ///     been started, and with nil when it has ended.
  init(
    _ places: LocalPlaces, store: String, log: @escaping @Sendable (LogLine) -> Void,
    onProcess: @escaping @Sendable (pid_t?) -> Void
  ) throws(SystemError) {
    (self.places, self.store, self.log, self.onProcess) = (places, store, log, onProcess)
    bell = try Wakeup()
    places.observe(except: nil) { [weak self] notice in
      guard notice.changeset.concerns(CloudSettings.domain) else { return }
      let isAbout = notice.changeset.locations.contains {
        $0.domain == CloudSettings.domain && $0.place != .cloudRecords
      }
      if isAbout { self?.look() }
    }
    look()
  }

  /// Ends the program and the thread.
  func stop() {
    state.change { $0.isStopping = true }
    bell.ring()
    _ = state.wait { $0.isRunning ? nil : true }
  }

  /// Has the thread read the settings again.
  private func look() {
    let starts = state.change { state in
      state.hasNewSettings = true
      guard !state.isRunning, !state.isStopping else { return false }
      state.isRunning = true
      return true
    }
    bell.ring()
    guard starts else { return }
    do throws(SystemError) {
      try WorkerThread(name: "prefs-cloud") { [self] in run() }.detach()
    } catch {
      state.change { $0.isRunning = false }
      log("the cloud is not looked after: \(error)")
    }
  }

  // MARK: - The thread

  private func run() {
    var (isConfigured, pauses) = (false, RestartPauses())
    while true {
      let isNew = state.withLock { state in
        defer { state.hasNewSettings = false }
        return state.hasNewSettings
      }
      if isNew { isConfigured = readSettings() }
      let ends = state.change { state in
        guard state.isStopping || !(isConfigured || state.hasNewSettings) else { return false }
        state.isRunning = false
        return true
      }
      if ends { return }
      guard isConfigured else { continue }
      let began = Instant.now
      let status = runProgram()
      guard let status else { continue }
      log("prefs-cloud ended with status \(status); it is started again")
      let pause = pauses.next(afterRunOf: Int64(Instant.now.milliseconds(after: began)))
      // A ring that came while the program ended has been heard already.
      let isAwaited = state.withLock { $0.isStopping || $0.hasNewSettings }
      if !isAwaited { bell.wait(until: Instant.now.advanced(milliseconds: pause)) }
    }
  }

  private func readSettings() -> Bool {
    do throws(EngineError) {
      let settings = try CloudSettings(of: places)
      var isConfigured = settings.isConfigured && !places.isReadOnly
      if isConfigured { isConfigured = try isMeant() }
      places.setCloudKeys(isConfigured ? settings.keys : nil, local: settings.local)
      return isConfigured
    } catch {
      log("the settings of the cloud cannot be read: \(error)")
      return false
    }
  }

  /// Whether the settings are for this store. The machine's are for the user's own store alone, and
  /// not for a backup that is mounted beside it.
  private func isMeant() throws(EngineError) -> Bool {
    if Files.canonicalPath(store) == Files.canonicalPath(Surroundings().userDirectory) {
      return true
    }
    let own = [Place.host, .user].map { Location($0, CloudSettings.domain) }
    return try places.findFirst(CloudSettings.Name.endpoints.key, in: own) != nil
  }

  /// Runs the program until it ends, or is no longer wanted.
  /// - Returns: its exit status; nil where it was ended.
  private func runProgram() -> Int32? {
    do throws(SystemError) {
      let program = try LinkedChild.start(
        SiblingProgram.path("prefs-cloud", variable: "PREFSFS_CLOUD"),
        ["--owned", "--store", store])
      onProcess(program.process)
      defer { onProcess(nil) }
      while true {
        bell.wait(until: nil, or: program.endDescriptor)
        if let status = program.status() { return status }
        let mayGoOn = state.withLock { !$0.isStopping && !$0.hasNewSettings }
        if !mayGoOn, !isStillConfigured() {
          program.end()
          return nil
        }
      }
    } catch {
      log("prefs-cloud could not be started: \(error)")
      return 1
    }
  }

  /// Whether the program is still wanted, after a ring.
  private func isStillConfigured() -> Bool {
    if state.withLock({ $0.isStopping }) { return false }
    state.change { $0.hasNewSettings = false }
    if readSettings() { return true }
    state.change { $0.hasNewSettings = true }
    return false
  }
}
