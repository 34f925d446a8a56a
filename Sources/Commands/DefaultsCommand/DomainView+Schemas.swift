import PreferenceModel
import PreferenceSchemas
import PropertyList
import StoreAccess
import SystemCalls

extension DomainView {
  /// The schema of the domain; nil if there is none. Cost: a stat(2) for each directory of schemas;
  /// the owner is asked only if one of them has a schema of the domain, or may have one, because
  /// schemas of GSettings are found by what is in their files.
  var schema: Schema? {
    let settings = store.surroundings.settingsDirectories
    guard hasSchemaFile || settings.contains(where: Files.isDirectory) else { return nil }
    return store.engine.schema(of: target.domain)
  }

  /// Whether a directory of schemas has one of the domain, which may not be readable.
  var hasSchemaFile: Bool {
    let path = StoreLayout(store.surroundings).path(Location(.schema, target.domain))
    return (try? Files.linkStatus(path)) != nil
  }

  /// A value that was written without types: its strings are values of the types that the schema
  /// says, if they can be read so.
  func typed(_ value: Value, for key: Key) -> Value {
    schema?[key]?.typed(value) ?? value
  }

  /// The values of a list. An old-style one has no types but strings, data, arrays and
  /// dictionaries: see `typed(_:for:)`.
  func typed(_ values: ValueDictionary, of format: Format) -> ValueDictionary {
    format == .openStep ? schema?.typed(values) ?? values : values
  }

  /// Says which key may have been meant, if the schema does not have this one.
  func hint(_ key: Key) {
    guard let schema, schema[key] == nil, let near = schema.nearName(to: key) else { return }
    Output.note("\(target.name) has no key \(key); did you mean \(near)?")
  }
}
