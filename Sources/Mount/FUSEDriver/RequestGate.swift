import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import StoreAccess
import SystemCalls

/// Holds requests that cannot be carried out yet; the loop goes on with others. The tree has not
/// seen a held request, so each is carried out once. A request waits for
/// - lists that are not in memory, or that a change would have to look at, while other threads read
///   them. A list that is not read within `ListReader.patience` counts as unreadable: the request
///   is carried out then, and gets that error;
/// - a large listing, while another thread makes it: a minute, then EIO;
/// - what a report must read first, while another thread prepares it: 10 s for each part, then EIO;
/// - the owner of the store, if the request is a change and the owner does not answer: 5 s, then
///   ETIMEDOUT. Changes that come later wait behind it. Requests of the announcer's thread do not
///   wait, because they change nothing.
///
/// Threads: the loop's alone.
final class RequestGate {
  private enum Obstacle: Equatable {
    case lists
    /// The directory, the job that makes its listing (nil where a list cannot be read), and the
    /// version of the entries that the listing shows.
    case listing(NodeID, Job<Listing?>, UInt64)
    case owner
    /// The job that prepares a report, and the names of what the request has waited for.
    case preparation(Job<Void>, [String])

    /// Milliseconds that a request waits for it.
    var patience: Int64 {
      switch self {
      // 100 ms more than the reader's patience, so that the reader calls the lists late by then.
      case .lists: ListReader.patience + 100
      case .listing: 60_000
      case .owner: 5000
      case .preparation: 10_000
      }
    }
  }

  private struct Waiting {
    var buffer: fuse_buf
    var obstacle: Obstacle
    var deadline: Instant

    init(_ buffer: fuse_buf, _ obstacle: Obstacle, _ now: Instant) {
      (self.buffer, self.obstacle) = (buffer, obstacle)
      deadline = now.advanced(milliseconds: obstacle.patience)
    }
  }

  private let lists: ListReader
  private let listingThreads = BlockingThreads(name: "prefs-listing", most: 4)
  private let reportThreads = BlockingThreads(name: "prefs-report", most: 2)
  private let hasMade: @Sendable () -> Void
  private var waiting: [Waiting] = []
  /// `ListReader.readCount` when the held requests were last looked at.
  private var lastCount: UInt64 = 0
  /// When the owner was last asked for the requests that wait for it.
  private var lastLook = Instant.now
  /// Whether a request that would have to wait is refused: the mount ends.
  private var isRefusing = false

  /// Milliseconds that the loop itself waits for the owner before the first request is held.
  private static let ownerPatience: Int64 = 20
  /// Milliseconds between two checks whether the owner answers.
  private static let pause: Int64 = 50

  /// - Parameter hasMade: called, by any thread, when `serve` must be called because a listing has
  ///   been made, or a report prepared.
  init(_ lists: ListReader, hasMade: @escaping @Sendable () -> Void) {
    (self.lists, self.hasMade) = (lists, hasMade)
  }

  deinit {
    for request in waiting { free(request.buffer.mem) }
  }

  /// When `serve` must be called even if nothing has come.
  var deadline: Instant? {
    let look = waitsForOwner ? lastLook.advanced(milliseconds: Self.pause) : nil
    return (waiting.map(\.deadline) + [look].compactMap { $0 }).min()
  }

  /// Whether a request is held.
  var isHolding: Bool { !waiting.isEmpty }

  /// Whether a list has been read for which a request is held. Cost: two loads.
  var hasNews: Bool { !waiting.isEmpty && lists.readCount != lastCount }

  private var waitsForOwner: Bool { waiting.contains { $0.obstacle == .owner } }

  // MARK: - Holding

  /// Takes over a request that must wait, together with its buffer.
  /// - Returns: whether it did; `buffer` is empty then.
  func keeps(_ buffer: inout fuse_buf, _ driver: Driver, _ now: Instant) -> Bool {
    guard let request = RequestHeader(buffer), let obstacle = obstacle(request, driver) else {
      return false
    }
    waiting.append(Waiting(buffer, obstacle, now))
    buffer = fuse_buf()
    if isRefusing { refuse(driver) } else { tellHeld(driver) }
    return true
  }

  /// Tells the invalidator of which nodes requests are held.
  private func tellHeld(_ driver: Driver) {
    driver.invalidator.setHeld(Set(waiting.compactMap { RequestHeader($0.buffer)?.node }))
  }

  /// Returns what the request must wait for, and has it read or made; nil means nothing.
  /// - Parameters:
  ///   - listing: the version of the listing that the request has waited for.
  ///   - prepared: what it has waited for. It may need more then: the domain that a shortened name
  ///     means is known when the names of the domains are.
  ///   - isLate: whether it has waited for lists long enough.
  ///   - answers: whether the owner answers; nil if it is asked.
  private func obstacle(
    _ request: RequestHeader, since listing: UInt64? = nil, prepared: [String] = [],
    isLate: Bool = false, _ driver: Driver, answers: Bool? = nil
  ) -> Obstacle? {
    if !isLate {
      let subjects = request.subjects
      guard areAtHand(subjects, request.operation, driver.forest) else { return .lists }
      if let missing = missingListing(request, since: listing, driver.forest) { return missing }
      if let missing = missingPreparation(subjects, since: prepared, driver) { return missing }
    }
    guard request.operation.isChange, driver.announcer.purpose(of: request.thread) == nil else {
      return nil
    }
    let isAnswering =
      answers
      ?? (!waitsForOwner && driver.store.services.isAnswering(within: Self.ownerPatience))
    return isAnswering ? nil : .owner
  }

