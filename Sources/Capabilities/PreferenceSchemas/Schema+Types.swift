import PropertyList

// Values that were written without types, on a command line or as an old-style list.

extension Schema {
  /// The values, in which a string is a value of the type that the schema says, if it can be read
  /// so.
  public func typed(_ values: ValueDictionary) -> ValueDictionary {
    ValueDictionary(
      values.map { key, value in
        (key: key, value: self[key]?.typed(value) ?? value)
      })
  }
}

extension SchemaKey {
  /// The value, in which a string is a value of the type that the schema says, if it can be read
  /// so.
  public func typed(_ value: Value) -> Value {
    switch value {
    case .string(let text):
      guard let kind, kind != .string else { return value }
      return Recogniser.value(of: Array(text.utf8), kind: kind) ?? value
    case .array(let elements):
      // Of several kinds of elements, the schema does not say which is meant.
      guard members.count == 1, let element = members.first else { return value }
      return .array(elements.map { element.typed($0) })
    case .dictionary(let values):
      let any = member(Self.anyValue)
      return .dictionary(
        ValueDictionary(
          values.map { key, value in
            (key: key, value: (member(key) ?? any)?.typed(value) ?? value)
          }))
    case .integer, .real, .single, .boolean, .date, .data, .uid: return value
    }
  }
}
