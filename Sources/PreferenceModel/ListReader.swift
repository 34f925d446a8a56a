import SystemCalls

/// Has lists read by other threads, for a thread that must not wait for one: a list may lie on a file system that
/// does not answer, or be a link into the mount which that thread serves.
///
/// Promises: no call waits. Whoever finds that a domain is not at hand has it read (`read`), and asks again when
/// `whenRead`'s body was called, or after `patience`. Until it calls `forget`, nothing need be looked at on a disk
/// then: what was read is at hand, and of the rest `finding` says why it is not.
///
/// Threads: any. One lock, for a look; the places are asked without it.
public final class ListReader: Sendable {
  /// What is known of a list that is not at hand.
  public struct Finding: Sendable {
    /// When it last changed; nil where it is not there, or does not answer.
    public var modified: Timestamp?
    /// Why it could not be read; nil where it is not there.
    public var error: EngineError?
  }

  /// How it stands with the lists of a domain that were not all at hand.
  private enum Look {
    case reading(since: Instant)
    case done([Place: Finding])
    /// So many others are being read that this one was left.
    case refused
  }

  private struct State {
    var looks: [DomainName: Look] = [:]
    var told: (@Sendable () -> Void)?
  }

  private let places: any PersistentPlaces
  private let threads = BlockingThreads(name: "prefs-list", most: 32)
  private let state = Monitor(State())

  /// Milliseconds after which a list that is still being read is hung.
  public static let patience: Int64 = 5000

  /// A reader of the places' lists.
  public init(_ places: any PersistentPlaces) { self.places = places }

  /// The body is called, by any thread, whenever a domain has been read.
  public func whenRead(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.told = body }
  }

  // MARK: - Reading

  /// Whether a look-up in the domain waits for no list, neither of its own nor of the global domain. Cost: a look
  /// at each of their places.
  public func isAtHand(_ domain: DomainName) -> Bool {
    isKnown(domain) && (domain == .global || isKnown(.global))
  }

  private func isKnown(_ domain: DomainName) -> Bool {
    if SearchList.persistentPlaces.allSatisfy({ places.isLoaded(Location($0, domain)) }) {
      return true
    }
    return state.withLock { state in
      switch state.looks[domain] {
      case .reading(let since): Self.isLate(since)
      case .done, .refused: true
      case nil: false
      }
    }
  }

  private static func isLate(_ since: Instant) -> Bool {
    Instant.now.nanoseconds(after: since) >= patience * 1_000_000
  }

  /// Has the lists that a look-up in the domain needs read.
  public func read(_ domain: DomainName) {
    for domain in domain == .global ? [domain] : [domain, .global] where !isKnown(domain) {
      let isNew = state.withLock { state in
        if state.looks[domain] != nil { return false }
        state.looks[domain] = .reading(since: .now)
        return true
      }
      guard isNew, !threads.run({ [self] in look(domain) }) else { continue }
      end(domain, .refused)
    }
  }

  /// Reads the lists of a domain that is there.
  private func look(_ domain: DomainName) {
    var findings: [Place: Finding] = [:]
    for place in SearchList.persistentPlaces {
      do throws(EngineError) {
        guard let time = try places.modified(Location(place, domain)) else { continue }
        findings[place] = Finding(modified: time)
      } catch {
        findings[place] = Finding(error: error)
      }
    }
    for place in SearchList.persistentPlaces where !findings.isEmpty {
      do throws(EngineError) {
        _ = try places.keys(at: Location(place, domain))
      } catch {
        findings[place, default: Finding()].error = error
      }
    }
    end(domain, .done(findings))
  }

  private func end(_ domain: DomainName, _ look: Look) {
    let told = state.withLock { state in
      state.looks[domain] = look
      return state.told
    }
    told?()
  }

  /// Those who waited have asked: what is not at hand is read anew for the next.
  public func forget() {
    state.withLock { state in
      guard !state.looks.isEmpty else { return }
      state.looks = state.looks.filter { if case .reading = $0.value { true } else { false } }
    }
  }

  // MARK: - What was found

  /// What is known of a list that could not be read, or is not there; nil: ask the places. Cost: a lock and a hash
  /// look-up; one look more where lists are being read.
  public func finding(_ location: Location) -> Finding? {
    let finding = state.withLock { state -> Finding? in
      switch state.looks[location.domain] {
      case .reading(let since):
        Self.isLate(since)
          ? Finding(error: Self.hung(location, "where nothing answers; is it hung?")) : nil
      case .refused:
        Finding(error: Self.hung(location, "beside too many others that do not answer"))
      case .done(let findings): findings[location.place] ?? Finding()
      case nil: nil
      }
    }
    guard let finding, !places.isLoaded(location) else { return nil }
    return finding
  }

  private static func hung(_ location: Location, _ circumstances: String) -> EngineError {
    EngineError(
      .unreadable, domain: location.domain,
      "a list of the domain lies on a file system \(circumstances)")
  }

  /// Throws where a list that the intents need could not be read. A change does not look at the lists of any user,
  /// unless it is about one.
  public func refuse(_ intents: [Intent]) throws(EngineError) {
    var locations: Set<Location> = [Location(.managed, .global)]
    for intent in intents {
      for domain in intent.domains {
        for place in [Place.managed, .host, .user] { locations.insert(Location(place, domain)) }
      }
      if case .edit(let location, _) = intent { locations.insert(location) }
    }
    for location in locations {
      if let error = finding(location)?.error { throw error }
    }
  }
}
