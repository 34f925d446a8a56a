import CCrypto
import Glibc
import PreferenceCloud
import PreferenceModel
import SystemCalls

/// Seals values with AES-256-GCM. The key is 32 bytes in a file, as `head -c 32 /dev/urandom` makes
/// them.
///
/// A sealed value has 12 random bytes (the nonce), the encrypted bytes, and 16 bytes that tell
/// whether it was changed. These also cover what it belongs to: name and stamp.
struct FileSealer: ValueSealer {
  private let key: [UInt8]

  private static let keySize = 32
  private static let nonceSize = 12
  private static let tagSize = 16

  /// Reads the key. Throws where the file can be read by others than the user, or does not have 32
  /// bytes.
  init(file: String) throws(EngineError) {
    key = try SecretFile.bytes(file, limit: 4096)
    guard key.count == Self.keySize else {
      throw EngineError(
        .system(.invalidArgument),
        "\(file): a key has 32 bytes; make one with head -c 32 /dev/urandom")
    }
  }

  /// Tells this key from others, and does not show it: the first half of a SHA-256, as digits.
  var fingerprint: String {
    var digest = [UInt8](repeating: 0, count: 32)
    let text = Array("prefsfs account ".utf8) + key
    guard EVP_Digest(text, text.count, &digest, nil, EVP_sha256(), nil) == 1 else { return "" }
    return digest.prefix(16).map { String(UInt16($0) | 0x100, radix: 16).dropFirst() }.joined()
  }

  func seal(_ bytes: [UInt8], context: [UInt8]) -> [UInt8]? {
    var nonce = [UInt8](repeating: 0, count: Self.nonceSize)
    var random = SystemRandomNumberGenerator()
    for index in nonce.indices { nonce[index] = .random(in: 0...255, using: &random) }
    var tag = [UInt8](repeating: 0, count: Self.tagSize)
    guard let sealed = run(bytes, nonce, context, isSealing: true, &tag) else { return nil }
    return nonce + sealed + tag
  }

  func open(_ bytes: [UInt8], context: [UInt8]) -> [UInt8]? {
    guard bytes.count >= Self.nonceSize + Self.tagSize else { return nil }
    var tag = Array(bytes.suffix(Self.tagSize))
    let nonce = Array(bytes.prefix(Self.nonceSize))
    let sealed = Array(bytes.dropFirst(Self.nonceSize).dropLast(Self.tagSize))
    return run(sealed, nonce, context, isSealing: false, &tag)
  }

  /// Encrypts or decrypts. Returns nil where the tag does not fit: the bytes, the key or the name
  /// differ from what was sealed.
  private func run(
    _ bytes: [UInt8], _ nonce: [UInt8], _ subject: [UInt8], isSealing: Bool, _ tag: inout [UInt8]
  ) -> [UInt8]? {
    guard let context = EVP_CIPHER_CTX_new() else { return nil }
    defer { EVP_CIPHER_CTX_free(context) }
    var result = [UInt8](repeating: 0, count: bytes.count)
    var count: CInt = 0
    let mode: CInt = isSealing ? 1 : 0
    guard EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce, mode) == 1,
      EVP_CipherUpdate(context, nil, &count, subject, CInt(clamping: subject.count)) == 1,
      bytes.isEmpty
        || EVP_CipherUpdate(context, &result, &count, bytes, CInt(clamping: bytes.count)) == 1
    else { return nil }
    let size = CInt(Self.tagSize)
    if !isSealing, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, size, &tag) != 1 {
      return nil
    }
    var rest = [UInt8](repeating: 0, count: Self.tagSize)
    guard EVP_CipherFinal_ex(context, &rest, &count) == 1 else { return nil }
    if isSealing, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, size, &tag) != 1 {
      return nil
    }
    return result
  }
}

/// Files with passwords and keys.
enum SecretFile {
  /// The contents of a file that belongs to the user and that nobody else may read or write. Throws
  /// where that is not so.
  static func bytes(_ path: String, limit: Int) throws(EngineError) -> [UInt8] {
    try EngineError.wrapping { () throws(SystemError) in
      let file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK)
      var status = stat()
      guard fstat(file.number, &status) == 0, status.st_uid == geteuid(),
        status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0
      else {
        throw SystemError(
          "refused, because others may read it; use chmod 600", path, .permissionDenied)
      }
      return try file.readToEnd(limit: limit)
    }
  }
}
