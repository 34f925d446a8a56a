import Foundation
import Preferences

import class Preferences.UserDefaults

/// The test program `prefs-sample`, which uses the public API of the library alone, as users do.
enum Sample {
  private static let usage = """
    usage: sample get KEY
           sample set COUNT exit|kill|stay     sets Key0, Key1, ... without waiting, and ends so
           sample paused COUNT                 connects, waits for a line, sets the keys, and exits
           sample sync KEY TEXT                sets and synchronizes, then ends with kill -9
           sample watch KEY COUNT              prints a line for each of COUNT changes
           sample languages                    prints what the languages of the search list have
           sample cloud KEY                    says which notifications of the cloud come
           sample user NAME KEY                prints what the user's own object has
           sample late KEY                     reads it 40 times, 50 ms apart
           sample history KEY                  prints the changes of the key
           sample undo KEY refuse|over|skip    takes all changes of the key back
           sample count COUNT                  adds 1 to Count that often
           sample memory                       sets keys in memory, and prints them
           sample frame                        reads Frame twice, sets its height, and reads it
           sample fork                         sets Before, and After once a copy has set Copy

    """

  static func run(_ arguments: [String]) -> Int32 {
    // The words from the first option on are the argument domain.
    let words = arguments.prefix { !$0.hasPrefix("-") }
    if words == ["memory"] { return memory() }
    let defaults = UserDefaults.standard
    switch (words.first, words.count) {
    case ("history", 2): history(words[1])
    case ("undo", 3): undo(words[1], words[2])
    case ("get", 2): say(defaults.string(forKey: words[1]) ?? "(none)")
    case ("set", 3): set(words[1], thenEnd: words[2])
    case ("paused", 2):
      say(defaults.string(forKey: "K") ?? "ready")
      _ = readLine()
      set(words[1], thenEnd: "exit")
    case ("sync", 3):
      defaults.set(words[2], forKey: words[1])
      if defaults.synchronize() { end("kill") }
      return 1
    case ("watch", 3): watch(words[1], Int(words[2]) ?? 1)
    case ("languages", 1):
      say(defaults.volatileDomainNames.joined(separator: " "))
      let names = ["de", "x-mine"].map { defaults.volatileDomain(forName: $0)["NSLanguageName"] }
      say(
        names.map { $0 as? String ?? "(none)" }.joined(separator: " ")
          + " \(defaults.integer(forKey: "Custom"))")
      say("\(defaults.dictionaryRepresentation()["NSMonthNameArray"] is [String])")
    case ("cloud", 2): cloud(words[1])
    case ("fork", 1): setBesideCopy()
    case ("count", 2):
      do {
        for _ in 0..<(Int(words[1]) ?? 0) {
          try defaults.update(PreferenceKey("Count", default: 0)) { $0 += 1 }
        }
      } catch {
        say("\(error)")
      }
    case ("frame", 1):
      for height in [nil, nil, 700] {
        if let height { defaults[.frame].height = height }
        say("\(defaults[.frame].width) \(defaults[.frame].height)")
      }
      defaults.synchronize()
    case ("user", 3):
      say(UserDefaults(user: words[1]).map { $0.string(forKey: words[2]) ?? "(none)" } ?? "nil")
    case ("late", 2):
      for _ in 0..<40 {
        say(defaults.string(forKey: words[1]) ?? "(none)")
        usleep(50000)
      }
    default:
      print(usage, terminator: "")
      return 2
    }
    return 0
  }

  private static func memory() -> Int32 {
    let isInMemory = UserDefaults.keepInMemory()
    let defaults = UserDefaults.standard
    UserDefaults(suiteName: "mock")?.set(2, forKey: "Mock")
    defaults.set(1, forKey: "Own")
    defaults.addSuite(named: "mock")
    let numbers = ["Own", "Mock"].map { defaults.integer(forKey: $0) }
    say("\(isInMemory) \(numbers) \(defaults.synchronize()) \(UserDefaults.keepInMemory())")
    return 0
  }

  private static func set(_ count: String, thenEnd way: String) {
    for index in 0..<(Int(count) ?? 0) { UserDefaults.standard.set(index, forKey: "Key\(index)") }
    end(way)
  }

  /// Sets a key before and after a copy of this process tries to set one too.
  private static func setBesideCopy() {
    typealias Fork = @convention(c) () -> pid_t
    // Swift's overlay of the C library hides fork(2).
    guard let symbol = dlsym(nil, "fork") else { return say("no fork(2)") }
    UserDefaults.standard.set(1, forKey: "Before")
    let child = unsafeBitCast(symbol, to: Fork.self)()
    if child == 0 {
      UserDefaults.standard.set(1, forKey: "Copy")
      _exit(0)
    }
    var status: CInt = 0
    waitpid(child, &status, 0)
    if status != 0 { say("the copy has ended with \(status)") }
    UserDefaults.standard.set(1, forKey: "After")
  }

  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(1, bytes, bytes.count)
  }

  private static func end(_ way: String) {
    switch way {
    case "kill": kill(getpid(), SIGKILL)
    case "exit": _exit(0)
    default: break
    }
  }

  /// Says which notifications of the cloud come while it sets a key, once for each line of input.
  private static func cloud(_ key: String) {
    let names = [
      UserDefaults.completedInitialCloudSyncNotification: "completed",
      UserDefaults.didChangeCloudAccountsNotification: "accounts",
      UserDefaults.noCloudAccountNotification: "none",
      UserDefaults.sizeLimitExceededNotification: "size",
    ]
    let tokens = names.map { name, text in
      NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
        say(text)
      }
    }
    say(UserDefaults.standard.string(forKey: key) ?? "(none)")
    while let line = readLine() {
      UserDefaults.standard.set(String(repeating: "x", count: Int(line) ?? 0), forKey: key)
    }
    for token in tokens { NotificationCenter.default.removeObserver(token) }
  }

  private static func watch(_ key: String, _ count: Int) {
    let arrived = DispatchSemaphore(value: 0)
    let observation = UserDefaults.standard.observe(PreferenceKey<String?>(key)) { change in
      let values = [change.old, change.new].map { $0 ?? "(none)" }
      say("\(values[0]) -> \(values[1])\(change.isOwn ? " (own)" : "")")
      arrived.signal()
    }
    say("watching")
    for _ in 0..<count { arrived.wait() }
    observation.cancel()
  }
}
