import EtcdClient
import Foundation
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

/// How long it takes from a write on one machine to the same value on another.
enum Latency {
  /// Writes a key in one mount, again and again, and reads it in the other until it is there.
  static func mounts(_ here: String, _ there: String, rounds: Int) throws {
    var times: [Double] = []
    for round in 1...rounds {
      let text = Array("\(round)\n".utf8)
      let began = Instant.now
      try write(text, to: here)
      let limit = began.advanced(milliseconds: 10_000)
      while try Files.contents(there, limit: 100) != text {
        if limit <= .now { throw Late(round: round) }
        usleep(200)
      }
      times.append(Double(Instant.now.nanoseconds(after: began)) / 1e6)
      usleep(useconds_t.random(in: 1000...20_000))
    }
    report("write here, read there", times)
  }

  struct Late: Error { let round: Int }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    let file = open(path, O_WRONLY | O_TRUNC)
    defer { close(file) }
    guard file >= 0, Foundation.write(file, bytes, bytes.count) == bytes.count else {
      throw POSIXError(.EIO)
    }
  }

  /// The same with etcd's own program: `etcdctl put` to a line of `etcdctl watch`.
  static func control(_ etcdctl: String, _ endpoint: String, rounds: Int) throws {
    let watch = Process()
    let lines = Pipe()
    watch.executableURL = URL(fileURLWithPath: etcdctl)
    watch.arguments = ["--endpoints", endpoint, "watch", "/latency"]
    watch.standardOutput = lines
    try watch.run()
    defer {
      kill(watch.processIdentifier, SIGKILL)
      watch.waitUntilExit()
    }
    sleep(1)
    var times: [Double] = []
    for round in 1...rounds {
      let put = Process()
      put.executableURL = URL(fileURLWithPath: etcdctl)
      put.arguments = ["--endpoints", endpoint, "put", "/latency", "\(round)"]
      put.standardOutput = FileHandle.nullDevice
      let began = Instant.now
      try put.run()
      var text = ""
      while !text.contains("\n\(round)\n") {
        text += String(decoding: lines.fileHandleForReading.availableData, as: UTF8.self)
      }
      times.append(Double(Instant.now.nanoseconds(after: began)) / 1e6)
      put.waitUntilExit()
    }
    report("etcdctl put to etcdctl watch", times)
  }

  static func report(_ title: String, _ times: [Double]) {
    let sorted = times.sorted()
    func part(_ share: Double) -> String {
      String(format: "%.1f", sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))])
    }
    print(
      "  \(title): median \(part(0.5)) ms, 95 % \(part(0.95)) ms, 99 % \(part(0.99)) ms, "
        + "\(times.count) rounds")
  }
}
