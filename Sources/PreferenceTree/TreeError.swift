import Glibc
import PreferenceModel
import SystemCalls

/// Why a file operation is refused. Each case has one errno. A string explains the refusal to
/// people.
public enum TreeError: Error, Equatable, Sendable {
  /// ENOENT.
  case missing
  /// EEXIST.
  case exists
  /// ENOTDIR.
  case notDirectory
  /// EISDIR.
  case isDirectory
  /// ENOTEMPTY.
  case notEmpty(String)
  /// EPERM: the rules of the search list, or of the tree, refuse it.
  case refused(String)
  /// EINVAL: the text is not a value of the key's type, or a schema does not allow the value.
  case notAValue(String)
  /// EINVAL: the request has no meaning.
  case invalid(String)
  /// EIO: a property list cannot be read.
  case unreadable(String)
  /// EROFS.
  case readOnly
  /// EFBIG.
  case tooLarge(String)
  /// ENAMETOOLONG.
  case nameTooLong
  /// EILSEQ: the name is not UTF-8.
  case notUTF8
  /// EOPNOTSUPP.
  case unsupported
  /// ENODATA.
  case noAttribute
  /// EBUSY: other processes kept changing the value that the request was computed from.
  case changedMeanwhile
  /// Another errno, e.g. ENOSPC, EACCES or ETIMEDOUT.
  case system(Errno, String)

  /// ESTALE: the name that was looked up stands for another file now.
  public static let stale = TreeError.system(Errno(rawValue: ESTALE), "")

  /// EFBIG for a text that would be longer than a value's may be.
  static func textTooLarge(_ subject: String) -> TreeError {
    .tooLarge("\(subject): its text may have 16 MiB at most")
  }

  /// Translates a refusal of the engine.
  init(_ error: EngineError) {
    switch error.reason {
    case .changedMeanwhile: self = .changedMeanwhile
    case .unfit: self = .notAValue("\(error)")
    case .forced, .argument, .heldElsewhere, .invalidDomain, .owned:
      self = .refused("\(error)")
    case .noSuchKey, .noSuchDomain: self = .missing
    case .domainExists: self = .exists
    case .domainNotEmpty: self = .notEmpty("\(error)")
    case .unreadable: self = .unreadable("\(error)")
    case .readOnly: self = .readOnly
    case .ownerGone: self = .system(.timedOut, "\(error)")
    case .system(let errno): self = .system(errno, "\(error)")
    }
  }

  /// The errno that the kernel gets.
  public var errno: Errno {
    switch self {
    case .missing: .noSuchFile
    case .exists: .fileExists
    case .notDirectory: .notDirectory
    case .isDirectory: .isDirectory
    case .notEmpty: .directoryNotEmpty
    case .refused: .notPermitted
    case .notAValue, .invalid: .invalidArgument
    case .unreadable: .inputOutput
    case .readOnly: .readOnlyFileSystem
    case .tooLarge: .fileTooLarge
    case .nameTooLong: .nameTooLong
    case .notUTF8: .illegalByteSequence
    case .unsupported: .notSupported
    case .noAttribute: .noData
    case .changedMeanwhile: .busy
    case .system(let errno, _): errno
    }
  }

  /// Whether a text is refused because it is no value of the key.
  var isOfText: Bool { if case .notAValue = self { true } else { false } }

  /// Whether the same request may succeed later: a list or the owner cannot be reached.
  var mayPass: Bool {
    switch self {
    case .unreadable, .system, .changedMeanwhile: true
    default: false
    }
  }

  /// What to log: the domain, the key and the reason, never a value; nil for everyday answers such
  /// as ENOENT.
  public var sentence: String? {
    switch self {
    case .notEmpty(let text), .refused(let text), .notAValue(let text), .invalid(let text),
      .unreadable(let text), .tooLarge(let text), .system(_, let text):
      text.isEmpty ? nil : text
    default: nil
    }
  }
}

/// Runs calls of the engine, and translates their errors.
func asTreeError<Result>(
  _ body: () throws(EngineError) -> Result
) throws(TreeError) -> Result {
  do { return try body() } catch { throw TreeError(error) }
}

/// Carries out a request, and again where somebody else has changed what it was computed from,
/// 1,000 times at most; then it is EBUSY.
/// - Parameter again: what is done before each further time.
func repeated<Result>(
  _ body: () throws(TreeError) -> Result, again: () throws(TreeError) -> Void = {}
) throws(TreeError) -> Result {
  for _ in 1..<1000 {
    do throws(TreeError) {
      return try body()
    } catch {
      if error != .changedMeanwhile { throw error }
    }
    try again()
  }
  return try body()
}
