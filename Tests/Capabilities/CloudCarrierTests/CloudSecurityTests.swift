import CloudCarrier
import EtcdClient
import Foundation
import PreferenceCloud
import Support
import SystemCalls
import Testing

/// Users, passwords, certificates and sealed values.
@Suite("Security of the cloud", .serialized) struct CloudSecurityTests {
  /// The words for etcdctl that make two users with a role each, as the article has them.
  private static func makeUsers(_ etcd: Etcd) {
    var commands = [["user", "add", "root:rootpass"], ["user", "grant-role", "root", "root"]]
    for user in ["ada", "bob"] {
      commands += [
        ["user", "add", "\(user):\(user)pass"], ["role", "add", "\(user)-prefs"],
        [
          "role", "grant-permission", "--prefix=true", "\(user)-prefs", "readwrite",
          "/prefsfs/\(user)/",
        ],
        ["user", "grant-role", user, "\(user)-prefs"],
      ]
    }
    for command in commands + [["auth", "enable"]] {
      let outcome = etcd.control(command)
      #expect(outcome.status == 0, "\(command) \(outcome)")
    }
  }

  private static func logIn(_ user: String, _ etcd: Etcd) -> String {
    "echo \(user)pass | defaults cloud login \(user) \(etcd.endpoints.joined(separator: " "))"
  }

