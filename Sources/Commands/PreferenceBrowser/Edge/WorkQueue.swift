import SystemCalls

/// Work that may wait for the owner or a disk, done one after the other by a thread of its own.
///
/// Threads: any may add. The thread goes on until the process ends.
final class WorkQueue: Sendable {
  private let waiting = Monitor<[@Sendable () -> Void]>([])

  init(name: String) throws(SystemError) {
    let waiting = waiting
    try WorkerThread(name: name) {
      while true {
        let next = waiting.wait { waiting in waiting.isEmpty ? nil : waiting.removeFirst() }
        next?()
      }
    }.detach()
  }

  func add(_ work: @escaping @Sendable () -> Void) { waiting.change { $0.append(work) } }
}
