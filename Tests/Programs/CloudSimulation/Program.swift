import Foundation

/// The parts of scripts/cloud-test that need the project's own code.
@main enum Program {
  private static let usage = """
    usage: cloud-simulation storm HOSTS USERS KEYS SETS ENDPOINT...
           cloud-simulation all HOSTS ROUNDS ENDPOINT...
           cloud-simulation latency FILE-HERE FILE-THERE ROUNDS
           cloud-simulation etcdctl PATH ENDPOINT ROUNDS

    """

  static func main() throws {
    let words = Array(CommandLine.arguments.dropFirst())
    let numbers = words.dropFirst().prefix(4).compactMap { Int($0) }
    switch words.first {
    case "storm" where numbers.count == 4 && words.count > 5:
      let storm = try Storm(
        hosts: numbers[0], users: numbers[1], keys: numbers[2], endpoints: Array(words[5...]))
      exit(storm.run(sets: numbers[3]) ? 0 : 1)
    case "all" where numbers.count == 2 && words.count > 3:
      let storm = try Storm(hosts: numbers[0], users: 1, keys: 1, endpoints: Array(words[3...]))
      exit(storm.tellAll(rounds: numbers[1]) ? 0 : 1)
    case "latency" where words.count == 4:
      try Latency.mounts(words[1], words[2], rounds: Int(words[3]) ?? 100)
    case "etcdctl" where words.count == 4:
      try Latency.control(words[1], words[2], rounds: Int(words[3]) ?? 20)
    default:
      print(usage, terminator: "")
      exit(2)
    }
  }
}
