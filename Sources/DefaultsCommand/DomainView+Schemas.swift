import PreferenceControl
import PreferenceDeclarations
import PreferenceModel
import PreferenceSchemas
import PropertyList
import StoreAccess
import SystemCalls

extension DomainView {
  /// The schema of the domain; nil if there is none. Cost: a stat(2) for each directory of schemas;
  /// the owner is asked only if one of them has a schema of the domain.
  var schema: Schema? { hasSchemaFile ? store.engine.schema(of: target.domain) : nil }

  /// Whether a directory of schemas has one of the domain, which may not be readable.
  var hasSchemaFile: Bool {
    let path = StoreLayout(store.surroundings).path(Location(.schema, target.domain))
    return ((try? Files.linkStatus(path)) ?? nil) != nil
  }

  /// The value of a word that has no type on the command line: one of the type that the schema says,
  /// if the word can be read so; else a string.
  func typed(_ word: String, for key: Key) -> Value {
    guard let schema, let kind = schema[schema.presentName(of: key)]?.kind, kind != .string,
      let value = Recogniser.value(of: Array(word.utf8), kind: kind)
    else { return .string(word) }
    return value
  }

  /// Says which key may have been meant, if the schema does not have this one, or has renamed it.
  func hint(_ key: Key) {
    guard let schema, schema[key] == nil else { return }
    if let present = schema.presentNames[key] {
      let line = "defaults: \(target.name) \(key) is named \(present) now; programs read that"
      return Output.write(line: line, to: .errors)
    }
    guard let near = schema.nearName(to: key) else { return }
    Output.write(
      line: "defaults: \(target.name) has no key \(key); did you mean \(near)?", to: .errors)
  }
}

extension StoreView {
  /// The declarations of a place. A key that a schema has renamed is the one of its present name.
  func declarations(in place: Place?) -> Declarations { engine.declarations(in: place) }
}
