import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The schemas of domains, as a process has read them.
///
/// Promises: the schema of a domain is read with the domain's lists, and made once. It is forgotten
/// when its file changes. A domain without a schema costs a hash look-up.
///
/// Threads: any. One lock, held for a look; the places are asked without it.
package final class SchemaTable: Sendable {
  /// A schema, and when its file last changed.
  package struct Entry: Sendable {
    package let schema: Schema
    let modified: Timestamp

    /// The default that the schema gives for a key; nil if it gives none.
    package func fallback(of key: Key) -> StoredValue? {
      schema.fallback(of: key).map { StoredValue($0, Metadata(text: nil, modified: modified)) }
    }
  }

  private struct State {
    var entries: [DomainName: Entry?] = [:]
    /// How often entries have been forgotten.
    var changes = 0
  }

  private let state = Mutex(State())
  private static let most = 4096

  package init() {}

  /// The schema of a domain; nil if there is none.
  /// - Parameter read: reads the contents of the schema's file; nil if they cannot be had now.
  package func entry(
    of domain: DomainName, _ read: () -> (values: ValueDictionary, modified: Timestamp)?
  ) -> Entry? {
    let (known, changes) = state.withLock { ($0.entries[domain], $0.changes) }
    if let known { return known }
    guard let (values, modified) = read() else { return nil }
    // The owner has read it before, and passes on only what is a schema.
    let schema = values.isEmpty ? nil : try? Schema(manifest: values)
    let entry = schema.map { Entry(schema: $0, modified: modified) }
    state.withLock { state in
      // Schemas stay: there are few. What has none is looked up again.
      if state.entries.count >= Self.most {
        state.entries = state.entries.filter { $0.value != nil }
      }
      if state.changes == changes { state.entries.updateValue(entry, forKey: domain) }
    }
    return entry
  }

  /// Forgets the schemas that a change of the store concerns.
  package func forget(_ changeset: Changeset) {
    let domains = changeset.invalidated.filter { $0.place == .schema }.map(\.domain)
    guard !domains.isEmpty else { return }
    state.withLock { state in
      for domain in domains { state.entries[domain] = nil }
      state.changes += 1
    }
  }
}
