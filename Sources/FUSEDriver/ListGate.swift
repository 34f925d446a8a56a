import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

/// Holds requests that need a list which is not in memory, while other threads read that list;
/// changes of a list of which the owner has not checked for a moment that it can be changed; and
/// requests for a large listing, while another thread makes it; the loop goes on with other
/// requests. The tree has not seen a held request, so each is carried out once.
///
/// A list that is not read within `ListReader.patience` counts as unreadable: the request is
/// carried out then, and gets that error. A listing that is not made within a minute is an error
/// too.
///
/// Threads: the loop's alone.
final class ListGate {
  private struct Waiting {
    var buffer: fuse_buf
    var deadline: Instant
    /// The version of the directory's entries that a listing must show, from the moment on at which
    /// nothing but the listing is missing; nil until then.
    var listing: UInt64?
  }

  private let lists: ListReader
  private let listings = ListingMaker()
  private let listingMade: @Sendable () -> Void
  private var waiting: [Waiting] = []
  /// `ListReader.readCount` when the held requests were last looked at.
  private var lastCount: UInt64 = 0

  /// Milliseconds after which a listing that is still being made is an error.
  private static let listingPatience: Int64 = 60_000

  /// - Parameter listingMade: called, by any thread, when `serve` must be called because a listing
  ///   has been made.
  init(_ lists: ListReader, listingMade: @escaping @Sendable () -> Void) {
    (self.lists, self.listingMade) = (lists, listingMade)
  }

  deinit {
    for request in waiting { free(request.buffer.mem) }
  }

  /// When `serve` must be called even if no list has been read.
  var deadline: Instant? { waiting.map(\.deadline).min() }

  /// Whether a list has been read for which a request is held. Cost: two loads.
  var hasNews: Bool { !waiting.isEmpty && lists.readCount != lastCount }

  /// Whether a request is held that a predecessor may have carried out. Nothing that is due may be
  /// done before it.
  var holdsResent: Bool { waiting.contains { RequestHeader($0.buffer)?.isResent == true } }

  /// Takes over a request that needs a list which is not in memory, or a large listing, together
  /// with its buffer, and has the list read or the listing made.
  /// - Returns: whether it did; `buffer` is empty then.
  func keeps(_ buffer: inout fuse_buf, _ forest: Forest, _ now: Instant) -> Bool {
    guard let request = RequestHeader(buffer) else { return false }
    // 100 ms more than the reader's patience, so that the reader calls the lists late by then.
    let deadline = now.advanced(milliseconds: ListReader.patience + 100)
    var held = Waiting(buffer: buffer, deadline: deadline)
    guard !isOpen(request, forest) || !hasListing(request, forest, now, &held) else { return false }
    waiting.append(held)
    buffer = fuse_buf()
    return true
  }

  /// Returns whether every list that the request needs is in memory, or known to be unreadable. Has
  /// the others read.
  private func isOpen(_ request: RequestHeader, _ forest: Forest) -> Bool {
    let isOpen = isOpen(
      request.subjects, changes: request.isChange && !request.isTruncation, forest)
    if isOpen, request.isTruncation { prepareChange(after: request, forest) }
    return isOpen
  }

  /// - Parameter changes: whether the request changes something, for which the owner of the store
  ///   would otherwise wait for a disk, and the loop for the owner.
  private func isOpen(
    _ subjects: [(node: NodeID, name: [UInt8]?)], changes: Bool, _ forest: Forest
  ) -> Bool {
    var isOpen = true
    for (node, name) in subjects {
      for domain in forest[node].domainsNeeded(at: node, name) {
        let changed = changes ? [Location(.user, domain)] : []
        if lists.isAtHand(domain, changing: changed) { continue }
        lists.read(domain, changing: changed)
        isOpen = false
      }
    }
    return isOpen
  }

  /// Has a change prepared that follows a truncation of the file, which itself does not wait: the
  /// text that comes next must not come after the truncation's 50 ms.
  private func prepareChange(after request: RequestHeader, _ forest: Forest) {
    for (node, name) in request.subjects {
      for domain in forest[node].domainsNeeded(at: node, name) {
        let changed = [Location(.user, domain)]
        if !lists.isAtHand(domain, changing: changed) { lists.read(domain, changing: changed) }
      }
    }
  }

  /// Returns whether the request needs no large listing, or the tree has it. Has it made otherwise.
  private func hasListing(
    _ request: RequestHeader, _ forest: Forest, _ now: Instant, _ held: inout Waiting
  ) -> Bool {
    guard let cookie = request.listingOffset,
      let plan = forest.listingNeeded(request.node, after: cookie, since: held.listing),
      listings.make(
        plan, of: request.node, since: held.listing ?? plan.version, told: listingMade)
    else { return true }
    if held.listing == nil {
      held.listing = plan.version
      held.deadline = now.advanced(milliseconds: Self.listingPatience)
    }
    return false
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

  /// Carries out the held requests whose lists have been read and whose listings have been made, or
  /// that have waited long enough.
  func serve(_ driver: Driver, _ now: Instant) {
    listings.deliver(to: driver.forest)
    guard !waiting.isEmpty else { return lists.forget() }
    lastCount = lists.readCount
    let all = waiting
    waiting = []
    for var request in all {
      guard let header = RequestHeader(request.buffer) else { continue }
      let isLate = request.deadline <= now
      guard
        isLate
          || isOpen(header, driver.forest) && hasListing(header, driver.forest, now, &request)
      else {
        waiting.append(request)
        continue
      }
      carryOut(&request, isLate: isLate, driver, now)
    }
    lists.forget()
    if !listings.isBusy { listings.forget() }
  }

  private func carryOut(
    _ request: inout Waiting, isLate: Bool, _ driver: Driver, _ now: Instant
  ) {
    let refusal = driver.refusal
    if isLate, request.listing != nil { driver.refusal = .inputOutput }
    driver.listingVersion = request.listing
    driver.carryOut(&request.buffer, now)
    (driver.listingVersion, driver.refusal) = (nil, refusal)
    free(request.buffer.mem)
  }

  /// Answers every held request with EIO, when the mount ends.
  func refuse(_ driver: Driver) {
    driver.refusal = .inputOutput
    defer { driver.refusal = nil }
    for var request in waiting {
      driver.process(&request.buffer)
      free(request.buffer.mem)
    }
    waiting = []
  }
}

extension Driver {
  /// Carries out a request, or takes it over with its buffer if it must wait.
  func admit(_ buffer: inout fuse_buf, _ now: Instant) {
    if !gate.keeps(&buffer, forest, now) { carryOut(&buffer, now) }
    // Nothing waits any more: the kernel holds the notifier in locks of requests.
    if isEnding {
      ownerGate.refuse(self)
      gate.refuse(self)
    }
  }

  /// Carries out a request whose lists are in memory, or takes it over if it must wait for the
  /// owner of the store.
  func carryOut(_ buffer: inout fuse_buf, _ now: Instant) {
    if ownerGate.keeps(&buffer, store.services, now, announcer: announcer) { return }
    process(&buffer)
  }
}
