// Made by `prefs schema swift org.example.tabs`. Change the schema, not this file.

import Foundation
import Preferences

/// The keys of Tabs.
public enum Keys {
  /// Width of a tab, in columns.
  public static let width = PreferenceKey<Int>("Width", default: 4)
  /// Colors of the window.
  public static let theme = PreferenceKey<Theme>("Theme", default: .light)
  public static let fonts = PreferenceKey<[String]?>("Fonts")
}

/// What `Theme` may be.
public enum Theme: String, PreferenceValue, CaseIterable {
  case light = "Light"
  case dark = "Dark"
}
