import Glibc
import SystemCalls

/// Measures file operations in several directories. The first directory is the one that is
/// measured, the others are its peers. Each holds `one` (a file `Key`), `many` (5,000 files) and
/// `some` (1,000 files).
enum FileBench {
  struct Place {
    var name: String
    var path: String
  }

  private struct Measurement {
    var title: String
    var peers: [String]
    var goals: [Goal] = []
    /// Nanoseconds of one operation.
    var run: (Place) -> Double
    /// Nanoseconds of the same operation with warm caches, where that is measured beside it.
    var warm: ((Place) -> Double)?
  }

  static func run(_ words: [String]) throws {
    let places = words.compactMap { word -> Place? in
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      return parts.count == 2 ? Place(name: parts[0], path: parts[1]) : nil
    }
    guard let own = places.first, places.count == words.count else {
      throw SystemError("measure", words.joined(separator: " "), .invalidArgument)
    }
    let report = Report("Files")
    for measurement in all {
      let peers = places.dropFirst().filter { measurement.peers.contains($0.name) }
      let subjects = ([own] + peers).map { place in
        Subject(place.name) { measurement.run(place) }
      }
      let warm = measurement.warm.map { warm in [Subject("warm") { warm(own) }] } ?? []
      report.add(
        measurement.title, .nanoseconds, Bench.samples(subjects + warm), goals: measurement.goals)
    }
  }

  private static var all: [Measurement] {
    [
      Measurement(
        title: "open, read, close; warm", peers: ["tmpfs", "in places/user", "floor", "before"],
        goals: [.times(1.6, of: "tmpfs")],
        run: { openReadClose($0) }),
      Measurement(
        title: "stat; warm", peers: ["tmpfs", "floor", "before"], goals: [.times(1.2, of: "tmpfs")],
        run: { status($0, "Key") }),
      Measurement(
        title: "stat of a missing name; warm", peers: ["tmpfs", "floor", "before"],
        goals: [.times(1.2, of: "tmpfs")],
        run: { status($0, "Missing") }),
      Measurement(
        title: "overwrite with O_TRUNC",
        peers: ["tmpfs", "ext4", "bindfs", "floor", "floor with an owner", "before"],
        goals: [.times(0.6, of: "bindfs"), .times(2, of: "floor with an owner")],
        run: { overwrite($0.path + "/one/Key", 2000) }),
      Measurement(
        title: "save by temporary file and rename", peers: ["tmpfs", "ext4", "bindfs", "before"],
        run: { save($0) }),
      Measurement(
        title: "ls -l of 5,000; cold", peers: ["tmpfs", "bindfs", "floor", "before"],
        goals: [.atMost(5000 * 8e3), .times(1.5, of: "floor")],
        run: { cold(["ls", "-l", "\($0.path)/many"]) }),
      Measurement(
        title: "ls -l of 5,000; warm", peers: ["tmpfs", "bindfs", "before"],
        run: { warm(["ls", "-l", "\($0.path)/many"]) }),
      Measurement(
        title: "grep -r over 1,000; cold", peers: ["tmpfs", "bindfs", "floor", "before"],
        goals: [.times(2, of: "warm", plus: 1000 * 5e3), .times(1.5, of: "floor")],
        run: { cold(["grep", "-r", "needle", "\($0.path)/some"]) },
        warm: { warm(["grep", "-r", "needle", "\($0.path)/some"]) }),
      Measurement(
        title: "grep -r over 1,000; warm", peers: ["tmpfs", "bindfs", "before"],
        run: { warm(["grep", "-r", "needle", "\($0.path)/some"]) }),
    ]
  }

  private static func openReadClose(_ place: Place) -> Double {
    let path = place.path + "/one/Key"
    var buffer = [UInt8](repeating: 0, count: 4096)
    return Bench.time(20000) { _ in
      let descriptor = open(path, O_RDONLY)
      _ = read(descriptor, &buffer, buffer.count)
      close(descriptor)
    }
  }

  private static func status(_ place: Place, _ name: String) -> Double {
    let path = "\(place.path)/one/\(name)"
    var status = stat()
    return Bench.time(50000) { _ in _ = stat(path, &status) }
  }

  /// Returns the mean time of an overwrite with O_TRUNC, in nanoseconds; NaN where one is refused.
  static func overwrite(_ path: String, _ count: Int) -> Double {
    var isRefused = false
    let time = Bench.time(count) { index in
      let text = "value \(index)\n"
      let descriptor = open(path, O_WRONLY | O_TRUNC)
      if write(descriptor, text, text.utf8.count) != text.utf8.count { isRefused = true }
      if close(descriptor) != 0 { isRefused = true }
    }
    return isRefused ? .nan : time
  }

  /// Returns the mean time of a save by a temporary file and rename(2), in nanoseconds.
  static func save(_ place: Place, _ count: Int = 1000) -> Double {
    let (path, temporary) = (place.path + "/one/Key", place.path + "/one/.Key.a1B2c3")
    return Bench.time(count) { index in
      let text = "value \(index)\n"
      let descriptor = open(temporary, O_RDWR | O_CREAT | O_EXCL, 0o600)
      _ = write(descriptor, text, text.utf8.count)
      close(descriptor)
      rename(temporary, path)
    }
  }

  private static func warm(_ words: [String]) -> Double {
    spawn(words)
    return Bench.time(3) { _ in spawn(words) }
  }

  /// Runs a command once, after the kernel has dropped what it can of its caches, which only root
  /// can ask for.
  private static func cold(_ words: [String]) -> Double {
    sync()
    if let caches = try? Descriptor(opening: "/proc/sys/vm/drop_caches", O_WRONLY) {
      try? caches.write(Array("3".utf8))
    }
    // Until the drivers of all places have handled what the kernel has dropped.
    Instant.sleep(milliseconds: 100)
    return Bench.time(1) { _ in spawn(words) }
  }

  /// Runs a command to its end; what it prints is dropped.
  static func spawn(_ words: [String]) {
    _ = try? Child.runApart(words[0], Array(words.dropFirst()))
  }
}
