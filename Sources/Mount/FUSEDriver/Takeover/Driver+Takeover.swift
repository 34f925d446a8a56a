import CFUSE
import CLinux
import Glibc
import PreferenceModel
import PreferenceTree
import PropertyList
import SystemCalls

// A driver goes on for another one.

extension Driver {
  /// Goes on with the mount of a predecessor, in place of `mount`: takes its state over, agrees
  /// with libfuse as the predecessor agreed with the kernel, and drops everything that the kernel
  /// has cached of keys, because something may have changed meanwhile. Throws if the state makes no
  /// sense.
  public func adopt(_ predecessor: Predecessor) throws(DriverError) {
    let saved = SavedState(predecessor.log)
    let estate: Estate
    do {
      estate = try Estate(predecessor.log.contents, announced: saved[.announced])
      if let defaults = try estate.registeredDefaults { store.registered?.register(defaults) }
      try forest.restore(estate.trees)
    } catch {
      throw DriverError("the state of the driver before cannot be read: \(error)")
    }
    noteSuspect(saved)
    takeover.earlier = estate.requests
    announcer.adopt(predecessor.facts, interrupted: pid_t(truncatingIfNeeded: saved[.announcer]))
    saved[.announcer] = 0
    if saved[.author] != 0 {
      store.services.removeMount(Author(number: saved[.author]))
      takeover.mustSettle = true
    }
    forest.claimAgain()
    saved[.author] = author.number
    takeover.facts = predecessor.facts
    try useDevice(predecessor.device)
    try openSession(predecessor.facts.opening)
    saved.adopt(estate)
    begin(saving: saved)
    noteResending()
    invalidator.keepProgress(in: saved.log)
    saved.replace(trees: forest.saveAll())
    takeover.line?.keep(
      device: predecessor.device, state: predecessor.log.descriptor.number,
      connection: gnu_dev_minor(dev_t(predecessor.facts.device)))
    forest.invalidateAll()
    for (number, announcement) in estate.announcements {
      invalidator.enqueue([.announce(announcement)], announced: number)
    }
    announceMissed(since: saved[.looked])
  }

  /// After the first effects, which drop what the kernel had cached before this driver: has the
  /// invalidator settle for the predecessor's mount when it has done its part.
  func settleForPredecessor() {
    guard takeover.mustSettle else { return }
    takeover.mustSettle = false
    // A version that settles nothing for this driver.
    invalidator.enqueue(settled: .entries, 1)
  }

  /// Has a thread of its own find what others have changed since then, because that reads lists.
  /// - Parameter looked: `SavedState.Number.looked`; 0 if it is not known.
  private func announceMissed(since looked: UInt64) {
    guard looked > 0 else { return }
    let since = Int64(clamping: looked).subtractingReportingOverflow(3_000_000_000).partialValue
    let missed = MissedChanges(engine: store.engine, since: Timestamp(nanoseconds: since))
    let known = forest.knownKeys
    mailbox.awaitMissed()
    let isBegun = BlockingThreads(name: "prefs-missed", most: 1).run { [mailbox] in
      mailbox.deliver(missed: missed.events(in: known))
    }
    guard !isBegun else { return }
    mailbox.deliver(missed: [])
    log("no thread: inotify events were lost while the driver was replaced")
  }

  /// Has libfuse read and write the device in our way.
  func useDevice(_ device: CInt) throws(DriverError) {
    var table = SessionIO.table
    guard fuse_session_custom_io(session.raw, &table, device) == 0 else {
      throw DriverError("no memory")
    }
  }

  /// Gives libfuse the kernel's first message, and keeps its answer from the kernel, which has one.
  private func openSession(_ opening: [UInt8]) throws(DriverError) {
    guard !opening.isEmpty else { return }
    var buffer = fuse_buf()
    buffer.mem = malloc(opening.count)
    buffer.size = opening.count
    defer { free(buffer.mem) }
    guard let memory = buffer.mem else { throw DriverError("no memory") }
    opening.withUnsafeBytes { bytes in
      if let base = bytes.baseAddress { memory.copyMemory(from: base, byteCount: bytes.count) }
    }
    session.swallowsReply = true
    fuse_session_process_buf(session.raw, &buffer)
    session.swallowsReply = false
  }

  /// Counts how often the request that was being carried out has ended a driver.
  private func noteSuspect(_ saved: SavedState) {
    let request = saved[.request]
    (saved[.suspectDeaths], saved[.suspect]) = (
      request == 0 ? 0 : saved[.suspect] == request ? saved[.suspectDeaths] &+ 1 : 1, request
    )
    saved[.request] = 0
  }

  /// Asks the kernel to send the requests again that the predecessor read and did not answer
  /// (FUSE_NOTIFY_RESEND, Linux 6.9). Where the kernel cannot, those get EIO, as far as they are
  /// known.
  func askForUnanswered() {
    guard let saved = takeover.saved, takeover.earlier != nil else { return }
    let message: [UInt32] = [16, 7, 0, 0]
    let count = session.outstanding != nil ? -1 : write(fuse_session_fd(session.raw), message, 16)
    if count == 16 {
      OutstandingRequests.removeAll(from: saved.log) { _ in }
      return
    }
    var lost = 0
    OutstandingRequests.removeAll(from: saved.log) { request in
      let parts = [request, request >> 32].map { UInt32(truncatingIfNeeded: $0) }
      let header = [16, UInt32(bitPattern: -EIO)] + parts
      // The kernel takes it where it waits for the answer to a request of that number.
      if write(fuse_session_fd(session.raw), header, 16) > 0 { lost += 1 }
    }
    log(
      LogLine(
        "this kernel does not send requests again (Linux 6.9 does): \(lost) that were under way got "
          + "an error"))
  }
}
