import PropertyList

/// What the schemas of domains say, for those who show preferences and do not know schemas
/// themselves.
///
/// Threads: any. Where the caller must not wait, and a schema is not in memory, the answer is as if
/// the domain had none.
public protocol SchemaService: Sendable {
  /// The type of a key that is made; nil: it follows from the text. If `isCertain` is false, it
  /// follows from the text too if the text is no value of this type.
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
