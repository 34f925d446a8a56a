import CCurl
import Glibc

/// How a server is trusted, and how this client shows who it is.
///
/// A server of https is always verified, its certificate and its name. http is for servers on this
/// machine alone.
public struct TransportSecurity: Equatable, Sendable {
  /// The path of the certificates that the server's is verified with; nil means those of the
  /// system.
  public var authorityFile: String?
  /// The path of this client's certificate; nil if it has none.
  public var certificateFile: String?
  /// The path of the certificate's private key.
  public var keyFile: String?

  /// Creates a way to trust servers.
  public init(
    authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil
  ) {
    (self.authorityFile, self.certificateFile) = (authorityFile, certificateFile)
    self.keyFile = keyFile
  }

  /// Why requests are not sent to the URL; nil if they are sent.
  public static func refusal(of url: String) -> String? {
    guard let parts = curl_url() else { return "there is no memory" }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK,
      let scheme = part(CURLUPART_SCHEME, parts), let host = part(CURLUPART_HOST, parts)
    else { return "it is not a URL such as https://etcd.example.org:2379" }
    if part(CURLUPART_USER, parts) != nil || part(CURLUPART_PASSWORD, parts) != nil {
      return "a URL has no user and no password here; set User and PasswordFile"
    }
    switch scheme {
    case "https": return nil
    case "http" where isLoopback(host): return nil
    case "http": return "http is for servers on this machine; use https"
    default: return "use https"
    }
  }

  /// The URL for people: without a user, a password and a path.
  public static func display(_ url: String) -> String {
    guard let parts = curl_url() else { return "the URL" }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK,
      let scheme = part(CURLUPART_SCHEME, parts), let host = part(CURLUPART_HOST, parts)
    else { return "the URL" }
    let port = part(CURLUPART_PORT, parts).map { ":\($0)" } ?? ""
    return "\(scheme)://\(host)\(port)"
  }

  private static func part(_ part: CURLUPart, _ parts: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, part, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "[::1]" { return true }
    var address = in_addr()
    return inet_pton(AF_INET, host, &address) == 1 && UInt32(bigEndian: address.s_addr) >> 24 == 127
  }

  /// Calls the body with each of libcurl's options that differs from its default, which verifies
  /// certificate and name.
  func apply(_ set: (CURLoption, String) -> Void) {
    if let authorityFile { set(CURLOPT_CAINFO, authorityFile) }
    if let certificateFile { set(CURLOPT_SSLCERT, certificateFile) }
    if let keyFile { set(CURLOPT_SSLKEY, keyFile) }
  }
}
