import PreferenceModel
import SystemCalls

/// Why a file operation is refused. Each case has one errno.
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
  /// EINVAL: the text is no value of the key's type.
  case notAValue(String)
  /// EINVAL: a request that means nothing.
  case invalid(String)
  /// EIO: a list cannot be read.
  case unreadable(String)
  /// EROFS.
  case readOnly
  /// EFBIG.
  case tooLarge(String)
  /// ENAMETOOLONG.
  case nameTooLong
  /// EILSEQ: a name that is not UTF-8.
  case notUTF8
  /// EOPNOTSUPP.
  case unsupported
  /// ENODATA.
  case noAttribute
  /// EBUSY: others kept changing what the request was computed from.
  case changedMeanwhile
  /// Any errno of the system, e.g. ENOSPC, EACCES, ETIMEDOUT.
  case system(Errno, String)

  /// An engine's refusal.
  init(_ error: EngineError) {
    switch error.reason {
    case .changedMeanwhile: self = .changedMeanwhile
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

  /// The number for the kernel.
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

  /// What to log: the domain, the key and the reason, never a value; nil for everyday answers.
  public var sentence: String? {
    switch self {
    case .notEmpty(let text), .refused(let text), .notAValue(let text), .invalid(let text),
      .unreadable(let text), .tooLarge(let text), .system(_, let text):
      text
    default: nil
    }
  }
}

/// Runs calls of the engine; their errors become the tree's.
func asTreeError<Result>(
  _ body: () throws(EngineError) -> Result
) throws(TreeError) -> Result {
  do { return try body() } catch { throw TreeError(error) }
}
