import PropertyList

/// What a dictionary of words with a dollar says, in the place of a value.
package enum Instruction: Equatable, Sendable {
  /// `{"$absent": true}`: there is to be no value.
  case absent
  /// `{"$value": X}`: exactly this, whatever it looks like.
  case value(Value)
  /// `{"$add": [...], "$remove": [...]}`: an array is to have these elements, and not those. It may
  /// have others.
  case elements(added: [Value], removed: [Value])
  /// `{"$merge": {...}}`: a dictionary is to have these members. It may have others.
  case merge(ValueDictionary)

  /// The words of a dictionary that has nothing else; nil if the value is not an instruction.
  package static func words(of value: Value) -> ValueDictionary? {
    guard case .dictionary(let words) = value, !words.isEmpty,
      words.allSatisfy({ $0.key.string.hasPrefix("$") })
    else { return nil }
    return words
  }

  /// Whether a value is an instruction that says more than that there is to be no value.
  package static func isOne(_ value: Value) -> Bool {
    words(of: value).flatMap { Instruction($0) }.map { $0 != .absent } ?? false
  }

  /// Reads an instruction; nil if the words are not those of one.
  package init?(_ words: ValueDictionary) {
    if .dictionary(words) == Declaration.absent {
      self = .absent
    } else if words.count == 1, let value = words["$value"] {
      self = .value(value)
    } else if words.count == 1, case .dictionary(let members)? = words["$merge"] {
      self = .merge(members)
    } else {
      var lists: [Key: [Value]] = [:]
      for (word, value) in words {
        guard ["$add", "$remove"].contains(word), case .array(let elements) = value else {
          return nil
        }
        lists[word] = elements
      }
      self = .elements(added: lists["$add"] ?? [], removed: lists["$remove"] ?? [])
    }
  }
}

extension Value {
  /// Whether the value is, or has inside, what stands for no value; or another instruction, unless
  /// it is from a ledger.
  func hasInstruction(isStored: Bool) -> Bool {
    if self == Declaration.absent || !isStored && Instruction.words(of: self) != nil { return true }
    switch self {
    case .array(let elements):
      return elements.contains { $0.hasInstruction(isStored: isStored) }
    case .dictionary(let members):
      return members.contains { $0.value.hasInstruction(isStored: isStored) }
    default: return false
    }
  }
}
