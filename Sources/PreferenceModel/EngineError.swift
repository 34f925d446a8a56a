import PropertyList
import SystemCalls

/// Why the engine refused: a closed set of reasons, and a sentence for people.
public struct EngineError: Error, Equatable, Sendable {
  /// The reasons; a caller decides by them.
  public enum Reason: Equatable, Sendable {
    /// The administrator's value stands before every other.
    case forced
    /// An argument of the process stands before every other.
    case argument
    /// The key is there, but only in places that a removal does not reach.
    case heldElsewhere
    /// There is no such key.
    case noSuchKey
    /// There is no such domain.
    case noSuchDomain
    /// There is a domain of that name already.
    case domainExists
    /// The domain still has keys.
    case domainNotEmpty
    /// No list can have that name.
    case invalidDomain
    /// A key is not what the transaction expects.
    case changedMeanwhile
    /// The list cannot be parsed; it is left alone.
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

  /// Which reason.
  public let reason: Reason
  /// The domain it is about.
  public let domain: DomainName?
  /// The key it is about.
  public let key: Key?
  /// What was refused, why, and what to do.
  public let sentence: String

  /// An error about a domain, and a key of it.
  public init(_ reason: Reason, domain: DomainName? = nil, key: Key? = nil, _ sentence: String) {
    self.reason = reason
    self.domain = domain
    self.key = key
    self.sentence = sentence
  }

  /// The refusal of a change that was computed from a value which is another one by now.
  package static func changedMeanwhile(_ key: Key, _ domain: DomainName) -> EngineError {
    EngineError(
      .changedMeanwhile, domain: domain, key: key,
      "it was changed by somebody else; read it again")
  }

  /// A system call that failed on a list of the domain.
  public init(_ error: SystemError, domain: DomainName? = nil, key: Key? = nil) {
    self.init(.system(error.errno), domain: domain, key: key, error.description)
  }

  /// Runs system calls for a domain; their errors become errors of the engine.
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
  /// e.g. "com.example.app Key: the administrator has set it (managed)".
  public var description: String {
    let subject = [domain?.string, key?.string].compactMap { $0 }.joined(separator: " ")
    return subject.isEmpty ? sentence : "\(subject): \(sentence)"
  }
}
