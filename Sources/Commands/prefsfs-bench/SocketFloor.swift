import Glibc
import SystemCalls

/// The least that a question to another thread costs: one message there and one back over a socket,
/// with nothing done in between. Another process costs no less.
enum SocketFloor {
  /// How both sides wait for a message.
  enum Way: String, CaseIterable {
    /// In poll(2), so that the kernel wakes them.
    case sleeping
    /// They ask again and again, on a processor each.
    case polling
  }

  /// Bytes of a message; those of a set and of its answer are about that.
  private static let message = [UInt8](repeating: 7, count: 100)

  static func measure(_ report: Report) throws {
    let subjects = Way.allCases.map { way in
      Subject(way.rawValue) { (try? time(5000, way)) ?? .nan }
    }
    report.add("message and answer, nothing done", .nanoseconds, Bench.samples(subjects))
  }

  /// Measures a message and its answer between threads that sleep meanwhile; `name` is the subject.
  static func sleeping(_ name: String) -> Report.Samples {
    Report.Samples(subject: name, values: (0..<3).map { _ in (try? time(2000, .sleeping)) ?? .nan })
  }

  /// Returns the mean time of a message and its answer, in nanoseconds.
  private static func time(_ count: Int, _ way: Way) throws -> Double {
    let (near, far) = try Socket.pair()
    let echo = try WorkerThread(name: "echo") {
      while receive(from: far, way) { _ = far.value.send(message[...]) }
    }
    let mean = Bench.time(count) { _ in
      _ = near.value.send(message[...])
      _ = receive(from: near, way)
    }
    near.value.end()
    echo.join()
    return mean
  }

  /// Waits for a whole message.
  /// - Returns: false if the other side has ended.
  private static func receive(from socket: SharedSocket, _ way: Way) -> Bool {
    var bytes: [UInt8] = []
    var file: SharedDescriptor?
    while bytes.count < message.count {
      if way == .sleeping {
        _ = socket.value.wait(until: Instant.now.advanced(milliseconds: 10_000))
      }
      if case .ended = socket.value.receive(into: &bytes, &file) { return false }
    }
    return true
  }
}
