import PropertyList

/// What the schemas of domains say, for those who show preferences and do not know schemas
/// themselves.
///
/// Threads: any. No call waits: a schema that is not in memory is none, for the moment, for a caller
/// that must not wait.
public protocol SchemaService: Sendable {
  /// The type of a key that is made; nil if its text decides. If `isCertain` is false, another text
  /// makes a value of another type.
  func newKind(of key: Key, in domain: DomainName) -> (kind: Kind, isCertain: Bool)?

  /// What a key is for; nil if no schema says it.
  func summary(of key: Key, in domain: DomainName) -> String?
}

extension SchemaService {
  public func newKind(
    of key: Key, in domain: DomainName
  ) -> (kind: Kind, isCertain: Bool)? { nil }
  public func summary(of key: Key, in domain: DomainName) -> String? { nil }
}
