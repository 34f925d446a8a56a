import CCurl
import PropertyList
import SystemCalls

/// One request on its way: libcurl's easy handle, and what has come of its answer.
///
/// Threads: those of the transport. libcurl calls the callbacks inside of `curl_multi_perform`.
final class CurlHandle {
  /// Whether the request is a watch, whose answer is taken line by line as it comes.
  private let isWatch: Bool
  let handle: UnsafeMutableRawPointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  /// Where libcurl writes what went wrong.
  private let error: UnsafeMutablePointer<CChar>
  private(set) var body: [UInt8] = []
  /// The complete lines of a watch that `removeLines` has not returned yet.
  private var lines: [[UInt8]] = []
  /// The server's clock, in milliseconds since 1970.
  private(set) var date: Int64?

  /// Bytes that an answer may have, and a line of a watch: what is longer ends the request. After a
  /// line that is too long everything is listed anew, so nothing is missed.
  private static let (largestAnswer, largestLine) = (256 << 20, 16 << 20)

  /// Milliseconds for which bytes, or the kernel's probes, may be unacknowledged: then the
  /// connection has failed (TCP_USER_TIMEOUT). Without it the kernel sends again for a quarter of
  /// an hour.
  private static let silence: UInt32 = 20_000

  /// Prepares a request; nil where libcurl has no memory.
  /// - Parameter patience: seconds after which a request that makes no progress has failed; nil if
  ///   it is a watch.
  init?(
    _ url: String, _ body: [UInt8], token: String?, patience: Int?, _ security: TransportSecurity
  ) {
    guard let handle = curl_easy_init() else { return nil }
    (self.handle, isWatch) = (handle, patience == nil)
    error = .allocate(capacity: Int(CURL_ERROR_SIZE))
    error.pointee = 0
    _ = prefsfs_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, error)
    let isSecure = url.lowercased().hasPrefix("https:")
    set(CURLOPT_URL, url)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_NOSIGNAL, 1)
    // A server that authenticates hundreds of hosts answers the first bytes of TLS late.
    set(CURLOPT_CONNECTTIMEOUT, max(10, (patience ?? 0) / 2))
    // The end of a request does not wait for a name server that does not answer.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    set(CURLOPT_TCP_KEEPIDLE, 15)
    set(CURLOPT_TCP_KEEPINTVL, 5)
    _ = prefsfs_curl_set_user_timeout(handle, Self.silence)
    if let patience {
      // Over http the connection of a call, which is to this machine, is closed at once: only that
      // of the watch stays.
      set(CURLOPT_LOW_SPEED_LIMIT, 1)
      set(CURLOPT_LOW_SPEED_TIME, patience)
      if !isSecure { set(CURLOPT_FORBID_REUSE, 1) }
    }
    // A request to this machine never goes through a proxy.
    if !isSecure { set(CURLOPT_PROXY, "") }
    if isSecure {
      // HTTP/2 where the server has it: then the watch and the calls share a connection. (Over http
      // a call that waits for the watch's connection would wait for ever.)
      set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
      set(CURLOPT_PIPEWAIT, 1)
    }
    security.apply { set($0, $1) }
    // An empty value removes the header: a 100-continue would cost a round trip.
    var fields = ["Content-Type: application/json", "Expect:"]
    if let token { fields.append("Authorization: \(token)") }
    // etcd ends the watch when its server has lost the others, and hears of nothing any more.
    if isWatch { fields.append("Grpc-Metadata-hasleader: true") }
    for field in fields { headers = curl_slist_append(headers, field) }
    _ = prefsfs_curl_set_headers(handle, headers)
    body.withUnsafeBytes { _ = prefsfs_curl_set_body(handle, $0.baseAddress, $0.count) }
    receive()
  }

  deinit {
    curl_easy_cleanup(handle)
    error.deallocate()
    curl_slist_free_all(headers)
  }

  private func set(_ option: CURLoption, _ value: Int) {
    _ = prefsfs_curl_set_number(handle, option, value)
  }

  private func set(_ option: CURLoption, _ value: String) {
    _ = prefsfs_curl_set_text(handle, option, value)
  }

  // MARK: - Receiving

  private func receive() {
    let me = Unmanaged.passUnretained(self).toOpaque()
    _ = prefsfs_curl_set_pointer(handle, CURLOPT_WRITEDATA, me)
    _ = prefsfs_curl_set_pointer(handle, CURLOPT_HEADERDATA, me)
    _ = prefsfs_curl_set_callback(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, me in
      guard let me, let bytes else { return 0 }
      let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return Unmanaged<CurlHandle>.fromOpaque(me).takeUnretainedValue().add(part)
    }
    _ = prefsfs_curl_set_callback(handle, CURLOPT_HEADERFUNCTION) { bytes, size, count, me in
      guard let me, let bytes else { return 0 }
      let line = String(
        decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self)
      Unmanaged<CurlHandle>.fromOpaque(me).takeUnretainedValue().note(header: line)
      return size * count
    }
  }

  /// Adds bytes of the answer. Returns how many were taken; libcurl fails the request if that is
  /// fewer than it had.
  private func add(_ part: UnsafeRawBufferPointer) -> Int {
    let largest = isWatch ? Self.largestLine : Self.largestAnswer
    guard body.count + part.count <= largest else { return 0 }
    body += part
    guard isWatch, part.contains(UInt8(ascii: "\n")) else { return part.count }
    var lines = body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    body = Array(lines.removeLast())
    self.lines += lines.map { Array($0) }
    return part.count
  }

  private func note(header: String) {
    guard header.lowercased().hasPrefix("date:") else { return }
    let seconds = curl_getdate(String(header.dropFirst(5)), nil)
    if seconds > 0 { date = Int64(seconds).multipliedReportingOverflow(by: 1000).partialValue }
  }

  /// Removes the complete lines of a watch, and returns them.
  func removeLines() -> [[UInt8]] {
    defer { lines = [] }
    return lines.filter { !$0.isEmpty }
  }

  /// What went wrong. Of certificates libcurl says more; of others it says how long it took, which
  /// would make each failure a new one.
  func reason(_ result: CURLcode) -> String {
    let isOfCertificates = [
      CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
    ].contains(result)
    return isOfCertificates && error.pointee != 0
      ? String(cString: error) : String(cString: curl_easy_strerror(result))
  }

  /// The status of HTTP; 0 if there is no answer.
  var status: Int {
    var status = 0
    _ = prefsfs_curl_get_number(handle, CURLINFO_RESPONSE_CODE, &status)
    return status
  }
}
