import SystemCalls

/// Measures writes through mounts whose stores others use: programs that watch, and a second mount.
/// Preferences are there to be shared, so these rows count as much as those of a mount alone.
enum SharedBench {
  /// - Parameter words: the directories of a mount alone, one beside watching programs, two mounts of
  ///   one store, and of bindfs over tmpfs, which need not be there. Each has the file `one/Key`.
  static func run(_ words: [String]) throws {
    let names = ["alone", "watched", "beside a second mount", "in the second mount", "bindfs"]
    let places = zip(names, words).map { FileBench.Place(name: $0, path: $1) }
    guard places.count >= 4 else {
      throw SystemError("measure", words.joined(separator: " "), .invalidArgument)
    }
    let report = Report("Stores that others use")
    measure("overwrite with O_TRUNC", places, report, alone: 0.55) { place in
      FileBench.overwrite(place.path + "/one/Key", 1000)
    }
    measure("save by temporary file and rename", places, report, alone: 1) {
      FileBench.save($0, 500)
    }
  }

  private static func measure(
    _ title: String, _ places: [FileBench.Place], _ report: Report, alone: Double,
    _ body: @escaping (FileBench.Place) -> Double
  ) {
    // The second mount has read the key, so that each change drops what its kernel has cached.
    let subjects = places.map { place in
      Subject(place.name) {
        FileBench.spawn(["cat", place.path + "/one/Key"])
        return body(place)
      }
    }
    let samples = Bench.samples(subjects)
    report.add(
      "\(title), a mount alone", .nanoseconds, [samples[0]] + samples.dropFirst(4),
      goals: [.times(alone, of: "bindfs")])
    for (index, factor) in [(1, 1.3), (2, 2), (3, 2)] {
      report.add(
        "\(title), \(samples[index].subject)", .nanoseconds,
        [samples[index], samples[0]] + samples.dropFirst(4), goals: [.times(factor, of: "alone")])
    }
  }
}
