import CCrypto

/// A signed message: CMS SignedData in DER, with its content inside (RFC 5652).
enum SignedMessage {
  /// Whether the bytes begin like a message in DER, which no property list does.
  static func isSigned(_ bytes: [UInt8]) -> Bool { bytes.first == 0x30 }

  /// Verifies the message, and returns its content and the name of its signer. Throws if it is not
  /// a signed message, or if the signature is not valid.
  ///
  /// The signature and the digest of the content are always checked, the signer's certificate only
  /// where `signers` has any. Then signatures with MD5 or SHA-1 do not count, nor do certificates
  /// that are for the servers of TLS alone: what a web server has must not force settings. A
  /// certificate may be for any other purpose. Its validity is judged at the time of the signature
  /// that the message states, and not at all if it states none: profiles outlive their
  /// certificates.
  ///
  /// Threads: any. Cost: some 100 µs.
  /// - Parameter signers: certificates in DER or PEM. If there are any, the message must be signed
  ///   by one of them, or by a certificate that one of them issued.
  static func open(
    _ bytes: [UInt8], signers: [[UInt8]]?
  ) throws(ProfileRefusal) -> (content: [UInt8], signer: String) {
    ERR_clear_error()
    let input = memory(bytes)
    defer { BIO_free(input) }
    guard let message = d2i_CMS_bio(input, nil) else { throw failure("it is no signed message") }
    defer { CMS_ContentInfo_free(message) }
    let store = X509_STORE_new()
    defer { X509_STORE_free(store) }
    var flags = UInt32(CMS_BINARY)
    if let signers {
      configure(store, message)
      for signer in signers { add(signer, to: store) }
    } else {
      flags |= UInt32(CMS_NO_SIGNER_CERT_VERIFY)
    }
    let output = BIO_new(BIO_s_mem())
    defer { BIO_free(output) }
    guard CMS_verify(message, nil, store, nil, output, flags) == 1 else {
      throw failure("its signature does not hold")
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
      throw ProfileRefusal("its signature is made with MD5 or SHA-1, which do not count")
    }
    guard let certificates = prefsfs_signer_certificates(message) else { return }
    defer { prefsfs_free_certificates(certificates) }
    for index in 0..<prefsfs_certificate_count(certificates) {
      let certificate = prefsfs_certificate(certificates, index)
      // UINT32_MAX: it says nothing of its use.
      if X509_get_extended_key_usage(certificate) == UInt32(XKU_SSL_SERVER) {
        throw ProfileRefusal("the certificate of its signer is for the servers of TLS alone")
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

  /// Adds a certificate, in PEM or DER, to the store. A file that is neither adds nothing.
  private static func add(_ certificate: [UInt8], to store: OpaquePointer?) {
    for isPEM in [true, false] {
      let input = memory(certificate)
      defer { BIO_free(input) }
      let read = isPEM ? PEM_read_bio_X509(input, nil, nil, nil) : d2i_X509_bio(input, nil)
      guard let read else { continue }
      X509_STORE_add_cert(store, read)
      X509_free(read)
      return
    }
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