  /// Returns whether every list that the request needs is in memory, or known to be unreadable. Has
  /// the others read. A truncation does not wait for what the change after it needs, but has it
  /// prepared: the text that comes next must not come after the truncation's 50 ms.
  private func areAtHand(
    _ subjects: [RequestHeader.Subject], _ operation: Operation, _ forest: Forest
  ) -> Bool {
    var areAtHand = true
    for (node, name) in subjects {
      for domain in forest[node].domainsNeeded(at: node, name) {
        let changed = operation.isChange ? [Location(.user, domain)] : []
        if lists.isAtHand(domain, changing: changed) { continue }
        lists.read(domain, changing: changed)
        if lists.isAtHand(domain, changing: changed) { continue }
        if operation != .setAttributes || !lists.isAtHand(domain) { areAtHand = false }
      }
    }
    return areAtHand
  }

  /// Has the large listing made that the request needs and the tree does not have, unless another
  /// request waits for it already. Returns nil where it needs none, or none but the one that it has
  /// waited for, or none can be made. One that could not be made is tried by the tree then, which
  /// finds the error.
  private func missingListing(
    _ request: RequestHeader, since waited: UInt64?, _ forest: Forest
  ) -> Obstacle? {
    guard waited == nil, let cookie = request.listingOffset,
      let plan = forest.listingNeeded(request.node, after: cookie, since: nil)
    else { return nil }
    for other in waiting.map(\.obstacle) {
      if case .listing(request.node, _, let version) = other, version >= plan.version {
        return other
      }
    }
    return Job<Listing?>.begin(on: listingThreads, told: hasMade) { try? plan.make() }
      .map { .listing(request.node, $0, plan.version) }
  }

  /// Has prepared what the request needs; nil if it needs nothing, or nothing but what it has waited
  /// for, or no thread can do it.
  private func missingPreparation(
    _ subjects: [RequestHeader.Subject], since waited: [String], _ driver: Driver
  ) -> Obstacle? {
    for (node, name) in subjects {
      guard let need = driver.forest[node].preparationNeeded(at: node, name),
        !waited.contains(need.name)
      else { continue }
      return Job<Void>.begin(on: reportThreads, told: hasMade, need.prepare)
        .map { .preparation($0, waited + [need.name]) }
    }
    return nil
  }

  /// Returns whether a look-up of the name in the directory, or without a name a listing of it,
  /// needs to wait for no list.
  /// - Parameter known: domains whose lists are at hand; set to those of this look-up.
  func isAtHand(
    _ parent: NodeID, _ name: [UInt8]?, _ forest: Forest, _ known: inout [DomainName]
  ) -> Bool {
    let needed = forest[parent].domainsNeeded(at: parent, name)
    if needed == known { return true }
    guard needed.allSatisfy(lists.isAtHand) else { return false }
    known = needed
    return true
  }

  // MARK: - Serving

  /// Carries out the held requests that need not wait any longer, in the order of their arrival.
  func serveHeld(_ driver: Driver, _ now: Instant) {
    guard !waiting.isEmpty else { return lists.forget() }
    let count = lists.readCount
    let hasRead = count != lastCount
    lastCount = count
    let answers = ownerAnswers(driver, now)
    let all = waiting
    waiting = []
    for var request in all { serve(&request, driver, now, hasRead: hasRead, answers) }
    tellHeld(driver)
    lists.forget(isAwaited: waiting.contains { $0.obstacle == .lists })
  }

  /// Returns whether the owner answers, if a request waits for that; nil if nobody asked it now.
  private func ownerAnswers(_ driver: Driver, _ now: Instant) -> Bool? {
    guard waitsForOwner, lastLook.advanced(milliseconds: Self.pause) <= now else { return nil }
    defer { lastLook = .now }
    return driver.store.services.isAnswering(within: 1)
  }

  private func serve(
    _ request: inout Waiting, _ driver: Driver, _ now: Instant, hasRead: Bool, _ answers: Bool?
  ) {
    guard let header = RequestHeader(request.buffer) else { return }
    let isLate = request.deadline <= now
    var listing: UInt64?
    var prepared: [String] = []
    switch request.obstacle {
    // The loop calls this for other reasons too, often before a list has been read.
    case .lists where !hasRead && !isLate: return waiting.append(request)
    case .lists: break
    case .listing(let node, let job, let version):
      if isLate { return end(&request, .inputOutput, driver) }
      guard let made = job.made else { return waiting.append(request) }
      if let made { driver.forest.put(made, of: node, version: version) }
      listing = version
    case .preparation(let job, let waited):
      if isLate { return end(&request, .inputOutput, driver) }
      guard job.made != nil else { return waiting.append(request) }
      prepared = waited
    case .owner where answers != true:
      return isLate ? end(&request, .timedOut, driver) : waiting.append(request)
    case .owner: break
    }
    let next = obstacle(
      header, since: listing, prepared: prepared, isLate: isLate, driver, answers: answers)
    if let next {
      if next != request.obstacle { request = Waiting(request.buffer, next, now) }
      return waiting.append(request)
    }
    driver.process(&request.buffer, listing: listing)
    free(request.buffer.mem)
  }

  private func end(_ request: inout Waiting, _ refusal: Errno, _ driver: Driver) {
    driver.process(&request.buffer, refusing: refusal)
    free(request.buffer.mem)
  }

  /// The mount ends: refuses every held request, and from now on each that would have to wait,
  /// because the kernel holds the invalidator in locks of requests.
  func beginRefusing(_ driver: Driver) {
    isRefusing = true
    refuse(driver)
  }

  /// Answers every held request with an error: ETIMEDOUT where it waits for the owner, else EIO.
  private func refuse(_ driver: Driver) {
    let all = waiting
    waiting = []
    for var request in all {
      end(&request, request.obstacle == .owner ? .timedOut : .inputOutput, driver)
    }
    tellHeld(driver)
  }
}
