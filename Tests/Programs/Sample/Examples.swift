import Foundation

#if canImport(Preferences)
  import Preferences
  import class Preferences.UserDefaults
#endif

// The Swift code of the documentation, line by line: DocumentationTests compares them. The command
// `prefs-sample examples` runs it.

extension PreferenceKey<Int> {
  static var tabWidth: Self { Self("TabWidth", default: 4) }
}

extension PreferenceKey<Frame> {
  static var frame: Self { Self("Frame", default: Frame()) }
}

struct Frame: Codable, PreferenceValue {
  var width = 800
  var height = 600
}

final class Settings {
  private let defaults: UserDefaults
  init(_ defaults: UserDefaults = .standard) { self.defaults = defaults }
  var tabWidth: Int {
    get { defaults.object(forKey: "TabWidth") as? Int ?? 4 }
    set { defaults.set(newValue, forKey: "TabWidth") }
  }
}

extension Settings {
  func whenTabWidthChanges(_ body: @escaping @Sendable () -> Void) -> Any {
    #if canImport(Preferences)
      return defaults.observe("TabWidth") { _, _, _ in body() }
    #else
      return NotificationCenter.default.addObserver(
        forName: UserDefaults.didChangeNotification, object: defaults, queue: nil
      ) { _ in body() }
    #endif
  }
}

enum Examples {
  static func run() async {
    @Preference("TabWidth") var tabWidth = 4
    tabWidth = 8
    let told = Task {
      for await change in UserDefaults.standard.changes(of: .frame) {
        print("\(change.old.width) -> \(change.new.width)\(change.isOwn ? ", by us" : "")")
      }
    }
    try? await Task.sleep(for: .milliseconds(200))
    UserDefaults.standard[.frame].width = 1024
    try? await Task.sleep(for: .milliseconds(200))
    told.cancel()
    inMemory()
    observeAll()
    severalSystems()
    do {
      try UserDefaults.standard.update(.tabWidth) { width in width += 1 }
    } catch {
      print(error)
    }
    likeFoundation()
    UserDefaults.standard.synchronize()
  }

  private static func observeAll() {
    let observation = UserDefaults.standard.observeAll { changes in
      for (key, change) in changes { print(key, change.new as Any, change.isOwn) }
    }
    observation.cancel()
  }

  private static func inMemory() {
    let defaults = UserDefaults.inMemory()
    defaults[.frame] = Frame(width: 1, height: 1)
    precondition(defaults[.frame].width == 1)
  }

  private static func severalSystems() {
    let settings = Settings(.inMemory())
    withExtendedLifetime(settings.whenTabWidthChanges {}) { settings.tabWidth = 2 }
    precondition(settings.tabWidth == 2)
  }

  private static func likeFoundation() {
    let defaults = UserDefaults.standard
    defaults.register(defaults: ["TabWidth": 4])
    defaults.set(8, forKey: "TabWidth")
    defaults.set(URL(fileURLWithPath: "/tmp/x"), forKey: "Recent")
    let width = defaults.integer(forKey: "TabWidth")
    defaults.setValuesForKeys(["Width": 800, "Height": 600])
    precondition(width == 8 && defaults.integer(forKey: "Height") == 600)
  }
}
