import Foundation

/// Servers of etcd for one test, on the loopback address and in a directory of their own. They are
/// ended by their process ids.
public final class Etcd: @unchecked Sendable {
  // Process is not Sendable; only the test's thread uses it.
  private struct Member {
    let name: String
    let client: String
    let peer: String
    var process: Process?
  }

  private let root: String
  private let options: [String]
  private var members: [Member]
  private let certificates: Certificates?

  /// Starts servers, and returns when each answers.
  /// - Parameters:
  ///   - members: how many there are.
  ///   - certificates: those of TLS; nil means the servers speak http.
  ///   - options: further words of etcd's command line.
  public init(
    in directory: String, members count: Int = 1, certificates: Certificates? = nil,
    options: [String] = []
  ) throws {
    root = directory + "/etcd-\(UUID().uuidString.prefix(8))"
    (self.options, self.certificates) = (options, certificates)
    let scheme = certificates == nil ? "http" : "https"
    let ports = try Self.freePorts(2 * count)
    members = (0..<count).map { index in
      Member(
        name: "m\(index)", client: "\(scheme)://127.0.0.1:\(ports[2 * index])",
        peer: "http://127.0.0.1:\(ports[2 * index + 1])")
    }
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    for index in members.indices { try launch(index) }
    for index in members.indices { try awaitAnswer(index) }
  }

  /// The URLs of the servers.
  public var endpoints: [String] { members.map(\.client) }

  /// The process of a server that runs.
  public func process(_ index: Int = 0) -> pid_t { members[index].process?.processIdentifier ?? 0 }

  /// Kills a server with SIGKILL.
  public func kill(_ index: Int = 0) {
    guard let process = members[index].process else { return }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    members[index].process = nil
  }

  /// Starts a server that was killed, and returns when it answers.
  public func start(_ index: Int = 0) throws {
    try launch(index)
    try awaitAnswer(index)
  }

  /// Kills all servers and removes their data.
  public func stop() {
    for index in members.indices { kill(index) }
    try? FileManager.default.removeItem(atPath: root)
  }

  /// Runs etcdctl to its end.
  /// - Parameter user: `name:password`; nil means none.
  @discardableResult
  public func control(_ words: [String], user: String? = nil) -> Outcome {
    var environment = ProcessInfo.processInfo.environment
    environment["ETCDCTL_API"] = "3"
    var arguments = ["--endpoints", endpoints.joined(separator: ",")]
    if let certificates { arguments += ["--cacert", certificates.authority] }
    if let user { arguments += ["--user", user] }
    return Program.run(Self.program("etcdctl"), arguments + words, environment: environment)
  }

  /// Has the servers forget all but the present values.
  public func compact() -> Outcome {
    let status = control(["endpoint", "status", "-w", "fields"]).output
    let line = status.split(separator: "\n").first { $0.contains("\"Revision\"") }
    return control(["compact", String(line?.split(separator: " ").last ?? "")])
  }

  // MARK: - Starting

  private static func program(_ name: String) -> String {
    let own = Program.package.appendingPathComponent(".build/etcd/usr/bin/\(name)").path
    return FileManager.default.isExecutableFile(atPath: own) ? own : "/usr/bin/\(name)"
  }

  private func launch(_ index: Int) throws {
    let member = members[index]
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Self.program("etcd"))
    process.arguments =
      [
        "--name", member.name, "--data-dir", "\(root)/\(member.name)",
        "--listen-client-urls", member.client, "--advertise-client-urls", member.client,
        "--listen-peer-urls", member.peer, "--initial-advertise-peer-urls", member.peer,
        "--initial-cluster", members.map { "\($0.name)=\($0.peer)" }.joined(separator: ","),
      ] + options
    if let certificates {
      process.arguments? += [
        "--cert-file", certificates.certificate, "--key-file", certificates.key,
      ]
    }
    let log = "\(root)/\(member.name).log"
    if !FileManager.default.fileExists(atPath: log) {
      _ = FileManager.default.createFile(atPath: log, contents: nil)
    }
    let file = FileHandle(forWritingAtPath: log)
    _ = try? file?.seekToEnd()
    process.standardError = file
    process.standardOutput = file
    process.standardInput = FileHandle.nullDevice
    try process.run()
    members[index].process = process
  }

  private func awaitAnswer(_ index: Int) throws {
    for _ in 0..<200 {
      // etcdctl trusts no certificate that has expired: such a server need only listen.
      let port = members[index].client.split(separator: ":").last ?? ""
      let listens = "exec 3<>/dev/tcp/127.0.0.1/\(port)"
      let words = ["--endpoints", members[index].client, "endpoint", "status"]
      let isThere =
        certificates == nil
        ? control(words).status == 0
        : Program.run("/bin/bash", ["-c", listens], environment: [:]).status == 0
      if isThere { return }
      usleep(50_000)
    }
    let log = (try? String(contentsOfFile: "\(root)/m\(index).log", encoding: .utf8)) ?? ""
    throw Mount.Failure(description: "etcd does not answer: \(log.suffix(500))")
  }

  /// Returns numbers of ports that nobody listens at.
  private static func freePorts(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    defer { for socket in sockets { close(socket) } }
    return try (0..<count).map { _ in
      let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      sockets.append(number)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
          bind(number, pointer, size) == 0 && getsockname(number, pointer, &size) == 0
        }
      }
      guard result else { throw POSIXError(.EADDRINUSE) }
      return UInt16(bigEndian: address.sin_port)
    }
  }

  /// Certificates of TLS, made by openssl(1).
  public struct Certificates: Sendable {
    /// The certificate that signs the others.
    public let authority: String
    /// The server's certificate.
    public let certificate: String
    /// The server's private key.
    public let key: String

    /// Makes certificates in a directory.
    /// - Parameter days: how long the server's is valid; negative if it has expired.
    public init(in directory: String, name: String, days: Int = 2) {
      let base = "\(directory)/\(name)"
      (authority, certificate, key) = ("\(base)-ca.pem", "\(base).pem", "\(base).key")
      let end = "$(date -u -d '\(days) days' +%Y%m%d%H%M%SZ)"
      let script = """
        set -e; cd \(directory)
        openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=\(name)-ca \
          -keyout \(base)-ca.key -out \(authority)
        openssl req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout \(key) -out \(base).csr
        printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' > \(base).ext
        mkdir -p \(base)-db; : > \(base)-db/index; echo 01 > \(base)-db/serial
        printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=\(base)-db/index\\nserial=\(base)-db/serial\\n\
        new_certs_dir=\(base)-db\\ndefault_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' \
          > \(base).conf
        openssl ca -batch -notext -config \(base).conf -cert \(authority) -keyfile \(base)-ca.key \
          -in \(base).csr -out \(certificate) -extfile \(base).ext \
          -startdate 20200101000000Z -enddate \(end)
        """
      let outcome = Program.run(
        "/bin/bash", ["-c", script], environment: ProcessInfo.processInfo.environment)
      precondition(outcome.status == 0, outcome.errors)
    }
  }
}
