import CCurl
import Glibc
import PreferenceCloud
import SystemCalls

/// Speaks with etcd's JSON gateway through libcurl.
///
/// Promises: a server of https is verified; a URL that `TransportSecurity` refuses fails. One
/// connection stays open, that of the watch; over HTTP/2 the calls share it. After `disconnect`
/// every request has a new connection. No password or token is logged.
///
/// Threads: one, which calls `wait` again and again. Nothing but `wait` blocks. Where nothing
/// happens it sleeps in poll(2).
public final class CurlTransport: CloudTransport {
  private let security: TransportSecurity
  private var multi: UnsafeMutableRawPointer
  private var calling: CurlHandle?
  private var watching: CurlHandle?
  /// What has happened and was not returned yet.
  private var happened: [CloudSession.Input] = []

  /// Creates a transport. Throws ENOMEM.
  public init(_ security: TransportSecurity) throws(SystemError) {
    guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let multi = curl_multi_init()
    else { throw SystemError("libcurl", "", Errno(rawValue: ENOMEM)) }
    (self.security, self.multi) = (security, multi)
  }

  deinit {
    remove(&calling)
    remove(&watching)
    curl_multi_cleanup(multi)
  }

  /// Sends a request. Its answer, or its failure, comes from `wait`.
  /// - Parameter patience: seconds after which a request that makes no progress has failed.
  public func call(_ url: String, _ body: [UInt8], token: String?, patience: Int) {
    remove(&calling)
    calling = start(url, body, token, patience: patience)
    if calling == nil { happened.append(.failed(Self.reason(url))) }
  }

  /// Sends the request of a watch, in place of the last watch. The lines of its answer come from
  /// `wait`.
  public func watch(_ url: String, _ body: [UInt8], token: String?) {
    remove(&watching)
    watching = start(url, body, token, patience: nil)
    if watching == nil { happened.append(.watchEnded(Self.reason(url))) }
  }

  /// Ends the watch.
  public func endWatch() {
    remove(&watching)
    happened.removeAll {
      switch $0 {
      case .watched, .watchEnded: true
      case .timeout, .answered, .failed, .networkChanged, .probe: false
      }
    }
  }

  /// Ends the request and the watch, and closes all connections. `wait` returns nothing about them
  /// from now on.
  public func disconnect() {
    remove(&calling)
    remove(&watching)
    happened = []
    // A connection of HTTP/2 outlives its requests in libcurl's pool, and the next one would be
    // sent on it, even if it is dead. The pool, and the addresses of names, go with their owner.
    guard let fresh = curl_multi_init() else { return }
    curl_multi_cleanup(multi)
    multi = fresh
  }

  private static func reason(_ url: String) -> String {
    "\(TransportSecurity.display(url)): \(TransportSecurity.refusal(of: url) ?? "no memory")"
  }

  private func start(
    _ url: String, _ body: [UInt8], _ token: String?, patience: Int?
  ) -> CurlHandle? {
    guard TransportSecurity.refusal(of: url) == nil,
      let handle = CurlHandle(url, body, token: token, patience: patience, security),
      curl_multi_add_handle(multi, handle.handle) == CURLM_OK
    else { return nil }
    return handle
  }

  private func remove(_ handle: inout CurlHandle?) {
    if let handle { curl_multi_remove_handle(multi, handle.handle) }
    handle = nil
  }

  // MARK: - Waiting

  /// Waits until something has happened, one of the descriptors can be read, or the deadline (nil
  /// if none) has passed.
  public func wait(until deadline: Instant?, or descriptors: [CInt]) -> [CloudSession.Input] {
    advance()
    if happened.isEmpty {
      let limit = deadline.map { CInt(clamping: max(0, $0.milliseconds(after: .now))) }
      var others = descriptors.map {
        curl_waitfd(fd: $0, events: Int16(CURL_WAIT_POLLIN), revents: 0)
      }
      // A day: libcurl wants a number.
      curl_multi_poll(multi, &others, UInt32(others.count), limit ?? 86_400_000, nil)
      advance()
    }
    defer { happened = [] }
    return happened
  }

  /// Lets libcurl send and receive, and collects what has come.
  private func advance() {
    var running: CInt = 0
    curl_multi_perform(multi, &running)
    if let watching { happened += watching.removeLines().map { .watched($0) } }
    var left: CInt = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE else { continue }
      ended(message.pointee.easy_handle, message.pointee.data.result)
    }
  }

  private func ended(_ handle: UnsafeMutableRawPointer?, _ result: CURLcode) {
    if let call = calling, call.handle == handle {
      happened.append(
        result == CURLE_OK
          ? .answered(status: call.status, body: call.body, date: call.date)
          : .failed(call.reason(result)))
      remove(&calling)
    } else if let watch = watching, watch.handle == handle {
      // An error of the gateway has no newline at its end.
      if !watch.body.isEmpty { happened.append(.watched(watch.body)) }
      happened.append(
        .watchEnded(result == CURLE_OK ? "the server closed it" : watch.reason(result)))
      remove(&watching)
    }
  }
}
