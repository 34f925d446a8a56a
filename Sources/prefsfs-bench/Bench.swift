import Glibc
import SystemCalls

/// Measures file operations on several directories in one run, so that the machine's mood is the
/// same for all, and prints each beside its peers with the ratio.
///
/// `prefsfs-bench NAME=DIRECTORY ...`: the first directory is the one that is measured, the others
/// are its peers. Each holds `one` (a file `Key`), `many` (5,000 files) and `some` (1,000 files).
enum Bench {
  struct Place {
    var name: String
    var path: String
  }

  /// What is measured, and by which peers.
  struct Measurement {
    var title: String
    var peers: [String]
    var goal: String
    /// Nanoseconds of one operation.
    var run: (Place) -> Double
  }

  static let rounds = 7

  static func run(_ words: [String]) -> Int32 {
    if words == ["codecs"] {
      CodecBench.run()
      return 0
    }
    if words.count == 3, words[0] == "repeat" {
      CodecBench.repeatStep(words[1], words[2])
      return 0
    }
    let places = words.compactMap { word -> Place? in
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      return parts.count == 2 ? Place(name: parts[0], path: parts[1]) : nil
    }
    guard let subject = places.first, places.count == words.count else {
      print("usage: prefsfs-bench NAME=DIRECTORY [PEER=DIRECTORY ...]")
      return 2
    }
    print("medians of \(rounds) runs; ratio: \(subject.name) to the peer, lower is better\n")
    for measurement in Measurements.all {
      let peers = places.dropFirst().filter { measurement.peers.contains($0.name) }
      report(measurement, subject, Array(peers))
    }
    return 0
  }

  private static func report(_ measurement: Measurement, _ subject: Place, _ peers: [Place]) {
    var samples: [String: [Double]] = [:]
    for _ in 0..<rounds {
      for place in [subject] + peers {
        samples[place.name, default: []].append(measurement.run(place))
      }
    }
    let own = median(samples[subject.name] ?? [])
    var line = pad(measurement.title, 34) + pad(time(own), 10)
    for peer in peers {
      let other = median(samples[peer.name] ?? [])
      line += " | \(peer.name) \(pad(time(other), 9)) \(ratio(own / other))"
    }
    print(line + (measurement.goal.isEmpty ? "" : "   goal: \(measurement.goal)"))
  }

  private static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? .nan : sorted[sorted.count / 2]
  }

  static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  private static func time(_ nanoseconds: Double) -> String {
    nanoseconds < 1e6 ? "\(tenths(nanoseconds / 1e3)) us" : "\(tenths(nanoseconds / 1e6)) ms"
  }

  static func ratio(_ value: Double) -> String { "x\((value * 100).rounded() / 100)" }

  private static func tenths(_ value: Double) -> Double { (value * 10).rounded() / 10 }

  /// Nanoseconds of one of `count` repetitions.
  static func time(_ count: Int, _ body: (Int) -> Void) -> Double {
    let start = Instant.now
    for index in 0..<count { body(index) }
    return Double(Instant.now.nanoseconds - start.nanoseconds) / Double(count)
  }
}
