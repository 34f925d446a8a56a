import PropertyList

/// The formats in which programs read the values of a domain as one file. The raw values are the
/// endings of the files' names.
public enum DocumentForm: String, CaseIterable, Sendable {
  /// JSON, in which dates are ISO text and data is base64.
  case json
  /// A property list: XML, or binary if XML cannot hold a value.
  case plist
  /// Variables, as `EnvironmentFile=` of systemd and `.` of a shell read them: the same values.
  case env
  /// Groups of keys, as GKeyFile of GLib reads them.
  case ini
}

/// The values of a domain, as programs read them that do not know preferences. Pure functions.
public enum EffectiveDocument {
  /// Returns the values as a document of the form. Equal values give equal bytes: keys are sorted,
  /// and nothing else is in it. It never fails: a comment says which keys a form cannot hold.
  /// Cost: O(size); O(n log n) for keys that are not sorted.
  public static func bytes(of values: ValueDictionary, as form: DocumentForm) -> [UInt8] {
    switch form {
    case .json: Document.json(.dictionary(values))
    case .plist: Document.anyXML(.dictionary(values))
    case .env: Array(EnvironmentFile.text(of: values).utf8)
    case .ini: Array(INIFile.text(of: values).utf8)
    }
  }

  /// Returns a comment about a key that is left out. It never ends in a backslash, which would
  /// continue it for some readers.
  static func comment(_ name: String, _ reason: String) -> String {
    "# \(name) is left out: \(reason)\n"
  }
}

extension Value {
  /// The text of the value in a form that has only texts: the string itself, data as base64, an
  /// array or a dictionary as JSON on one line, and any other value as its file shows it.
  var plainText: String {
    switch self {
    case .string(let text): text
    case .data(let data): Base64.encode(data)
    case .array, .dictionary: Document.lineOfJSON(self)
    default: String(decoding: ValueText.canonical(self).dropLast(), as: UTF8.self)
    }
  }
}
