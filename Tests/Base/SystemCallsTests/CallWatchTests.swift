import Testing

@testable import SystemCalls

@Suite("Calls that do not return") struct CallWatchTests {
  private static let path = "/none/hung"

  /// What is done on the thread that is watched, and whether that is late.
  static let cases: [(name: String, isLate: Bool, body: @Sendable () -> Void)] = [
    ("stat", true, { _ = try? Files.status(path) }),
    ("lstat", true, { _ = try? Files.linkStatus(path) }),
    ("access", true, { _ = try? Files.checkWritable(path) }),
    ("a small file", true, { _ = try? Files.regularContents(path, limit: 64) }),
    ("a file or pipe that a user names", false, { _ = try? Files.contents(path, limit: 64) }),
    ("another thread", false, { otherThread() }),
    ("many calls", false, { manyCalls() }),
    ("another process", false, { Instant.sleep(milliseconds: 500) }),
  ]

  private static func otherThread() {
    let thread = try? WorkerThread(name: "test") { _ = try? Files.status(path) }
    thread?.join()
  }

  private static func manyCalls() {
    let end = Instant.now.advanced(milliseconds: 500)
    while Instant.now < end { _ = try? Files.status("/none") }
  }

  @Test("one is named; what waits for something else is not", arguments: cases.indices)
  func late(_ index: Int) {
    let (name, isLate, body) = Self.cases[index]
    let said = Monitor<String?>(nil)
    let patience: Int64 = isLate ? 10_000 : 500
    Interposition.with({ call in
      guard call.path == Self.path else { return .proceed }
      _ = said.wait(until: .now.advanced(milliseconds: patience)) { $0 }
      return .fail(.noSuchFile)
    }) {
      CallWatch.begin(milliseconds: 100) { sentence in said.change { $0 = sentence } }
      defer { CallWatch.end() }
      body()
    }
    let sentence = said.withLock { $0 }
    #expect((sentence != nil) == isLate, "\(name)")
    #expect(sentence?.hasPrefix(Self.path + ": its file system") != false, "\(name)")
  }

  @Test("the error of a call is still there after it was noted")
  func errno() {
    CallWatch.begin { _ in }
    defer { CallWatch.end() }
    #expect(throws: SystemError("write", "/none", .noSuchFile)) {
      try Files.checkWritable("/none")
    }
  }
}
