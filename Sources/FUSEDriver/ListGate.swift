import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

/// Requests that need a list which nobody has read yet: they wait here while other threads read it, and the loop
/// goes on with the others. The tree has not seen them, so they are carried out once, whatever happens.
///
/// A list that does not come in `ListReader.patience` is an error of its domain; the request is carried out then,
/// and says so.
///
/// Threads: the loop's alone.
final class ListGate {
  private struct Waiting {
    var buffer: fuse_buf
    var deadline: Instant
  }

  private let lists: ListReader
  private var waiting: [Waiting] = []

  init(_ lists: ListReader) { self.lists = lists }

  deinit {
    for request in waiting { free(request.buffer.mem) }
  }

  /// When `serve` must be called although no list has been read.
  var deadline: Instant? { waiting.map(\.deadline).min() }

  /// Keeps the request, and its memory, where it must wait.
  func keeps(_ buffer: inout fuse_buf, _ tree: Tree, _ now: Instant) -> Bool {
    guard let request = RequestHeader(buffer), !isOpen(request, tree) else { return false }
    // A little longer than the lists are waited for: a look at that moment finds them late.
    let deadline = now.advanced(milliseconds: ListReader.patience + 100)
    waiting.append(Waiting(buffer: buffer, deadline: deadline))
    buffer = fuse_buf()
    return true
  }

  /// Whether all that the request needs is at hand; else it is read.
  private func isOpen(_ request: RequestHeader, _ tree: Tree) -> Bool {
    var isOpen = true
    for (node, name) in request.subjects {
      guard let domain = tree.domain(at: node, name), !lists.isAtHand(domain) else { continue }
      lists.read(domain)
      isOpen = false
    }
    return isOpen
  }

  /// Whether a look-up of the name in the directory waits for no list.
  func isAtHand(_ parent: NodeID, _ name: [UInt8], _ tree: Tree) -> Bool {
    guard let domain = tree.domain(at: parent, name) else { return true }
    return lists.isAtHand(domain)
  }

  /// Has those carried out that need not wait any longer.
  func serve(_ driver: Driver, _ now: Instant) {
    guard !waiting.isEmpty else { return }
    let all = waiting
    waiting = []
    for var request in all {
      let isLate = request.deadline <= now
      if let header = RequestHeader(request.buffer), isLate || isOpen(header, driver.tree) {
        driver.carryOut(&request.buffer, now)
        free(request.buffer.mem)
      } else {
        waiting.append(request)
      }
    }
    lists.forget()
  }

  /// At the end: nobody is left without an answer.
  func refuse(_ driver: Driver) {
    driver.refusal = .inputOutput
    defer { driver.refusal = nil }
    for var request in waiting {
      fuse_session_process_buf(driver.session.raw, &request.buffer)
      free(request.buffer.mem)
    }
    waiting = []
  }
}

extension Driver {
  /// Carries out a request, or keeps it (and its memory) where it must wait.
  func admit(_ buffer: inout fuse_buf, _ now: Instant) {
    if !gate.keeps(&buffer, tree, now) { carryOut(&buffer, now) }
  }

  /// The same for a request whose lists are at hand.
  func carryOut(_ buffer: inout fuse_buf, _ now: Instant) {
    if parking.parks(&buffer, engine, now, announcer: announcer) { return }
    fuse_session_process_buf(session.raw, &buffer)
  }
}
