import Glibc
import SystemCalls

/// The table of SPEC's laws 2 and 5 in figures.
enum Measurements {
  static var all: [Bench.Measurement] {
    [
      Bench.Measurement(
        title: "open+read+close, warm", peers: ["tmpfs"], goal: "x1.6", run: { openReadClose($0) }),
      Bench.Measurement(
        title: "stat, warm", peers: ["tmpfs"], goal: "x1.2", run: { status($0, "Key") }),
      Bench.Measurement(
        title: "stat of a missing name, warm", peers: ["tmpfs"], goal: "x1.2",
        run: { status($0, "Missing") }),
      Bench.Measurement(
        title: "overwrite with O_TRUNC", peers: ["tmpfs", "ext4", "bindfs"],
        goal: "below ext4 and bindfs", run: { overwrite($0) }),
      Bench.Measurement(
        title: "ls -l of 5,000, cold", peers: ["tmpfs", "bindfs"], goal: "",
        run: { cold($0, ["ls", "-l", "\($0.path)/many"]) }),
      Bench.Measurement(
        title: "ls -l of 5,000, warm", peers: ["tmpfs", "bindfs"], goal: "",
        run: { warm($0, ["ls", "-l", "\($0.path)/many"]) }),
      Bench.Measurement(
        title: "grep -r over 1,000, cold", peers: ["tmpfs", "bindfs"], goal: "",
        run: { cold($0, ["grep", "-r", "needle", "\($0.path)/some"]) }),
      Bench.Measurement(
        title: "grep -r over 1,000, warm", peers: ["tmpfs", "bindfs"], goal: "",
        run: { warm($0, ["grep", "-r", "needle", "\($0.path)/some"]) }),
    ]
  }

  private static func openReadClose(_ place: Bench.Place) -> Double {
    let path = place.path + "/one/Key"
    var buffer = [UInt8](repeating: 0, count: 4096)
    return Bench.time(20000) { _ in
      let descriptor = open(path, O_RDONLY)
      _ = read(descriptor, &buffer, buffer.count)
      close(descriptor)
    }
  }

  private static func status(_ place: Bench.Place, _ name: String) -> Double {
    let path = "\(place.path)/one/\(name)"
    var status = stat()
    return Bench.time(50000) { _ in _ = stat(path, &status) }
  }

  private static func overwrite(_ place: Bench.Place) -> Double {
    let path = place.path + "/one/Key"
    return Bench.time(2000) { index in
      let text = "value \(index)\n"
      let descriptor = open(path, O_WRONLY | O_TRUNC)
      _ = write(descriptor, text, text.utf8.count)
      close(descriptor)
    }
  }

  private static func warm(_ place: Bench.Place, _ words: [String]) -> Double {
    run(words)
    return Bench.time(3) { _ in run(words) }
  }

  /// After the kernel has dropped what it can of its caches.
  private static func cold(_ place: Bench.Place, _ words: [String]) -> Double {
    sync()
    if let caches = try? Descriptor(opening: "/proc/sys/vm/drop_caches", O_WRONLY) {
      try? caches.write(Array("3".utf8))
    }
    return Bench.time(1) { _ in run(words) }
  }

  private static func run(_ words: [String]) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    var arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var child = pid_t()
    guard posix_spawnp(&child, words[0], &actions, nil, &arguments, environ) == 0 else { return }
    var status: Int32 = 0
    waitpid(child, &status, 0)
  }
}
