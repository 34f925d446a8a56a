import PropertyList

/// A preference interface as programs for iOS ship it: a pane of `Settings.bundle`, such as
/// `Root.plist`. It is a manifest that informs: what it gives as defaults, programs register
/// themselves.
///
/// It is a pure function of the panes and the texts of their titles. Groups and child panes are not
/// keys; a key that several panes have is that of the first one. What is malformed is left out.
struct SettingsPane {
  /// Reads a pane by its name, without `.plist`; nil if there is none.
  let pane: (String) -> ValueDictionary?
  /// Reads the texts of titles by the name of their table; empty if the titles are texts
  /// themselves.
  let texts: (String) -> ValueDictionary

  private static let (deepest, mostKeys) = (8, 10_000)

  /// The manifest of the pane and its child panes; nil where it is no pane.
  func manifest(of name: String) -> ValueDictionary? {
    guard let root = pane(name), Self.isPane(root) else { return nil }
    return manifest(of: root, name)
  }

  /// The same of a pane that is known.
  func manifest(of root: ValueDictionary, _ name: String) -> ValueDictionary {
    var subkeys: [Value] = []
    var seen: (keys: Set<String>, panes: Set<String>) = ([], [name])
    add(root, name, to: &subkeys, &seen, depth: 0)
    var manifest: ValueDictionary = ["pfm_format_version": 1, "pfm_subkeys": .array(subkeys)]
    if let title = root["Title"]?.string {
      manifest["pfm_title"] = .string(text(title, in: texts(Self.table(root, name))))
    }
    return manifest
  }

  /// Whether the property list is a pane.
  static func isPane(_ values: ValueDictionary) -> Bool {
    if case .array? = values["PreferenceSpecifiers"] { true } else { false }
  }

  private static func table(_ pane: ValueDictionary, _ name: String) -> String {
    pane["StringsTable"]?.string ?? name
  }

  private func text(_ title: String, in texts: ValueDictionary) -> String {
    texts[Key(title)]?.string ?? title
  }

  private func add(
    _ pane: ValueDictionary, _ name: String, to subkeys: inout [Value],
    _ seen: inout (keys: Set<String>, panes: Set<String>), depth: Int
  ) {
    guard case .array(let specifiers)? = pane["PreferenceSpecifiers"] else { return }
    let texts = texts(Self.table(pane, name))
    for case .dictionary(let specifier) in specifiers where subkeys.count < Self.mostKeys {
      if specifier["Type"] == "PSChildPaneSpecifier", let file = specifier["File"]?.string {
        guard depth < Self.deepest, Self.isName(file), seen.panes.insert(file).inserted,
          let child = self.pane(file)
        else { continue }
        add(child, file, to: &subkeys, &seen, depth: depth + 1)
      } else if let key = specifier["Key"]?.string, !key.isEmpty,
        let entry = entry(key, specifier, texts), seen.keys.insert(key).inserted
      {
        subkeys.append(.dictionary(entry))
      }
    }
  }

  /// Whether a pane or a table can have the name: it stays in the bundle.
  static func isName(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && !name.utf8.contains(0x2F) && !name.utf8.contains(0)
      && name.utf8.count <= 200
  }

  // MARK: - Keys

  private func entry(
    _ key: String, _ specifier: ValueDictionary, _ texts: ValueDictionary
  ) -> ValueDictionary? {
    let fallback = specifier["DefaultValue"]
    var entry: ValueDictionary = ["pfm_name": .string(key)]
    switch specifier["Type"]?.string {
    case "PSToggleSwitchSpecifier": addSwitch(specifier, to: &entry)
    case "PSSliderSpecifier":
      entry["pfm_type"] = "real"
      entry["pfm_range_min"] = specifier["MinimumValue"]
      entry["pfm_range_max"] = specifier["MaximumValue"]
    case "PSTextFieldSpecifier":
      entry["pfm_type"] = "string"
      if specifier["IsSecure"] == true { entry["pfm_sensitive"] = true }
    case "PSMultiValueSpecifier", "PSRadioGroupSpecifier":
      addChoices(specifier, texts, to: &entry)
    case "PSTitleValueSpecifier":
      entry["pfm_type"] = Self.type(of: fallback)
      entry["prefs_state"] = true
    default: return nil
    }
    if entry["pfm_default"] == nil { entry["pfm_default"] = fallback }
    if let title = specifier["Title"]?.string, !title.isEmpty {
      entry["pfm_title"] = .string(text(title, in: texts))
    }
    return entry
  }

  /// A switch sets a boolean, or one of two values.
  private func addSwitch(_ specifier: ValueDictionary, to entry: inout ValueDictionary) {
    guard let on = specifier["TrueValue"], let off = specifier["FalseValue"] else {
      entry["pfm_type"] = "boolean"
      if case .integer(let number)? = specifier["DefaultValue"] {
        entry["pfm_default"] = .boolean(number != 0)
      }
      return
    }
    entry["pfm_type"] = Self.type(of: on)
    entry["pfm_range_list"] = .array([on, off])
  }

  private func addChoices(
    _ specifier: ValueDictionary, _ texts: ValueDictionary, to entry: inout ValueDictionary
  ) {
    guard case .array(let values)? = specifier["Values"] else { return }
    entry["pfm_type"] = Self.type(of: values.first)
    entry["pfm_range_list"] = .array(values)
    guard let titles = specifier["Titles"]?.strings, titles.count == values.count else { return }
    entry["pfm_range_list_titles"] = .array(titles.map { .string(text($0, in: texts)) })
  }

  /// The type of a manifest's key that has the value; nil if none is named.
  private static func type(of value: Value?) -> Value? {
    value.flatMap { $0.kind == .uid ? nil : .string($0.kind.rawValue) }
  }
}
