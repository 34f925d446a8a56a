import PreferenceModel
import PropertyList

// What the client's lock guards.

extension StoreClient {
  /// Where this process is between the owners of the store.
  enum Phase {
    /// No owner has answered yet.
    case early
    /// Requests go to the owner.
    case owned(OwnerConnection)
    /// The owner is gone, and this process looks for the next one. What was read can be read.
    case orphaned(OwnerConnection)
  }

  struct State {
    // MARK: The owner

    var phase = Phase.early
    /// Whether a thread looks for an owner: the one that creates the client, or the seeker.
    var hasSeeker: Bool
    /// Whether that thread is to look once more.
    var isAsked = false
    /// The last reason for having no owner that was logged; that no owner could be had, in a
    /// process that asks a few things and ends.
    var lastFailure: EngineError?
    /// Whether a request has waited for an owner in vain, so that the next ones wait less.
    var hasWaitedInVain = false
    /// Whether a read has waited for an owner in vain, so that the next ones do not wait.
    var hasReadInVain = false
    var isClosing = false

    // MARK: Posted changes

    var posted = PostedChanges()
    var lastPosted: UInt64 = 0
    /// Whether a thread has the turn.
    var isSending = false

    // MARK: What owners are told, and what is known of them

    /// Whether this process has, or had, mounts.
    var hasMounts = false
    /// The mounts of this process, and the names that each has claimed. Every owner is told of
    /// them.
    var mounts: [Author: Set<Key>] = [:]
    /// The mounts that have left. Each next owner is told again: the one before may have ended
    /// before it knew, and a new owner waits a moment for the mounts that the last one has noted.
    var departed: [Author] = []
    /// The domains of each place that this process knows of.
    var domains: [Place: Set<DomainName>] = [:]
    var origins: Origins
    /// Who asks for changes, for the history; nil means this process, which the owner knows.
    var source: ChangeSource?
    /// The gauges of all owners so far. They are kept because `gauge` points to one of them, which
    /// is read without a lock.
    var gauges: [Gauge] = []

    /// The connection to the present owner; nil if there is none.
    var owner: OwnerConnection? { if case .owned(let owner) = phase { owner } else { nil } }

    /// The connection to read from: to the present owner, else to the last one, of which the
    /// locations that are loaded can be read; nil if there has been no owner yet.
    var readable: OwnerConnection? {
      switch phase {
      case .early: nil
      case .owned(let owner), .orphaned(let owner): owner
      }
    }

    /// The epoch of the present owner, or of the last one. An owner that is adopted has a larger
    /// one.
    var epoch: Int { readable?.epoch ?? 0 }

    /// Milliseconds that a request waits for the next owner: 5 s, or 200 ms after another has
    /// waited in vain. None while there has never been an owner and the last look failed: a program
    /// that can start none must not wait at each of its requests.
    var patience: Int64 {
      if readable == nil, lastFailure != nil { return 0 }
      return hasWaitedInVain ? Patience.read : Patience.usual
    }

    /// Makes requests go to the owner.
    mutating func establish(_ owner: OwnerConnection) {
      phase = .owned(owner)
      (lastFailure, hasWaitedInVain, hasReadInVain) = (nil, false, false)
    }

    /// Brings `domains` up to date with a change.
    mutating func noteDomains(_ notice: Notice) {
      // A key that was there is in a domain that is known.
      for item in notice.changeset.items where !item.hadKey {
        let (place, domain) = (item.location.place, item.location.domain)
        switch item.edit {
        case .set, .splice, .createDomain: domains[place]?.insert(domain)
        case .removeDomain: domains[place]?.remove(domain)
        case .remove, .describe: break
        }
      }
    }
  }
}
