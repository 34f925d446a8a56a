import FUSEDriver
import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceStore
import SystemCalls

/// Composes the floors, runs them, and says how it went.
enum Program {
  static func run(_ words: [String]) -> ExitStatus {
    let log = Log()
    if Background.isChild { Background.closeInherited() }
    let options: Options
    do {
      options = try Options(words)
    } catch {
      log("\(error); see prefsfs -h")
      return .usage
    }
    if options.showsHelp || options.showsVersion {
      print(options.showsHelp ? Help.text : Help.version, terminator: options.showsHelp ? "" : "\n")
      return .success
    }
    if options.isForeground || Background.isChild { return mount(options, log) }
    do {
      return try Background.start()
    } catch {
      log("\(error)")
      return .failure
    }
  }

  private static func mount(_ options: Options, _ log: Log) -> ExitStatus {
    blockEndingSignals()
    do {
      let point = try MountPoint.prepare(options.mountPoint)
      let layout = Surroundings.layout(store: options.store ?? options.source)
      try MountPoint.check(point, holds: layout.directories)
      return try serve(options, layout, at: point, log)
    } catch let error as EngineError {
      log("\(error)")
      return error.reason == .owned ? .storeInUse : .storeUnusable
    } catch {
      log("\(error)")
      return error is MountPoint.Unusable ? .mountPointUnusable : .failure
    }
  }

  private static func serve(
    _ options: Options, _ layout: StoreLayout, at point: String, _ log: Log
  ) throws -> ExitStatus {
    let store = try Store(layout, readOnly: options.isReadOnly) { log($0) }
    let engine = try LocalEngine(
      store: store, arguments: ArgumentDomain.parse(options.arguments),
      writeback: options.writeback
    ) { log($0) }
    defer { engine.close() }
    let driver = try Driver(
      engine: engine, options: options.tree, owner: options.owner,
      arguments: fuseArguments(options, layout)
    ) { log($0) }
    try driver.mount(at: point)
    if Background.isChild { Background.ready(log) }
    try driver.run()
    return .success
  }

  private static func fuseArguments(_ options: Options, _ layout: StoreLayout) -> [String] {
    // A comma would end the name inside of -o.
    let name = layout.userDirectory.replacing(",", with: "\\,")
    let passedOn = ["default_permissions", "fsname=\(name)", "subtype=prefsfs"] + options.passedOn
    return ["-o", passedOn.joined(separator: ",")] + (options.isDebugging ? ["-d"] : [])
  }
}
