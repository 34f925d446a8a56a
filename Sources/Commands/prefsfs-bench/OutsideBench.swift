import Glibc
import PropertyList
import SystemCalls

/// Measures how long another program's changes take to reach watchers: it replaces a list of 100
/// keys 1,000 times in a row, until a watcher of the mount has heard of the last change and has
/// read it. The peer is a watcher of the list itself.
enum OutsideBench {
  private static let changes = 1000

  /// - Parameters:
  ///   - lists: the directory of the mount's lists.
  ///   - mount: the mount point.
  static func run(lists: String, mount: String) throws {
    try replace(lists, last: 0)
    let watched = [
      ("prefsfs", try watch("\(mount)/outside"), "Counter"),
      ("inotify on the list", try watch(lists), "outside.plist"),
    ]
    let subjects = watched.map { name, watch, file in
      Subject(name) { measure(lists, mount, name == "prefsfs", watch, file) }
    }
    Report("Lists that another program replaces").add(
      "1,000 lists from outside until the last is announced", .nanoseconds,
      Bench.samples(subjects, rounds: 5))
  }

  private static func watch(_ directory: String) throws(SystemError) -> DirectoryWatch {
    let watch = try DirectoryWatch()
    guard try watch.add(directory) else { throw SystemError("watch", directory, .noSuchFile) }
    return watch
  }

  /// Replaces the list as most programs do, by a temporary file and rename(2).
  private static func replace(_ lists: String, last: Int) throws {
    var values: ValueDictionary = ["Counter": .integer(WideInteger(Int64(last)))]
    for index in 1..<100 { values[Key("Key \(index)")] = .string("value \(index)") }
    let bytes = try Document.write(.dictionary(values), as: .xml)
    let temporary = lists + "/outside.plist.tmp"
    try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_TRUNC).write(bytes)
    try Files.rename(temporary, to: lists + "/outside.plist")
  }

  private static func measure(
    _ lists: String, _ mount: String, _ isMount: Bool, _ watch: DirectoryWatch, _ file: String
  ) -> Double {
    _ = watch.events()
    let first = Int(Timestamp.now.nanoseconds / 1000)
    return Bench.time(1) { _ in
      for index in 1...changes { try? replace(lists, last: first + index) }
      let expected = Array("\(first + changes)\n".utf8)
      var isSeen = false
      while !isSeen {
        var entry = pollfd(fd: watch.number, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, 10_000) > 0 else { return }
        guard watch.events().contains(where: { $0.name == file }) else { continue }
        let text = isMount ? try? Files.contents("\(mount)/outside/\(file)", limit: 64) : expected
        isSeen = text == expected
      }
    }
  }
}
