import PreferenceClient
import PreferenceModel
import PreferenceProtocol
import PreferenceSearch
import PropertyList
import SystemCalls

/// A store, as this command asks it.
struct StoreView {
  let engine: SearchEngine
  let places: Member
  let author = Author.unique()

  /// - Parameter directory: the store's; nil: the user's own.
  init(_ directory: String? = nil, isBrief: Bool = true) throws(EngineError) {
    let machine = Surroundings().systemDirectory + "/"
    if let directory, !Files.isDirectory(directory), !directory.hasPrefix(machine) {
      throw EngineError(.noSuchDomain, "there is no directory \(directory)")
    }
    places = try Member(clientOf: Surroundings(store: directory), isBrief: isBrief) { line in
      Output.write("defaults: \(line)\n", to: .errors)
    }
    engine = SearchEngine(places: places)
  }

  /// Carries out a transaction, and returns when everybody sees it.
  /// - Returns: what changed.
  /// - Parameter target: where it is a path, its list is written too.
  @discardableResult
  func apply(_ intents: [Intent], _ target: Target? = nil) throws(EngineError) -> Changeset {
    let changeset = try engine.apply(intents, by: author)
    if !changeset.isEmpty { try engine.awaitMounts(through: changeset.version) }
    // A list that was named by its path, or is waited for, is looked at in the next line of a script.
    if let target, target.isPath || target.isSynchronous {
      for location in target.locations { try places.save(location) }
    }
    return changeset
  }
}

/// A domain of the command line, as it is in its store.
struct DomainView {
  let target: Target
  let store: StoreView

  init(_ target: Target) throws(EngineError) {
    self.init(target, try StoreView(target.directory))
  }

  init(_ target: Target, _ store: StoreView) { (self.target, self.store) = (target, store) }

  /// A key's value, and which place it is from.
  func find(_ key: Key) throws(EngineError) -> (stored: StoredValue, location: Location)? {
    for location in target.locations {
      if let stored = try store.places.find(key, at: location) { return (stored, location) }
    }
    return nil
  }

  /// All keys, at one moment.
  func contents() throws(EngineError) -> ValueDictionary {
    var contents: ValueDictionary = [:]
    for domain in try store.places.snapshots(of: target.locations).reversed() {
      contents = contents.merging(domain.values)
    }
    return contents
  }

  /// All keys; nil, and a message, where a list cannot be read: other domains can.
  func readableContents() -> ValueDictionary? {
    do throws(Refusal) {
      return try target.reading { () throws(EngineError) in try contents() }
    } catch {
      _ = error.report()
      return nil
    }
  }

  /// The intent that sets a key there.
  func setting(_ key: Key, _ value: Value, _ text: WrittenText = .unknown) -> Intent {
    if let place = target.place {
      return .edit(Location(place, target.domain), .set(key, value, text))
    }
    return .setOwn(key, target.domain, value, text)
  }

  /// The intent that removes a key from the location where it was found.
  func removing(_ key: Key, from location: Location) -> Intent {
    target.place == nil ? .removeOwn(key, target.domain) : .edit(location, .remove(key))
  }

  /// Reads a key, and sets what the body makes of it (nil: removes it). Of two who do so at once each sees
  /// what the other has made.
  func update(
    _ key: Key, _ body: (Value?) throws(Refusal) -> Value?
  ) throws(Refusal) {
    for _ in 0..<Self.mostAttempts {
      let found = try target.writing { () throws(EngineError) in try find(key) }
      let value = try body(found?.stored.value)
      if try commit(key, value, insteadOf: found) { return }
    }
    throw target.couldNotWrite(nil)
  }

  private static let mostAttempts = 1000

  /// - Returns: false where the key is another by now.
  private func commit(
    _ key: Key, _ value: Value?, insteadOf found: (stored: StoredValue, location: Location)?
  ) throws(Refusal) -> Bool {
    let location = found?.location ?? Location(target.place ?? .user, target.domain)
    let change = value.map { setting(key, $0) } ?? removing(key, from: location)
    do throws(EngineError) {
      try store.apply([.expect(key, location, found?.stored.value), change], target)
      return true
    } catch  where error.reason == .changedMeanwhile {
      return false
    } catch {
      throw target.couldNotWrite(error)
    }
  }
}

extension EngineError {
  /// Whether there is no such thing, or can be none of that name.
  var isMissing: Bool { [.noSuchDomain, .noSuchKey, .invalidDomain].contains(reason) }
}

extension Target {
  /// Makes the directory of a list that was named by its path, as far as it may.
  func makeDirectory() throws(Refusal) {
    guard let directory, !Files.isDirectory(directory) else { return }
    try writing { () throws(EngineError) in
      try EngineError.wrapping { () throws(SystemError) in
        try Files.makeDirectories(directory, mode: 0o755)
      }
    }
  }

  /// What a write that failed says.
  func couldNotWrite(_ error: EngineError?) -> Refusal {
    Refusal("Could not write domain \(name); exiting", error)
  }

  /// A part of a write.
  @discardableResult
  func writing<Result>(
    _ body: () throws(EngineError) -> Result
  ) throws(Refusal) -> Result {
    do throws(EngineError) { return try body() } catch { throw couldNotWrite(error) }
  }

  /// A part of a read.
  /// - Parameter missing: what it says where there is no such thing; nil: that there is no such domain.
  func reading<Result>(
    orSaying missing: Refusal? = nil, _ body: () throws(EngineError) -> Result
  ) throws(Refusal) -> Result {
    do throws(EngineError) {
      return try body()
    } catch  where error.isMissing {
      throw missing ?? doesNotExist
    } catch {
      throw Refusal("Could not read domain \(name); exiting", error)
    }
  }

  /// There is no such key.
  func lacks(_ key: String) -> Refusal {
    Refusal("\nThe domain/default pair of (\(pairName), \(key)) does not exist\n")
  }

  /// There is no such domain.
  var doesNotExist: Refusal { Refusal("\nDomain \(name) does not exist\n") }
}
