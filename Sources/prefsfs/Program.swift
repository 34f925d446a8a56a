import FUSEDriver
import Glibc
import PreferenceClient
import PreferenceModel
import PreferenceSearch
import PreferenceServer
import PropertyList
import SystemCalls

/// Builds a mount from its parts, runs it, and turns the outcome into an exit status.
enum Program {
  static func run(_ words: [String]) -> ExitStatus {
    if let status = Guard.run(words) { return ExitStatus(rawValue: status) ?? .failure }
    let log = Log("prefsfs")
    Inheritance.ignoreWriteSignals()
    if Background.isChild {
      Background.closeInherited()
      Inheritance.reset()
    }
    let options: Options
    do {
      options = try Options(words)
    } catch {
      log("\(error); see prefsfs -h")
      return .usage
    }
    if let text = options.text {
      print(text, terminator: "")
      return .success
    }
    if options.isForeground || Background.isChild {
      defer { log.flush() }
      return mount(options, log)
    }
    do {
      return ExitStatus(rawValue: try Background.start()) ?? .failure
    } catch {
      log("\(error)")
      return .failure
    }
  }

  private static func mount(_ options: Options, _ log: Log) -> ExitStatus {
    blockEndingSignals()
    if !options.unused.isEmpty {
      log("without effect here: -o \(options.unused.joined(separator: ","))")
    }
    do {
      if options.isSystem, geteuid() != 0 {
        log("--system: only root manages the machine's places")
        return .failure
      }
      let point = try MountPoint.prepare(options.mountPoint)
      let surroundings = Surroundings(store: options.store ?? options.source)
      if options.store ?? options.source != nil {
        try MountPoint.checkSource(surroundings.userDirectory)
      }
      try MountPoint.check(
        point,
        holds: [
          surroundings.userDirectory, surroundings.systemDirectory, surroundings.stateDirectory,
        ])
      return try serve(options, surroundings, at: point, log)
    } catch let error as EngineError {
      log("\(error)")
      return error.reason == .owned ? .storeInUse : .storeUnusable
    } catch {
      log("\(error)")
      return error is MountPoint.Unusable ? .mountPointUnusable : .failure
    }
  }

  private static func serve(
    _ options: Options, _ surroundings: Surroundings, at point: String, _ log: Log
  ) throws -> ExitStatus {
    let member = try member(options, surroundings, log)
    defer { member.close() }
    let lists = ListReader(member)
    let engine = SearchEngine(
      places: member, arguments: ArgumentDomain.parse(options.arguments), lists: lists)
    let control = StoreControl(
      engine, owner: member, layout: StoreLayout(surroundings), about: about(options, point))
    let store = MountedStore(
      engine: engine, control: control, services: member, lists: lists,
      volume: surroundings.userDirectory)
    let driver = try Driver(
      store, options.isSystem ? .machinePlaces : .preferences, options: options.tree,
      ownership: options.ownership,
      arguments: fuseArguments(options, surroundings)
    ) { log($0) }
    try driver.mount(at: point)
    if Background.isChild { Background.ready(log) }
    try driver.run()
    return .success
  }

  /// What `status.json` says of this mount.
  private static func about(_ options: Options, _ point: String) -> ValueDictionary {
    [
      "version": .string(Help.version), "mount point": .string(point),
      "process": .integer(WideInteger(UInt64(getpid()))),
      "arguments": .dictionary(ArgumentDomain.parse(options.arguments)),
    ]
  }

  /// Joins the store, and becomes its owner if there is none. A read-only mount takes no lock then,
  /// so it never keeps another process from owning the store.
  private static func member(
    _ options: Options, _ surroundings: Surroundings, _ log: Log
  ) throws(EngineError) -> Member {
    let (isReadOnly, writeback) = (options.isReadOnly, options.writeback)
    let own: @Sendable () throws(EngineError) -> Member.Owned = { () throws(EngineError) in
      let store = try OwnedStore(surroundings, readOnly: isReadOnly, writeback: writeback) {
        log($0)
      }
      return Member.Owned(
        places: store.places, loaded: { store.loaded }, close: { store.close() })
    }
    return try Member(surroundings, readOnly: isReadOnly, Member.Ways(own: own)) { log($0) }
  }

  private static func fuseArguments(_ options: Options, _ surroundings: Surroundings) -> [String] {
    // In an -o option a comma ends the name, and a backslash quotes the character after it.
    let name = surroundings.userDirectory.replacing("\\", with: "\\\\")
      .replacing(",", with: "\\,")
    let passedOn = ["default_permissions", "fsname=\(name)", "subtype=prefsfs"] + options.passedOn
    return ["-o", passedOn.joined(separator: ",")] + (options.isDebugging ? ["-d"] : [])
  }
}
