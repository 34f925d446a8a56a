import PreferenceModel
import PropertyList

/// The documents of a declaration, with what the values are by now.
///
/// Only what has drifted changes: of a value its parts, where a variable gives what a part is, the
/// variable stays. What somebody has removed becomes `null`. Of several documents, the one that
/// gave the value changes.
package struct Adoption {
  /// The documents, as they are in their files.
  package private(set) var documents: [ValueDictionary]
  /// What is left as it is declared, and why.
  package private(set) var refusals: [(path: DeclaredPath, reason: String)] = []

  private let isMerged: Bool
  private let variables: Variables

  /// - Parameters:
  ///   - documents: of one declaration; the last one that has a key counts.
  ///   - drift: what they are to say.
  ///   - keeps: whether a value of a key may be written into documents; a secret may not.
  package init(
    _ documents: [ValueDictionary], isMerged: Bool, variables: Variables,
    of drift: [Declarations.Drift], keeps: (Value, Key, DomainName) -> Bool
  ) {
    (self.documents, self.isMerged, self.variables) = (documents, isMerged, variables)
    for drift in drift {
      let path = drift.path
      if let failure = drift.failure {
        refusals.append((path, failure))
      } else if let value = drift.present, !keeps(path.wrapping(value), path.key, path.domain) {
        refusals.append((path, "it is a secret by its name or schema, or is not to be kept"))
      } else if !adopt(path, drift.present) {
        refusals.append((path, "no document has it"))
      }
    }
  }

  /// Changes the last document that has the path; a key that none has comes into the last one that
  /// has the domain.
  private mutating func adopt(_ path: DeclaredPath, _ present: Value?) -> Bool {
    for index in documents.indices.reversed() {
      for (name, settings) in documents[index]
      where DomainName(named: name.string) == path.domain {
        guard case .dictionary(var keys) = settings, let known = keys[path.key],
          let value = changed(known, path.members[...], path.element?.value, present)
        else { continue }
        keys[path.key] = value
        documents[index][name] = .dictionary(keys)
        return true
      }
    }
    guard path.isWhole, let present else { return false }
    for index in documents.indices.reversed() {
      for (name, settings) in documents[index]
      where DomainName(named: name.string) == path.domain {
        guard case .dictionary(var keys) = settings else { continue }
        keys[path.key] = stated(present)
        documents[index][name] = .dictionary(keys)
        return true
      }
    }
    return false
  }

  /// What a document says in the place of a value, so that the part is as it is now; nil if it does
  /// not say anything of the part.
  private func changed(
    _ known: Value, _ members: ArraySlice<Key>, _ element: Value?, _ present: Value?
  ) -> Value? {
    if let first = members.first {
      if case .merge(let inner)? = instruction(known) {
        guard let part = inner[first],
          let value = changed(part, members.dropFirst(), element, present)
        else { return nil }
        var inner = inner
        inner[first] = value
        return ["$merge": .dictionary(inner)]
      }
      guard case .dictionary(var values) = known, let part = values[first],
        let value = changed(part, members.dropFirst(), element, present)
      else { return nil }
      values[first] = value
      return .dictionary(values)
    }
    if let element { return without(element, known, isThere: present != nil) }
    guard let present else { return Declaration.absent }
    if case .value(let inner)? = instruction(known) { return ["$value": aligned(inner, present)] }
    let value = aligned(known, present)
    return value.hasInstruction(isStored: false) ? ["$value": value] : value
  }

  private func instruction(_ value: Value) -> Instruction? {
    Instruction.words(of: value).flatMap { Instruction($0) }
  }

  /// An instruction that no longer says that an element is there, or is not.
  private func without(_ element: Value, _ known: Value, isThere: Bool) -> Value? {
    guard case .elements? = instruction(known), case .dictionary(var words) = known else {
      return nil
    }
    let word: Key = isThere ? "$remove" : "$add"
    guard let elements = words[word]?.elements else { return nil }
    words[word] = .array(elements.filter { expanded($0) != element })
    return .dictionary(words)
  }

  private func expanded(_ value: Value) -> Value {
    var used: Set<Variables.Name> = []
    return (try? variables.expand(value, &used)) ?? value
  }

  /// How a document says a value that it has not had.
  private func stated(_ value: Value) -> Value {
    let escaped = Self.escaped(value)
    return escaped.hasInstruction(isStored: false) ? ["$value": escaped] : escaped
  }

  /// How a document says a value, as it does now where parts are the same.
  private func aligned(_ known: Value, _ present: Value) -> Value {
    if expanded(known) == present { return known }
    switch (known, present) {
    case (.dictionary(let known), .dictionary(let present)):
      var result: ValueDictionary = [:]
      for (key, value) in present {
        result[key] = known[key].map { aligned($0, value) } ?? Self.escaped(value)
      }
      return .dictionary(result)
    case (.array(let known), .array(let present)):
      return .array(
        present.enumerated().map { index, value in
          if let same = known.first(where: { expanded($0) == value }) { return same }
          return index < known.count && known.count == present.count
            ? aligned(known[index], value) : Self.escaped(value)
        })
    default: return Self.escaped(present)
    }
  }

  /// The value with `$${` for `${` in its strings.
  private static func escaped(_ value: Value) -> Value {
    value.mappingLeaves { leaf in
      if case .string(let text) = leaf { .string(text.replacing("${", with: "$${")) } else { leaf }
    }
  }
}
