import Glibc
import PreferenceModel
import SystemCalls

/// Why a file operation is refused: an errno, and for people a sentence that explains the refusal.
public struct TreeError: Error, Equatable, Sendable {
  /// The errno that the kernel gets.
  public let errno: Errno
  /// What to log: the domain, the key and the reason, never a value; nil for everyday answers such
  /// as ENOENT.
  public let sentence: String?
  /// Whether a text is refused because it is no value of the key.
  let isOfText: Bool
  /// Whether the same request may succeed later: a list or the owner cannot be reached.
  let mayPass: Bool

  private init(
    _ errno: Errno, _ sentence: String? = nil, isOfText: Bool = false, mayPass: Bool = false
  ) {
    (self.errno, self.sentence) = (errno, sentence)
    (self.isOfText, self.mayPass) = (isOfText, mayPass)
  }
}

extension TreeError {
  /// ENOENT.
  public static let missing = TreeError(.noSuchFile)
  /// EEXIST.
  public static let exists = TreeError(.fileExists)
  /// ENOTDIR.
  public static let notDirectory = TreeError(.notDirectory)
  /// EISDIR.
  public static let isDirectory = TreeError(.isDirectory)
  /// EROFS.
  public static let readOnly = TreeError(.readOnlyFileSystem)
  /// ENAMETOOLONG.
  public static let nameTooLong = TreeError(.nameTooLong)
  /// EILSEQ: the name is not UTF-8.
  public static let notUTF8 = TreeError(.illegalByteSequence)
  /// EOPNOTSUPP.
  public static let unsupported = TreeError(.notSupported)
  /// ENODATA.
  public static let noAttribute = TreeError(.noData)
  /// EBUSY: other processes kept changing the value that the request was computed from.
  public static let changedMeanwhile = TreeError(.busy, mayPass: true)
  /// ESTALE: the name that was looked up stands for another file now.
  public static let stale = TreeError.system(Errno(rawValue: ESTALE), "")

  /// ESTALE: the name of the file stands for another file now.
  static func replaced(_ sentence: String) -> TreeError {
    TreeError(Errno(rawValue: ESTALE), sentence)
  }

  /// ENOTEMPTY.
  public static func notEmpty(_ sentence: String) -> TreeError {
    TreeError(.directoryNotEmpty, sentence)
  }

  /// EPERM: the rules of the search list, or of the tree, refuse it.
  public static func refused(_ sentence: String) -> TreeError { TreeError(.notPermitted, sentence) }

  /// EINVAL: the text is not a value of the key's type, or a schema does not allow the value.
  public static func notAValue(_ sentence: String) -> TreeError {
    TreeError(.invalidArgument, sentence, isOfText: true)
  }

  /// EINVAL: the request has no meaning.
  public static func invalid(_ sentence: String) -> TreeError {
    TreeError(.invalidArgument, sentence)
  }

  /// EIO: a property list cannot be read.
  public static func unreadable(_ sentence: String) -> TreeError {
    TreeError(.inputOutput, sentence, mayPass: true)
  }

  /// EFBIG for a text that would be longer than a value's may be.
  static func textTooLarge(_ subject: String) -> TreeError {
    TreeError(.fileTooLarge, "\(subject): its text may have 16 MiB at most")
  }

  /// Another errno, e.g. ENOSPC, EACCES or ETIMEDOUT.
  public static func system(_ errno: Errno, _ sentence: String) -> TreeError {
    TreeError(errno, sentence.isEmpty ? nil : sentence, mayPass: true)
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
