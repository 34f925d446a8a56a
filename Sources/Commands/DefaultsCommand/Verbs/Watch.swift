import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

/// `watch`: prints a line for each change of a value that programs read, until it is interrupted.
enum Watch {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = arguments.isEmpty ? nil : try Target(&arguments)
    let key = arguments.isEmpty ? nil : Key(try arguments.removeNext())
    try arguments.end()
    try Refusal.wrapping("Could not watch \(target?.name ?? "the preferences"); exiting") {
      () throws(EngineError) in
      let store = try StoreView(target?.directory, isBrief: false)
      var watcher = Watcher(
        store.engine, domain: target?.domain, key: key,
        isAppleText: arguments.options.isAppleText)
      try watcher.run()
    }
  }
}

/// Compares the values that programs read with those that it reported last, and prints the
/// differences.
struct Watcher {
  private let engine: SearchEngine
  /// The only domain to watch; nil means every domain.
  private let domain: DomainName?
  /// The only key to watch; nil means every key.
  private let key: Key?
  private let isAppleText: Bool
  /// The values that were reported last.
  private var known: [DomainName: ValueDictionary] = [:]

  init(_ engine: SearchEngine, domain: DomainName?, key: Key?, isAppleText: Bool) {
    (self.engine, self.domain, self.key, self.isAppleText) = (engine, domain, key, isAppleText)
  }

  /// Prints changes until a write to standard output fails, or its reader ends, which ends the
  /// process.
  mutating func run() throws(EngineError) {
    let arrived = Monitor<[Changeset]>([])
    engine.observe(except: nil) { notice in arrived.change { $0.append(notice.changeset) } }
    let domains = if let domain { [domain] } else { Array(try engine.domains()) }
    for domain in domains {
      try readable { watcher throws(EngineError) in try watcher.learn(domain) }
    }
    // A script can wait for this line: from here on, every change is reported.
    Output.note("watching")
    Output.endWithReader()
    // It asks the owner alone from here on, and may wait for days.
    CallWatch.end()
    while Output.failure.withLock({ $0 == nil }) {
      let changesets = arrived.wait { changesets -> [Changeset]? in
        defer { changesets = [] }
        return changesets.isEmpty ? nil : changesets
      }
      for changeset in changesets ?? [] {
        for item in changeset.items {
          try readable { watcher throws(EngineError) in try watcher.see(item) }
        }
      }
    }
  }

  /// Performs the body. If a list cannot be read, it prints the error and goes on with the others;
  /// it throws if the owner is gone or does not answer.
  private mutating func readable(
    _ body: (inout Watcher) throws(EngineError) -> Void
  ) throws(EngineError) {
    do throws(EngineError) {
      try body(&self)
    } catch  where error.reason != .system(.timedOut) && error.reason != .ownerGone {
      Output.note("\(error)")
    }
  }

  /// Reads the values of a domain. This is necessary to watch it, because a client is notified only
  /// of changes in the locations that it has read.
  private mutating func learn(_ domain: DomainName) throws(EngineError) {
    var keys = try engine.keys(of: domain)
    if self.domain != nil { keys.formUnion(try engine.inheritedKeys(of: domain)) }
    for key in keys where self.key == nil || self.key == key {
      known[domain, default: [:]][key] = try engine.resolve(key, in: domain)?.value
    }
  }

  /// Reports what a change of one location has changed for programs. A change of the global domain
  /// or of a suite can change what programs read in the watched domain.
  private mutating func see(_ item: Changeset.Item) throws(EngineError) {
    let place = item.location
    let seenFrom = domain ?? place.domain
    guard
      place.domain == seenFrom || place.domain == .global
        || engine.inherits(seenFrom, from: place.domain)
    else { return }
    if let key = item.edit.key {
      try see(key, seenFrom, place)
    } else if case .createDomain = item.edit, known[seenFrom] == nil {
      for key in try engine.keys(of: seenFrom) { try see(key, seenFrom, place) }
    }
  }

  /// Reads a key again, and prints a line if its value differs from the one that was reported last.
  /// - Parameter place: the location that has changed.
  private mutating func see(
    _ key: Key, _ domain: DomainName, _ place: Location
  ) throws(EngineError) {
    guard self.key == nil || self.key == key else { return }
    let (old, new) = (known[domain]?[key], try engine.resolve(key, in: domain)?.value)
    guard old != new else { return }
    known[domain, default: [:]][key] = new
    let lines = ValueDescription.lines(from: old, to: new, isAppleText)
    let source = place.source(seenFrom: domain)
    Output.write(line: "\(source) \(domain) \(key): \(lines.old) -> \(lines.new)")
  }
}

extension Watch {
  static let manual = VerbManual(
    group: .look, summary: "shows each change as it is made",
    more: [
      .init("watch [DOMAIN [KEY]]", "shows each change of a value that programs read")
    ],
    text: """
      It runs until Ctrl-C, or until the reader of its output ends. "watching" on
      standard error says that from then on every change is shown.
      """,
    options: [VerbManual.appleText],
    example: """
      $ prefs watch com.example.editor
      user com.example.editor TabWidth: 4 -> 8
      """)
}
