import Dispatch
import Testing

/// Calls the body with each element, eight at a time, each on a thread of its own, and returns when
/// all have returned. For tests that spend their time waiting: what an expectation records belongs
/// to the test that called this. Throws the first error.
public func concurrently<Element: Sendable>(
  _ elements: [Element], _ body: @escaping @Sendable (Element) throws -> Void
) async throws {
  let threads = Threads()
  try await withThrowingTaskGroup(of: Void.self) { group in
    for (index, element) in elements.enumerated() {
      if index >= 8 { try await group.next() }
      group.addTask(executorPreference: threads) {
        do {
          try body(element)
        } catch {
          throw ElementFailure(description: "\(String(describingForTest: element)): \(error)")
        }
      }
    }
    try await group.waitForAll()
  }
}

/// The failure of one of several elements.
private struct ElementFailure: Error, CustomStringConvertible {
  let description: String
}

/// Runs jobs that block. The threads of Swift's own executor are as many as the machine's cores.
private final class Threads: TaskExecutor {
  private let queue = DispatchQueue(label: "tests.threads", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