  @Test("users see their own values alone; a change of account brings the values of the new one")
  func users() throws {
    try withMount { here, _ in
      try withMount { there, _ in
        let etcd = try Etcd(in: here.root)
        defer { etcd.stop() }
        Self.makeUsers(etcd)
        here.shell(
          "mkdir $M/d; echo ada > $M/d/Name; echo more > $M/d/More; defaults cloud add d '*'")
        #expect(here.shell(Self.logIn("ada", etcd)).output.hasPrefix("connected to http://127"))
        #expect(here.shell("defaults cloud sync").status == 0)
        there.shell("mkdir $M/d; echo bob > $M/d/Name; defaults cloud add d '*'")
        #expect(there.shell(Self.logIn("bob", etcd)).status == 0)
        #expect(there.shell("defaults cloud sync; cat $M/d/*").output == "bob\n")
        // Not even by hand.
        let foreign = etcd.control(["get", "--prefix", "/prefsfs/ada/"], user: "bob:bobpass")
        #expect(foreign.status != 0 && foreign.errors.contains("permission denied"), "\(foreign)")
        #expect(
          etcd.control(["get", "--prefix", "/prefsfs/ada/"], user: "ada:adapass").status == 0)
        // bob's machine becomes ada's.
        #expect(there.shell(Self.logIn("ada", etcd)).status == 0)
        there.waitUntil("defaults cloud sync 2")
        #expect(there.shell("cat $M/d/*").output == "more\nada\n")
        #expect(here.shell("cat $M/d/*").output == "more\nada\n")
        #expect(there.shell("echo both > $M/d/Name; defaults cloud sync").status == 0)
        here.waitUntil("[ \"$(cat $M/d/Name)\" = both ]")
        #expect(
          etcd.control(["get", "--prefix", "/prefsfs/bob/", "--keys-only"], user: "bob:bobpass")
            .output.contains("/prefsfs/bob/d/Name\n"))
      }
    }
  }

  @Test("a token that ended is renewed; a wrong password, and a file that others read, are said")
  func passwords() throws {
    try withMount { here, _ in
      let etcd = try Etcd(
        in: here.root, options: ["--auth-token", "simple", "--auth-token-ttl", "1"])
      defer { etcd.stop() }
      Self.makeUsers(etcd)
      let wrong = here.shell(
        "echo wrong | defaults cloud login ada \(etcd.endpoints.joined(separator: " "))")
      #expect(wrong.status == 1 && wrong.output.contains("authentication failed"), "\(wrong)")
      #expect(here.shell(Self.logIn("ada", etcd)).status == 0)
      let file = "$(defaults read prefsfs.cloud PasswordFile)"
      #expect(here.shell("stat -c %a \(file)").output == "600\n")
      here.shell("mkdir -p $M/.prefs/places/cloud/d; echo 1 > $M/.prefs/places/cloud/d/K")
      #expect(here.shell("defaults cloud sync").status == 0)
      sleep(3)
      #expect(here.shell("echo 2 > $M/d/K; defaults cloud sync; defaults cloud").status == 0)
      // Users and roles that change make every token an old one.
      etcd.control(["role", "add", "other"], user: "root:rootpass")
      #expect(here.shell("echo 3 > $M/d/K; defaults cloud sync; defaults cloud").status == 0)
      here.shell("chmod 644 \(file); defaults write prefsfs.cloud Prefix /prefsfs/ada/")
      here.waitUntil("defaults cloud | grep -q 'others may read it'")
      here.shell("chmod 600 \(file); defaults write prefsfs.cloud Prefix /prefsfs/ada")
      here.waitUntil("defaults cloud")
    }
  }

  @Test("https is verified; an expired certificate, one of others, and http elsewhere are refused")
  func certificates() throws {
    try withMount { here, _ in
      let good = Etcd.Certificates(in: here.root, name: "good")
      let other = Etcd.Certificates(in: here.root, name: "other")
      let expired = Etcd.Certificates(in: here.root, name: "expired", days: -1)
      let etcd = try Etcd(in: here.root, certificates: good)
      defer { etcd.stop() }
      here.shell("mkdir -p $M/.prefs/places/cloud/d; echo 1 > $M/.prefs/places/cloud/d/K")
      here.shell("defaults write prefsfs.cloud CAFile \(good.authority); \(Machines.connect(etcd))")
      here.waitUntil("defaults cloud sync 2")
      #expect(here.shell("echo 2 > $M/d/K; defaults cloud sync").status == 0)
      // HTTP/2: the watch and the calls share one connection.
      let connections = here.shell(
        "ss -tnp | grep -c \"prefs-cloud\\\",pid=$(pgrep -f \"prefs-cloud --owned --store $C\"),\"")
      #expect(connections.output == "1\n")
      try Self.checkConnections(here, etcd, good)
      here.shell("defaults write prefsfs.cloud CAFile \(other.authority)")
      here.waitUntil("defaults cloud | grep -q 'not connected.*certificate'")
      here.shell("defaults delete prefsfs.cloud CAFile")
      here.waitUntil("defaults cloud | grep -q 'not connected.*certificate'")
      let late = try Etcd(in: here.root, certificates: expired)
      defer { late.stop() }
      here.shell("defaults write prefsfs.cloud CAFile \(expired.authority)")
      here.shell(Machines.connect(late))
      here.waitUntil("defaults cloud | grep -q 'not connected.*certificate'")
    }
  }

  @Test("a server that asks for certificates lets in who has one, and nobody else")
  func clientCertificates() throws {
    try withMount { here, _ in
      let good = Etcd.Certificates(in: here.root, name: "good")
      let etcd = try Etcd(
        in: here.root, certificates: good,
        options: ["--client-cert-auth", "--trusted-ca-file", good.authority])
      defer { etcd.stop() }
      here.shell("mkdir -p $M/.prefs/places/cloud/d; echo 1 > $M/.prefs/places/cloud/d/K")
      here.shell("defaults write prefsfs.cloud CAFile \(good.authority); \(Machines.connect(etcd))")
      here.waitUntil("defaults cloud | grep -q '^not connected to https'")
      here.shell(
        "defaults write prefsfs.cloud CertFile \(good.certificate); "
          + "defaults write prefsfs.cloud KeyFile \(good.key)")
      here.waitUntil("defaults cloud sync 2")
      #expect(here.shell("echo 2 > $M/d/K; defaults cloud sync; defaults cloud").status == 0)
    }
  }

  /// Requests share a connection until `disconnect`, and never use it afterwards.
  private static func checkConnections(
    _ here: Sandbox, _ etcd: Etcd, _ certificates: Etcd.Certificates
  ) throws {
    let transport = try CurlTransport(TransportSecurity(authorityFile: certificates.authority))
    func port() -> String {
      let body = Array(#"{"key":"Zm9v"}"#.utf8)
      transport.call(etcd.endpoints[0] + "/v3/kv/range", body, token: nil, patience: 15)
      var inputs: [CloudSession.Input] = []
      for _ in 0..<100 where inputs.isEmpty {
        inputs = transport.wait(until: Instant.now.advanced(milliseconds: 100), or: [])
      }
      guard case .answered(200, _, _)? = inputs.first else { return "\(inputs)" }
      return here.shell("ss -tnp | grep 'pid=\(getpid()),' | awk '{ print $4 }'").output
    }
    let first = port()
    #expect(first.hasPrefix("127.0.0.1:") && port() == first)
    transport.disconnect()
    let second = port()
    #expect(second.hasPrefix("127.0.0.1:") && second != first)
  }

  @Test("the kernel tells of changes of the network")
  func network() throws {
    let watch = try NetworkWatch()
    #expect(watch.number >= 0)
    _ = watch.hasChanged()
  }

  @Test("who can write to the cloud cannot choose what leaves this machine, nor make settings")
  func foreignSettings() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir $M/com.secret; echo token > $M/com.secret/Token; mkdir $M/d")
      there.shell("defaults write d Mine 1; defaults cloud add d Mine")
      there.shell("mkdir -p $M/.prefs/places/cloud/NSGlobalDomain")
      for key in ["Keys", "User", "Prefix"] {
        there.shell(
          "printf '{\"com.secret\": [\"*\"]}' > $M/.prefs/places/cloud/NSGlobalDomain/\(key)")
      }
      #expect(there.shell("defaults cloud sync").status == 0)
      here.shell("defaults write prefsfs.cloud Prefix /prefsfs/root; defaults cloud sync")
      #expect(here.shell("cat $M/d/Mine $M/com.secret/Token").output == "1\ntoken\n")
      #expect(here.shell("defaults explain com.secret Token").output.hasPrefix("* user: token"))
      #expect(!machines.etcd.control(["get", "--prefix", "/"]).output.contains("com.secret/Token"))
      for move in ["mv $M/.prefs/places/cloud/d $M/.prefs/places/cloud/prefsfs.cloud"] {
        #expect(here.shell(move).status != 0)
      }
    }
  }

  @Test("a document chooses what leaves this machine, and where to, only with consent")
  func documents() throws {
    try withMount { (here: Sandbox, mount: Mount) throws -> Void in
      let outcome = here.shell(
        """
        cd $M; F=$C/../site.json
        echo '{"prefsfs.cloud": {"Endpoints": "http://127.0.0.1:1", "Keys": {"d": "*"}}}' > $F
        ( cat $F > .prefs/apply; cat $F > .prefs/declared/site.json ) 2>&1 | grep -c 'not permitted'
        for words in "$F" "--as site $F"; do
          defaults apply $words > /dev/null; echo $?; defaults read prefsfs.cloud; echo $?
          defaults apply --rules $words > /dev/null; echo $?; defaults read prefsfs.cloud Endpoints
          defaults delete prefsfs.cloud
        done
        """)
      let tried = "1\n1\n2\nhttp://127.0.0.1:1\n"
      #expect(outcome.output == "2\n\(tried)\(tried)", "\(outcome)")
      #expect(outcome.errors.contains("what leaves this machine") && mount.log.contains("--rules"))
    }
  }

  @Test(
    "http is for this machine alone",
    arguments: [
      ("https://etcd.example.org:2379", true), ("http://127.0.0.1:2379", true),
      ("http://127.8.9.1", true), ("http://[::1]:2379", true), ("http://localhost:1", true),
      ("http://etcd.example.org:2379", false), ("http://127.0.0.1.example.org", false),
      ("http://127.0.0.1@example.org", false), ("http://0.0.0.0", false), ("ftp://h", false),
      ("https://ada:secret@etcd.example.org", false), ("etcd.example.org", false), ("", false),
      ("file:///etc/passwd", false), ("http://10.0.0.1", false),
    ])
  func urls(_ url: String, _ isAllowed: Bool) {
    #expect((TransportSecurity.refusal(of: url) == nil) == isAllowed)
  }

  @Test("sealed values are not on the server; without the key they are left alone")
  func sealed() throws {
    try withMount { here, _ in
      try withMount { there, _ in
        let etcd = try Etcd(in: here.root)
        defer { etcd.stop() }
        let key = "\(here.root)/key"
        here.shell("(umask 077; head -c 32 /dev/urandom > \(key))")
        here.shell("defaults write prefsfs.cloud EncryptionKeyFile \(key)")
        here.shell(
          "mkdir -p $M/.prefs/places/cloud/d; echo confidential > $M/.prefs/places/cloud/d/K")
        here.shell(Machines.connect(etcd))
        here.waitUntil("defaults cloud sync 2")
        let stored = etcd.control(["get", "--prefix", "/prefsfs/"]).output
        #expect(stored.contains("/prefsfs/root/d/K") && !stored.contains("confidential"))
        // Without the key.
        there.shell("mkdir -p $M/.prefs/places/cloud/d; \(Machines.connect(etcd))")
        there.waitUntil("defaults cloud sync 2")
        #expect(there.shell("cat $M/d/K").status != 0)
        there.shell("echo mine > $M/.prefs/places/cloud/d/K")
        there.waitUntil("defaults cloud | grep -q 'another EncryptionKeyFile'")
        #expect(here.shell("defaults cloud sync; cat $M/d/K").output == "confidential\n")
        // With it.
        there.shell("defaults write prefsfs.cloud EncryptionKeyFile \(key)")
        there.waitUntil("defaults cloud sync 2")
        here.waitUntil("[ \"$(cat $M/d/K)\" = mine ]")
      }
    }
  }
}
