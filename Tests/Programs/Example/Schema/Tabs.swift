import Preferences

/// Prints its preferences, whose keys `Keys.swift` has from `org.example.tabs.plist`.
@main struct Tabs {
  static func main() {
    guard let preferences = UserDefaults(suiteName: "org.example.tabs") else { return }
    print("width \(preferences[Keys.width]), theme \(preferences[Keys.theme])")
    print("fonts \(preferences[Keys.fonts] ?? [])")
  }
}
