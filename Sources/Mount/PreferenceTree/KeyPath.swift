import PreferenceModel
import PropertyList

/// A domain and a key in it, which name a file.
struct KeyPath: Hashable, Sendable {
  var domain: DomainName
  var key: Key
}

extension KeyPath: CustomStringConvertible {
  /// For log lines, e.g. "com.example.editor TabWidth".
  var description: String { "\(domain) \(key)" }
}
