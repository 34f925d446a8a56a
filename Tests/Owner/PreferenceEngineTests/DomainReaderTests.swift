import Foundation
import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls
import Testing

private let author = Author(number: 5)

@Suite("Readers of a domain") struct DomainReaderTests {
  private func set(_ value: Value) -> Intent { .set("K", "d", value, .unknown) }

  @Test("a look-up that began before a posted change does not bring the old value back")
  func older() throws {
    let places = StagedPlaces()
    let engine = SearchEngine(places: places, usesLanguages: false, usesSchemas: false)
    let reader = engine.reader(of: "d")
    engine.post([set(1)], by: author) { _ in }
    let (found, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    places.whenFound.withLock {
      $0 = {
        found.signal()
        goOn.wait()
      }
    }
    let slow = try WorkerThread(name: "slow") { _ = try? reader.value("K") }
    found.wait()
    let read = Mutex<[Value?]>([])
    places.whenShown.withLock {
      $0 = {
        let first = (try? reader.value("K")) ?? nil
        goOn.signal()
        slow.join()
        let second = (try? reader.value("K")) ?? nil
        read.withLock { $0 = [first, second] }
      }
    }
    engine.post([set(2)], by: author) { _ in }
    #expect(read.withLock { $0 } == [2, 2])
    #expect(try reader.value("K") == 2)
  }
}

/// Places that do something at two moments, once each: when the key was found, and when a posted
/// change is shown, which only the end of `post` tells the reader of.
private final class StagedPlaces: PersistentPlaces {
  let whenFound = Mutex<(@Sendable () -> Void)?>(nil)
  let whenShown = Mutex<(@Sendable () -> Void)?>(nil)
  private let places = MemoryPlaces()

  private func run(_ stage: borrowing Mutex<(@Sendable () -> Void)?>) {
    let body = stage.withLock { stage in
      defer { stage = nil }
      return stage
    }
    body?()
  }

  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    let found = try places.find(key, at: location)
    if location == Location(.user, "d") { run(whenFound) }
    return found
  }

  func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    do throws(EngineError) {
      _ = try places.apply(intents, by: author)
    } catch {
      return done(error)
    }
    run(whenShown)
    done(nil)
  }

  func isLoaded(_ location: Location) -> Bool { true }

  func keys(at location: Location) throws(EngineError) -> [Key] { try places.keys(at: location) }

  func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try places.modified(location)
  }

  func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    try places.snapshots(of: locations)
  }

  func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try places.domains(in: place)
  }

  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try places.apply(intents, by: author)
  }

  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void) {}

  var isReadOnly: Bool { false }
  var isFresh: Bool { true }
}
