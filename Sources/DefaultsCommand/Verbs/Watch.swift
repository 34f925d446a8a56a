import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

/// `watch`: a line for each change of an effective value, until it is interrupted.
enum Watch {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = arguments.isEmpty ? nil : try Target(&arguments)
    let key = arguments.isEmpty ? nil : Key(try arguments.take())
    try arguments.end()
    do throws(EngineError) {
      let store = try StoreView(target?.directory, isBrief: false)
      var watcher = Watcher(
        store.engine, domain: target?.domain, key: key,
        isAppleText: arguments.options.isAppleText)
      try watcher.run()
    } catch {
      throw Refusal("Could not watch \(target?.name ?? "the preferences"); exiting", error)
    }
  }
}

/// What a watcher knows of effective values, and what it says when one is another.
struct Watcher {
  private let engine: SearchEngine
  private let domain: DomainName?
  private let key: Key?
  private let isAppleText: Bool
  private var known: [DomainName: ValueDictionary] = [:]

  init(_ engine: SearchEngine, domain: DomainName?, key: Key?, isAppleText: Bool) {
    (self.engine, self.domain, self.key, self.isAppleText) = (engine, domain, key, isAppleText)
  }

  /// Until nobody takes the lines any more.
  mutating func run() throws(EngineError) {
    let arrived = Monitor<[Changeset]>([])
    engine.observe(except: nil) { notice in arrived.change { $0.append(notice.changeset) } }
    let domains = if let domain { [domain] } else { Array(try engine.domains()) }
    for domain in domains {
      try readable { watcher throws(EngineError) in try watcher.learn(domain) }
    }
    // Whoever starts a watcher and then makes a change wants to know from when on it is seen.
    Output.write("defaults: watching\n", to: .errors)
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

  /// A list that cannot be read is said so; the others go on.
  private mutating func readable(
    _ body: (inout Watcher) throws(EngineError) -> Void
  ) throws(EngineError) {
    do throws(EngineError) {
      try body(&self)
    } catch  where error.reason != .system(.timedOut) && error.reason != .ownerGone {
      Output.write("defaults: \(error)\n", to: .errors)
    }
  }

  /// What nobody has read is watched by nobody: there is no news of it.
  private mutating func learn(_ domain: DomainName) throws(EngineError) {
    var keys = try engine.keys(of: domain)
    if self.domain != nil { keys.formUnion(try engine.inheritedKeys()) }
    for key in keys where self.key == nil || self.key == key {
      known[domain, default: [:]][key] = try engine.resolve(key, in: domain)?.value
    }
  }

  private mutating func see(_ item: Changeset.Item) throws(EngineError) {
    let place = item.location
    let seenFrom = domain ?? place.domain
    guard place.domain == seenFrom || place.domain == .global else { return }
    if let key = item.edit.key {
      try see(key, seenFrom, place)
    } else if case .createDomain = item.edit, known[seenFrom] == nil {
      for key in try engine.keys(of: seenFrom) { try see(key, seenFrom, place) }
    }
  }

  private mutating func see(
    _ key: Key, _ domain: DomainName, _ place: Location
  ) throws(EngineError) {
    guard self.key == nil || self.key == key else { return }
    let (old, new) = (known[domain]?[key], try engine.resolve(key, in: domain)?.value)
    guard old != new else { return }
    known[domain, default: [:]][key] = new
    let values = [old, new].map { value in
      value.map { ValueDescription.line(of: $0, isAppleText) } ?? "(none)"
    }
    let source = place.source(seenFrom: domain)
    Output.write("\(source) \(domain) \(key): \(values[0]) -> \(values[1])\n")
  }
}
