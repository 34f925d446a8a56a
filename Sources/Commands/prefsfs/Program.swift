import FUSEDriver
import Glibc
import SystemCalls

/// Parses the command line, and runs the guard or the driver of a mount, or prints what was asked
/// for.
enum Program {
  static func run(_ words: [String]) -> ExitStatus {
    Inheritance.occupyStandardStreams()
    if words.first == Predecessor.question {
      return words.count == 2 && Predecessor.takesOver(fromFormat: words[1]) ? .success : .failure
    }
    let log = Log("prefsfs")
    Inheritance.ignoreWriteSignals()
    let role = words.first.flatMap(Guard.Role.init(rawValue:))
    let words = role == nil ? words : Array(words.dropFirst())
    if Background.isChild, role == nil {
      Background.closeInherited()
      Inheritance.reset()
    }
    let options: Options
    do {
      options = try Options(words, isMountHelper: isMountHelper)
    } catch {
      log("\(error); see prefsfs -h")
      return .usage
    }
    if let text = options.text {
      print(text, terminator: "")
      return .success
    }
    if options.isFake { return .success }
    if options.upgrades || options.showsStatus || options.showsList {
      return RunningMount(options.mountPoint, log).run(options)
    }
    defer { log.flush() }
    switch role {
    case .guardian: return guardMount(words, role, log)
    case nil where options.isForeground || Background.isChild:
      return guardMount(words, role, log)
    case .driver, .successor:
      return DriverProgram(options, GuardLine(words) { log($0) }, log).run(
        goesOn: role == .successor)
    default: break
    }
    do {
      return ExitStatus(rawValue: try Background.start()) ?? .failure
    } catch {
      log("\(error)")
      return .failure
    }
  }

  /// Whether mount(8) has called, for `mount -t prefsfs` or `-t fuse.prefsfs`.
  private static var isMountHelper: Bool {
    let name = CommandLine.arguments[0].split(separator: "/").last ?? ""
    return name == "mount.prefsfs" || name == "mount.fuse.prefsfs"
  }

  /// Runs the guard of a mount, which starts the driver.
  private static func guardMount(
    _ words: [String], _ role: Guard.Role?, _ log: Log
  ) -> ExitStatus {
    do throws(SystemError) {
      if role == .guardian, Guard.isInBackground { log.moveToSystemLog() }
      let isChild = Background.isChild && role == nil
      if isChild { Guard.beginInBackground() }
      let guardian = try Guard(words) {
        log($0)
      } becameReady: {
        guard isChild else { return }
        Background.detach(log)
        Background.ready()
      }
      let status = role == .guardian ? guardian.goOn() : try guardian.run()
      return ExitStatus(rawValue: status) ?? .failure
    } catch {
      log("\(error)")
      return .failure
    }
  }
}
