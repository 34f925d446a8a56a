import FUSEDriver
import Glibc
import PreferenceClient
import PreferenceControl
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The process that serves a mount: builds the driver from its parts, runs it, and turns the
/// outcome into an exit status. A guard has started it.
struct DriverProgram {
  private let options: Options
  private let line: GuardLine
  private let log: Log

  init(_ options: Options, _ line: GuardLine, _ log: Log) {
    (self.options, self.line, self.log) = (options, line, log)
  }

  /// Mounts, or goes on with the mount of a predecessor, and returns when the mount is over or
  /// handed over.
  func run(goesOn: Bool) -> ExitStatus {
    Memory.keepLittle()
    blockEndingSignals()
    if goesOn, Guard.isInBackground { log.moveToSystemLog() }
    let status = serve(goesOn: goesOn)
    line.reportEnd(status.rawValue)
    line.finishHandover()
    return status
  }

  private func serve(goesOn: Bool) -> ExitStatus {
    do {
      return try goesOn ? goOn() : begin()
    } catch let error as EngineError {
      log("\(error)")
      return error.reason == .owned ? .storeInUse : .storeUnusable
    } catch {
      log("\(error)")
      return error is MountPoint.Unusable ? .mountPointUnusable : .failure
    }
  }

  private func begin() throws -> ExitStatus {
    if !options.unused.isEmpty {
      log("ignored: -o \(options.unused.joined(separator: ","))")
    }
    if options.isSystem, geteuid() != 0 {
      log("--system: only root manages the machine's places")
      return .failure
    }
    // Until the mount is there, nobody but the user waits for this process.
    CallWatch.begin { [log] sentence in
      log("\(sentence)")
      log.flush()
      _exit(ExitStatus.storeUnusable.rawValue)
    }
    let point = try MountPoint.prepare(options.mountPoint, covers: options.covers)
    let surroundings = Surroundings(store: options.store ?? options.source)
    if options.store ?? options.source != nil {
      try MountPoint.checkSource(surroundings.userDirectory)
    }
    try MountPoint.requireLists(surroundings.userDirectory)
    try MountPoint.check(
      point,
      holds: [
        surroundings.userDirectory, surroundings.systemDirectory, surroundings.stateDirectory,
      ] + surroundings.socketPaths.map(Files.parent))
    let now = AbsoluteTime(Timestamp.now)
    let ages: ValueDictionary = ["mounted since": .date(now), "driver since": .date(now)]
    return try serve(surroundings, at: point, client: nil, ages) { driver throws(DriverError) in
      if !options.covers, MountPoint.hidesFiles(point) {
        log("\(point): the files that are there are hidden until the mount ends")
      }
      CallWatch.end()
      try driver.mount(at: point)
      if Guard.isInBackground { Background.detach(log) }
    }
  }

  /// Touches nothing in the mount, because a request to it would wait for this process.
  private func goOn() throws -> ExitStatus {
    let predecessor = try Predecessor()
    return try serve(
      Surroundings(store: predecessor.store), at: predecessor.mountPoint,
      client: predecessor.client, predecessor.ages
    ) { driver throws(DriverError) in
      try driver.adopt(predecessor)
    }
  }

  private func serve(
    _ surroundings: Surroundings, at point: String, client: UInt64?,
    _ ages: ValueDictionary, _ start: (Driver) throws(DriverError) -> Void
  ) throws -> ExitStatus {
    let services = try connect(surroundings, client)
    defer { services.close() }
    let lists = ListReader(services, askedWithEach: KeptSuites.domain)
    let engine = SearchEngine(
      places: services, arguments: ArgumentDomain.parse(options.arguments), lists: lists)
    let control = StoreControl(
      engine, owner: services, layout: StoreLayout(surroundings), about: about(point, ages))
    let store = MountedStore(
      engine: engine, control: control, services: services, lists: lists, changes: services,
      registered: engine, volume: surroundings.userDirectory)
    let driver = try Driver(
      store, options.isSystem ? .machinePlaces : .preferences, options: options.tree,
      ownership: options.ownership, arguments: fuseArguments(surroundings), line: line
    ) { [log] in log($0) }
    try start(driver)
    if try driver.run() == .unmounted, !options.isReadOnly { services.saveAll() }
    return .success
  }

  /// What `status.json` says of this mount.
  private func about(_ point: String, _ ages: ValueDictionary) -> ValueDictionary {
    var about: ValueDictionary = [
      "version": .string(Help.version), "mount point": .string(point),
      "process": .integer(WideInteger(UInt64(getpid()))),
      "arguments": .dictionary(ArgumentDomain.parse(options.arguments)),
    ]
    for (key, value) in ages { about[key] = value }
    return about
  }

  /// Connects to the owner of the store, and starts one (`prefsd`) if there is none.
  private func connect(
    _ surroundings: Surroundings, _ client: UInt64?
  ) throws(EngineError) -> StoreClient {
    var owner = OwnerOptions()
    owner.writeback = options.writeback
    var manner = ClientManner()
    (manner.isReadOnly, manner.hasLoop, manner.client) = (options.isReadOnly, true, client)
    let hasStarted = Atomic(false)
    manner.start = { [owner] () throws(EngineError) in
      hasStarted.store(true, ordering: .relaxed)
      try OwnerProgram.start(surroundings, owner)
    }
    let services = try StoreClient(surroundings, manner) { [log] in log($0) }
    if options.writeback != nil, !hasStarted.load(ordering: .relaxed) {
      log("ignored: -o writeback=, because prefsd serves the store already")
    }
    return services
  }

  private func fuseArguments(_ surroundings: Surroundings) -> [String] {
    // In an -o option a comma ends the name, and a backslash quotes the character after it.
    let name = surroundings.userDirectory.replacing("\\", with: "\\\\")
      .replacing(",", with: "\\,")
    let passedOn = ["default_permissions", "fsname=\(name)", "subtype=prefsfs"] + options.passedOn
    return ["-o", passedOn.joined(separator: ",")] + (options.isDebugging ? ["-d"] : [])
  }
}
