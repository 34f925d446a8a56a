import PropertyList
import SystemCalls

/// Why the engine refused something: one of a closed set of reasons, and a sentence for people.
public struct EngineError: Error, Equatable, Sendable {
  /// A reason for a refusal. Callers decide by it what to do.
  public enum Reason: Equatable, Sendable {
    /// The administrator forces the value of the key.
    case forced
    /// An argument of the process sets the key.
    case argument
    /// The key or domain is in places that a removal does not reach.
    case heldElsewhere
    /// There is no such key.
    case noSuchKey
    /// There is no such domain.
    case noSuchDomain
    /// A domain of that name exists already.
    case domainExists
    /// The domain still has keys.
    case domainNotEmpty
    /// The name is not one that a list can have.
    case invalidDomain
    /// The schema of the domain does not allow the value.
    case unfit
    /// A key is not as the transaction expects it.
    case changedMeanwhile
    /// The list cannot be parsed, or its file system does not answer. It is left alone.
    case unreadable
    /// The store is open for reading only.
    case readOnly
    /// Another process owns the store.
    case owned
    /// The process that owns the store is gone; whether it carried the request out is not known.
    case ownerGone
    /// The system refused, e.g. for lack of permission or space.
    case system(Errno)
  }

  /// The reason.
  public let reason: Reason
  /// The domain that the error is about.
  public let domain: DomainName?
  /// The key that the error is about.
  public let key: Key?
  /// What was refused, why, and what to do.
  public let sentence: String

  /// Creates an error about a domain, or about a key of it.
  public init(_ reason: Reason, domain: DomainName? = nil, key: Key? = nil, _ sentence: String) {
    self.reason = reason
    self.domain = domain
    self.key = key
    self.sentence = sentence
  }

  /// Refuses a change that was computed from a value which has changed since.
  package static func changedMeanwhile(_ key: Key, _ domain: DomainName) -> EngineError {
    EngineError(
      .changedMeanwhile, domain: domain, key: key,
      "it was changed by somebody else; read it again")
  }

  /// Creates the error for a system call that failed on a list of the domain.
  public init(_ error: SystemError, domain: DomainName? = nil, key: Key? = nil) {
    self.init(.system(error.errno), domain: domain, key: key, error.description)
  }

  /// Runs the body, and turns a system error that it throws into an engine error about the domain.
  public static func wrapping<Result: ~Copyable>(
    _ domain: DomainName? = nil, _ body: () throws(SystemError) -> Result
  ) throws(EngineError) -> Result {
    do {
      return try body()
    } catch {
      throw EngineError(error, domain: domain)
    }
  }
}

extension EngineError: CustomStringConvertible {
  /// e.g. "com.example.app Key: the administrator has set it (a managed list)".
  public var description: String {
    let subject = [domain?.string, key?.string].compactMap { $0 }.joined(separator: " ")
    return subject.isEmpty ? sentence : "\(subject): \(sentence)"
  }
}
