import Glibc
import PreferenceClient
import PreferenceEffects
import PreferenceModel
import StoreAccess
import SystemCalls

/// The program that carries out the rules of a store (`prefs effects --serve`). The store's owner
/// starts it where there is a rule, and has it end by its standard input.
public enum EffectProgram {
  /// Serves until standard input ends, and the commands that run then have ended.
  /// - Returns: the exit status.
  public static func serve(_ surroundings: Surroundings) -> Int32 {
    Inheritance.ignoreWriteSignals()
    prepareCommands()
    let log = Log("prefs-effects")
    log.moveToSystemLog()
    defer { log.flush() }
    do throws(EngineError) {
      let layout = StoreLayout(surroundings)
      // The one of an earlier owner may still wait for its last command.
      let lock = try EffectStateFile(layout).lockServing()
      defer { lock.unlock() }
      var manner = ClientManner()
      // It starts no owner: without one nothing is carried out.
      (manner.isLasting, manner.hearsAll) = (true, true)
      let places = try StoreClient(surroundings, manner) { log($0) }
      let server = try EffectServer(places, layout) { log($0) }
      try EngineError.wrapping { () throws(SystemError) in
        try LinkedChild.whenInputEnds(server.end)
      }
      server.run()
      return 0
    } catch {
      log("\(error)")
      return 1
    }
  }

  /// Gives this process what the commands of rules inherit: the home as directory, and umask 077.
  public static func prepareCommands() {
    umask(0o077)
    if chdir(Surroundings.home) != 0 { _ = chdir("/") }
    // It is for the owner, if that is a service.
    unsetenv("NOTIFY_SOCKET")
  }
}
