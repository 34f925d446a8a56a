import Glibc
import PreferenceClient
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// Measures how long those who use a store stand still when its owner is killed: three mounts and a
/// program, each of which writes a key of its own without pause.
enum RecoveryBench {
  private static let rounds = 15

  /// - Parameters:
  ///   - prefsfs: the path of the program.
  ///   - directory: an empty directory.
  static func run(_ prefsfs: String, _ directory: String) throws {
    let lists = directory + "/lists"
    try Files.makeDirectories(lists, mode: 0o700)
    let mounts = (1...3).map { LargeMount(prefsfs, lists, suffix: "mount\($0)") }
    defer { for mount in mounts { mount.unmount() } }
    for mount in mounts { try mount.mount() }
    try Files.makeDirectories(mounts[0].point + "/one", mode: 0o700)
    let member = try StoreClient(clientOf: Surroundings(store: lists)) { print($0) }
    defer { member.close() }
    var writers = try mounts.enumerated().map { number, mount in
      let file = "\(mount.point)/one/Mount\(number)"
      try Descriptor(opening: file, O_WRONLY | O_CREAT).write(Array("0\n".utf8))
      return try Writer { _ = FileBench.overwrite(file, 1) }
    }
    let (engine, author) = (SearchEngine(places: member), Author.unique())
    writers.append(
      try Writer {
        let value = Value.integer(WideInteger(Instant.now.nanoseconds))
        _ = try? engine.apply([.set("Program", "one", value, .canonical)], by: author)
      })
    defer { for writer in writers { writer.stop() } }
    let owner = LargeMount(prefsfs, lists)
    let times = try (0..<rounds).map { _ in
      // The next owner has a journal to read, and the processes are warm.
      Instant.sleep(milliseconds: 300)
      return try pause(of: writers, owner)
    }
    Report("Ends of the owner").add(
      "kill -9 of prefsd until three mounts and a program go on", .nanoseconds,
      [Report.Samples(subject: "prefsfs", values: times)], goals: [.atMost(100e6)])
  }

  /// Kills the owner. Returns the nanoseconds until each of the writers has made a change that it
  /// began afterwards.
  private static func pause(of writers: [Writer], _ mount: LargeMount) throws -> Double {
    let start = Instant.now
    guard kill(try mount.owner(), SIGKILL) == 0 else { return .nan }
    while writers.contains(where: { $0.lastStart <= start.nanoseconds }) {
      Instant.sleep(microseconds: 200)
      guard Instant.now.nanoseconds(after: start) < 10_000_000_000 else { return .infinity }
    }
    return Double(Instant.now.nanoseconds(after: start))
  }

  /// A thread that makes one change after the other.
  private final class Writer: Sendable {
    private let began = Atomic<Int64>(0)
    private let isStopping = Atomic(false)
    private let thread = Mutex<WorkerThread?>(nil)

    init(_ change: @escaping @Sendable () -> Void) throws {
      let worker = try WorkerThread(name: "writer") { [self] in
        while !isStopping.load(ordering: .relaxed) {
          let start = Instant.now
          change()
          began.store(start.nanoseconds, ordering: .relaxed)
        }
      }
      thread.withLock { $0 = worker }
    }

    /// When the last change that has been made began, in nanoseconds.
    var lastStart: Int64 { began.load(ordering: .relaxed) }

    func stop() {
      isStopping.store(true, ordering: .relaxed)
      thread.withLock { $0.take() }?.join()
    }
  }
}
