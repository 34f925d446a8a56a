import PropertyList

/// Which values are secrets, by the names of their keys and members.
enum Secret {
  /// Parts of the names of keys that hold secrets.
  private static let parts = [
    "passw", "passphrase", "secret", "token", "apikey", "api_key", "credential", "psk",
    "privatekey",
  ].map { $0.utf8.map { $0 | 0x20 } }

  /// Whether the key's name has a secret's, in any case. The bytes are compared, because a search
  /// in a `String` takes longer than all else that the history does for a change.
  static func isName(_ key: Key) -> Bool {
    key.withBytes { name in
      name.indices.contains { start in
        parts.contains { part in
          part.count <= name.count - start
            && part.indices.allSatisfy { name[start + $0] | 0x20 == part[$0] }
        }
      }
    }
  }

  /// What stands in the place of a member that is not kept. No program has such a UID: those of
  /// keyed archives have 32 bits.
  static let mark = Value.uid(.max)
}

extension Value {
  /// Whether the value may be a secret. A boolean, a number or a date is none, whatever its name is:
  /// `askForPasswordDelay`.
  var maybeSecret: Bool {
    switch self {
    case .string, .data, .array, .dictionary: true
    case .boolean, .integer, .real, .single, .date, .uid: false
    }
  }

  /// The value with a mark in the place of each member that has a secret's name; nil if it has
  /// none. A value that has such marks already has them again.
  /// Cost: O(values).
  var withoutSecrets: Value? {
    switch self {
    case .array(let items):
      let parts = items.map(\.withoutSecrets)
      guard parts.contains(where: { $0 != nil }) else { return nil }
      return .array(zip(items, parts).map { $1 ?? $0 })
    case .dictionary(let items):
      var parts = items
      var isChanged = false
      for (key, value) in items {
        let isSecret = (value.maybeSecret || value == Secret.mark) && Secret.isName(key)
        guard let part = isSecret ? Secret.mark : value.withoutSecrets else { continue }
        parts[key] = part
        isChanged = true
      }
      return isChanged ? .dictionary(parts) : nil
    case .string, .data, .boolean, .integer, .real, .single, .date, .uid: return nil
    }
  }

  /// The value with a text in the place of what is not kept.
  var withoutMarks: Value {
    mappingLeaves { $0 == Secret.mark ? "(not kept)" : $0 }
  }
}
