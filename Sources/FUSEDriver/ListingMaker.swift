import PreferenceModel
import PreferenceTree
import Synchronization
import SystemCalls

/// Makes large listings on threads of their own, for requests that wait for them (`RequestGate`).
///
/// A listing that has been made is handed over to the tree by the loop. One that cannot be made,
/// because a list cannot be read, is noted: the tree tries again then, and finds the error.
///
/// Threads: the loop's alone, except that `ready` is written by the threads that make listings.
final class ListingMaker {
  private struct Job: Hashable {
    let node: NodeID
    /// The version of the entries that the listing shows.
    let version: UInt64
  }

  private typealias Made = (job: Job, listing: Listing?)

  private let threads = BlockingThreads(name: "prefs-listing", most: 4)
  private var running: Set<Job> = []
  /// The jobs that failed, until their requests have been carried out.
  private var failed: Set<Job> = []
  private let ready = Shared()

  private final class Shared: Sendable {
    let made = Mutex<[Made]>([])
  }

  /// Has the listing of a directory made, unless one that is new enough is being made.
  /// - Parameters:
  ///   - version: the version of the entries that is new enough.
  ///   - told: called by any thread when `deliver` has something to do.
  /// - Returns: whether there is anything to wait for.
  func make(
    _ plan: ListingPlan, of node: NodeID, since version: UInt64,
    told: @escaping @Sendable () -> Void
  ) -> Bool {
    let isEnough = { (job: Job) in job.node == node && job.version >= version }
    if failed.contains(where: isEnough) { return false }
    if running.contains(where: isEnough) { return true }
    let job = Job(node: node, version: plan.version)
    let begun = threads.run { [ready] in
      let listing = try? plan.make()
      ready.made.withLock { $0.append((job, listing)) }
      told()
    }
    if begun { running.insert(job) }
    return begun
  }

  /// Whether a listing is being made.
  var isBusy: Bool { !running.isEmpty }

  /// Hands the listings that have been made over to their trees.
  func deliver(to forest: Forest) {
    guard isBusy else { return }
    let made = ready.made.withLock { made in
      defer { made = [] }
      return made
    }
    for (job, listing) in made {
      running.remove(job)
      if let listing {
        forest.put(listing, of: job.node, version: job.version)
      } else {
        failed.insert(job)
      }
    }
  }

  /// Forgets which listings could not be made. Call it when the requests that waited for them have
  /// been carried out.
  func forget() { failed = [] }
}
