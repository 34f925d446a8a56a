import CCrypto

/// A signed message: CMS SignedData in DER, with its content inside (RFC 5652).
enum SignedMessage {
  /// Whether the bytes begin like a message in DER, which no property list does.
  static func isSigned(_ bytes: [UInt8]) -> Bool { bytes.first == 0x30 }

  /// Verifies the message, and returns its content and the name of its signer. Throws if it is not
  /// a signed message, or if the signature is not valid.
  ///
  /// The signature and the digest of the content are always checked, the signer's certificate only
  /// where `signers` has any. Then signatures with MD5 or SHA-1 do not count, neither of the message
  /// nor of a certificate that a signer issued, nor do keys of less than 112 bits of security (RSA
  /// with less than 2,048 bits), nor certificates that are for the servers of TLS alone: what a web
  /// server has must not force settings. A certificate may be for any other purpose. Its validity is
  /// judged at the time of the signature that the message states, and not at all if it states none:
  /// profiles outlive their certificates.
  ///
  /// Threads: any. Cost: some 100 µs.
  /// - Parameter signers: files with certificates in PEM, or one in DER. If there are any, the
  ///   message must be signed by one of these, which it need not carry, or by a certificate that one
  ///   of them issued.
  static func open(
    _ bytes: [UInt8], signers: [[UInt8]]?
  ) throws(ProfileRefusal) -> (content: [UInt8], signer: String) {
    ERR_clear_error()
    let input = memory(bytes)
    defer { BIO_free(input) }
    guard let message = d2i_CMS_bio(input, nil) else { throw failure("it is not a signed message") }
    defer { CMS_ContentInfo_free(message) }
    let store = X509_STORE_new()
    defer { X509_STORE_free(store) }
    let trusted = prefsfs_new_certificates()
    defer { prefsfs_end_certificates(trusted) }
    var flags = UInt32(CMS_BINARY)
    if let signers {
      configure(store, message)
      for signer in signers { add(signer, to: store, trusted) }
    } else {
      flags |= UInt32(CMS_NO_SIGNER_CERT_VERIFY)
    }
    let output = BIO_new(BIO_s_mem())
    defer { BIO_free(output) }
    guard CMS_verify(message, trusted, store, nil, output, flags) == 1 else {
      throw failure("its signature is not valid")
    }
    if signers != nil { try requireStrong(message) }
    var start: UnsafeMutablePointer<CChar>?
    let count = prefsfs_bio_bytes(output, &start)
    let content = UnsafeRawBufferPointer(start: start, count: max(0, count))
    return (Array(content), signer(of: message))
  }

  /// Throws where a signature, or the certificate of a signer, is not strong enough to count.
  private static func requireStrong(_ message: OpaquePointer) throws(ProfileRefusal) {
    let infos = prefsfs_signers(message)
    for index in 0..<prefsfs_signer_count(infos)
    where weak.contains(prefsfs_digest_of(prefsfs_signer(infos, index))) {
      throw ProfileRefusal("its signature uses MD5 or SHA-1, which are not accepted")
    }
    guard let certificates = prefsfs_signer_certificates(message) else { return }
    defer { prefsfs_free_certificates(certificates) }
    for index in 0..<prefsfs_certificate_count(certificates) {
      let certificate = prefsfs_certificate(certificates, index)
      // UINT32_MAX: it says nothing of its use.
      if X509_get_extended_key_usage(certificate) == UInt32(XKU_SSL_SERVER) {
        throw ProfileRefusal("its signer's certificate is only for TLS servers")
      }
    }
  }

  private static let weak = [NID_md4, NID_md5, NID_sha1]

  /// A copy of the bytes that libcrypto can read.
  private static func memory(_ bytes: [UInt8]) -> OpaquePointer? {
    let copy = BIO_new(BIO_s_mem())
    _ = bytes.withUnsafeBytes { BIO_write(copy, $0.baseAddress, CInt(clamping: $0.count)) }
    return copy
  }

  /// Has the verification accept any purpose, let a chain end at any certificate of the store, and
  /// judge validity at the time of the signature.
  private static func configure(_ store: OpaquePointer?, _ message: OpaquePointer) {
    let parameters = X509_STORE_get0_param(store)
    X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_ANY)
    // 2: 112 bits of security, for keys and for signatures of certificates.
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    var flags = UInt(X509_V_FLAG_PARTIAL_CHAIN)
    let signers = prefsfs_signers(message)
    let signer = prefsfs_signer_count(signers) > 0 ? prefsfs_signer(signers, 0) : nil
    if let time = signer.flatMap({ prefsfs_signing_time($0) }) {
      var moment = tm()
      if ASN1_TIME_to_tm(time, &moment) == 1 {
        X509_VERIFY_PARAM_set_time(parameters, timegm(&moment))
      }
    } else {
      flags |= UInt(X509_V_FLAG_NO_CHECK_TIME)
    }
    X509_VERIFY_PARAM_set_flags(parameters, flags)
  }

  /// Adds the certificates of a file, all in PEM or one in DER, to the store and to the list. A file
  /// that is neither adds nothing.
  private static func add(_ file: [UInt8], to store: OpaquePointer?, _ list: OpaquePointer?) {
    let input = memory(file)
    defer { BIO_free(input) }
    var count = 0
    while let certificate = PEM_read_bio_X509(input, nil, nil, nil) {
      add(certificate, store, list)
      count += 1
    }
    guard count == 0 else { return }
    let binary = memory(file)
    defer { BIO_free(binary) }
    if let certificate = d2i_X509_bio(binary, nil) { add(certificate, store, list) }
  }

  /// - Parameter certificate: the list owns it from now on.
  private static func add(
    _ certificate: OpaquePointer, _ store: OpaquePointer?, _ list: OpaquePointer?
  ) {
    X509_STORE_add_cert(store, certificate)
    prefsfs_add_certificate(list, certificate)
  }

  /// The common name of the first signer's certificate, or all of its subject.
  private static func signer(of message: OpaquePointer) -> String {
    guard let certificates = prefsfs_signer_certificates(message) else { return "" }
    defer { prefsfs_free_certificates(certificates) }
    guard prefsfs_certificate_count(certificates) > 0,
      let subject = X509_get_subject_name(prefsfs_certificate(certificates, 0))
    else { return "" }
    var text = [UInt8](repeating: 0, count: 256)
    let count = text.withUnsafeMutableBytes { buffer in
      X509_NAME_get_text_by_NID(
        subject, NID_commonName, buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
        CInt(buffer.count))
    }
    if count > 0 { return String(decoding: text.prefix(Int(count)), as: UTF8.self) }
    guard let line = X509_NAME_oneline(subject, nil, 0) else { return "" }
    defer { CRYPTO_free(line, "", 0) }
    return String(cString: line)
  }

  /// The refusal, with the reason that libcrypto gives.
  private static func failure(_ sentence: String) -> ProfileRefusal {
    let code = ERR_peek_last_error()
    guard code != 0, let reason = ERR_reason_error_string(code) else {
      return ProfileRefusal(sentence)
    }
    return ProfileRefusal("\(sentence): \(String(cString: reason))")
  }
}
