import Glibc

/// An error number of the kernel (`errno`). The comment of each constant gives its C name.
public struct Errno: RawRepresentable, Hashable, Sendable, Error {
  /// The number itself, as in errno.h.
  public let rawValue: CInt

  /// Creates an error from a number of errno.h.
  public init(rawValue: CInt) { self.rawValue = rawValue }

  /// The calling thread's `errno`; read it directly after the call that failed.
  public static var current: Errno { Errno(rawValue: errno) }

  /// C: EPERM.
  public static let notPermitted = Errno(rawValue: EPERM)
  /// C: ENOENT.
  public static let noSuchFile = Errno(rawValue: ENOENT)
  /// C: EINTR.
  public static let interrupted = Errno(rawValue: EINTR)
  /// C: EIO.
  public static let inputOutput = Errno(rawValue: EIO)
  /// C: EAGAIN.
  public static let wouldBlock = Errno(rawValue: EAGAIN)
  /// C: EBUSY.
  public static let busy = Errno(rawValue: EBUSY)
  /// C: EMFILE.
  public static let tooManyOpen = Errno(rawValue: EMFILE)
  /// C: EEXIST.
  public static let fileExists = Errno(rawValue: EEXIST)
  /// C: ENOTDIR.
  public static let notDirectory = Errno(rawValue: ENOTDIR)
  /// C: EISDIR.
  public static let isDirectory = Errno(rawValue: EISDIR)
  /// C: EINVAL.
  public static let invalidArgument = Errno(rawValue: EINVAL)
  /// C: EDQUOT.
  public static let overQuota = Errno(rawValue: EDQUOT)
  /// C: EFBIG.
  public static let fileTooLarge = Errno(rawValue: EFBIG)
  /// C: ENOSPC.
  public static let noSpace = Errno(rawValue: ENOSPC)
  /// C: EROFS.
  public static let readOnlyFileSystem = Errno(rawValue: EROFS)
  /// C: ENAMETOOLONG.
  public static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
  /// C: ENOSYS.
  public static let noFunction = Errno(rawValue: ENOSYS)
  /// C: ENOTEMPTY.
  public static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
  /// C: ENODATA.
  public static let noData = Errno(rawValue: ENODATA)
  /// C: EILSEQ.
  public static let illegalByteSequence = Errno(rawValue: EILSEQ)
  /// C: EOPNOTSUPP.
  public static let notSupported = Errno(rawValue: EOPNOTSUPP)
  /// C: EACCES.
  public static let permissionDenied = Errno(rawValue: EACCES)
  /// C: EXDEV.
  public static let crossDevice = Errno(rawValue: EXDEV)
  /// C: ETIMEDOUT.
  public static let timedOut = Errno(rawValue: ETIMEDOUT)
  /// C: ENOTCONN; what stat(2) says of a mount point whose driver has died.
  public static let notConnected = Errno(rawValue: ENOTCONN)
  /// C: ENXIO.
  public static let noDevice = Errno(rawValue: ENXIO)
  /// C: ELOOP.
  public static let linkLoop = Errno(rawValue: ELOOP)
}

extension Errno: CustomStringConvertible {
  /// The C library's sentence, e.g. "No such file or directory".
  public var description: String { String(cString: strerror(rawValue)) }
}

/// A system call that failed: which call, on which path, and why.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Why it failed.
  public let errno: Errno
  /// The call, e.g. "rename".
  public let call: String
  /// The path that the call was made on; empty where there is none.
  public let path: String

  /// Describes a failed call, by default with the calling thread's `errno`.
  public init(_ call: String, _ path: String, _ errno: Errno = .current) {
    self.errno = errno
    self.call = call
    self.path = path
  }

  /// e.g. "open /etc/preferences: Permission denied".
  public var description: String {
    path.isEmpty ? "\(call): \(errno)" : "\(call) \(path): \(errno)"
  }
}
