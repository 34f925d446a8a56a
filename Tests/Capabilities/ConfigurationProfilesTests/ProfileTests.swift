import Foundation
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import SystemCalls
import Testing

@testable import ConfigurationProfiles

/// What a profile sets, and what is refused, from its document alone.
@Suite("Configuration profiles") struct ProfileTests {
  /// A profile with these payloads, and these keys besides or in place of the usual ones.
  private static func document(_ payloads: [Value], _ others: ValueDictionary = [:]) -> Value {
    let usual: ValueDictionary = [
      "PayloadType": "Configuration", "PayloadVersion": 1, "PayloadIdentifier": "org.test",
      "PayloadUUID": "U", "PayloadContent": .array(payloads),
    ]
    return .dictionary(usual.merging(others))
  }

  private static func managed(_ domains: ValueDictionary) -> Value {
    [
      "PayloadType": "com.apple.ManagedClient.preferences", "PayloadVersion": 1,
      "PayloadContent": .dictionary(domains),
    ]
  }

  private static let date = AbsoluteTime(seconds: 100)

  /// The settings as lines: domain, key, kind.
  private static func lines(_ profile: Profile) -> [String] {
    profile.settings.map { setting in
      let kind =
        switch setting.kind {
        case .forced: "forced"
        case .once(nil): "often"
        case .once: "once"
        }
      return "\(setting.domain)\(setting.isHost ? "@" : "") \(setting.key) \(kind)"
    }.sorted()
  }

  static let accepted: [(name: String, document: Value, lines: [String])] = [
    ("no payloads", document([]), []),
    (
      "a plain payload: its type is the domain, Payload keys are no settings",
      document([
        ["PayloadType": "org.app", "PayloadUUID": "x", "PayloadEnabled": true, "K": 1, "L": [2]]
      ]), ["org.app K forced", "org.app L forced"]
    ),
    (
      "domains for this host, the global domain, and a part of a domain",
      document([
        ["PayloadType": "org.app.ByHost", "K": 1], ["PayloadType": ".GlobalPreferences", "G": 1],
        ["PayloadType": "com.apple.MCX(TimeServer)", "T": 1],
      ]), ["NSGlobalDomain G forced", "com.apple.MCX T forced", "org.app@ K forced"]
    ),
    (
      "several domains in one payload, forced, once and often",
      document([
        managed([
          "a": ["Forced": [["mcx_preference_settings": ["F": 1]]]],
          "b.ByHost": [
            "Set-Once": [
              ["mcx_preference_settings": ["O": 1], "mcx_data_timestamp": .date(date)],
              ["mcx_preference_settings": ["P": 1]],
            ]
          ], "c": ["Unknown": 1],
        ])
      ]), ["a F forced", "b@ O once", "b@ P often"]
    ),
    (
      "what configures a machine is left alone",
      document([["PayloadType": "com.apple.wifi.managed", "SSID_STR": "x"]]), []
    ),
    (
      "scopes, and keys that mean nothing here",
      document([], ["PayloadScope": "User", "PayloadRemovalDisallowed": true]), []
    ),
  ]

  @Test("a profile sets what its payloads say", arguments: accepted.map(\.name))
  func settings(_ name: String) throws {
    let example = try #require(Self.accepted.first { $0.name == name })
    #expect(Self.lines(try Profile(example.document)) == example.lines)
  }

  static let refused: [(name: String, document: Value, reason: String)] = [
    ("an array", [1], "a profile is a dictionary"),
    ("encrypted", document([], ["IsEncrypted": true]), "it is encrypted"),
    ("encrypted content", document([], ["EncryptedPayloadContent": 1]), "it is encrypted"),
    ("another type", document([], ["PayloadType": "Other"]), "PayloadType is not Configuration"),
    ("another version", document([], ["PayloadVersion": 2]), "PayloadVersion is not 1"),
    ("no identifier", document([], ["PayloadIdentifier": ""]), "no PayloadIdentifier"),
    ("no UUID", document([], ["PayloadUUID": 1]), "no PayloadUUID"),
    ("another scope", document([], ["PayloadScope": "Mars"]), "PayloadScope"),
    ("a wrong date", document([], ["RemovalDate": "tomorrow"]), "RemovalDate is not a date"),
    (
      "an infinite duration", document([], ["DurationUntilRemoval": .real(.infinity)]),
      "DurationUntilRemoval"
    ),
    ("no payloads", document([], ["PayloadContent": 1]), "PayloadContent is not an array"),
    ("a payload without type", document([["K": 1]]), "payload 1: it has no PayloadType"),
    (
      "a domain with a slash", document([["PayloadType": "a/b"]]),
      "payload 1: \"a/b\" cannot name a domain"
    ),
    (
      "settings that are none", document([managed(["a": ["Forced": [["x": 1]]]])]),
      "payload 1: a: an entry of Forced has no mcx_preference_settings"
    ),
    ("a row that is no array", document([managed(["a": ["Forced": 1]])]), "Forced is not an array"),
    (
      "a time stamp that is none",
      document([
        managed([
          "a": ["Set-Once": [["mcx_preference_settings": [:], "mcx_data_timestamp": 1]]]
        ])
      ]), "mcx_data_timestamp is not a date"
    ),
  ]

  @Test("what is no profile is refused with its reason", arguments: refused.map(\.name))
  func refusals(_ name: String) throws {
    let example = try #require(Self.refused.first { $0.name == name })
    #expect {
      try Profile(example.document)
    } throws: {
      "\($0)".contains(example.reason)
    }
  }

  // MARK: - Several profiles

  private func folder(_ sandbox: Sandbox) -> ProfileFolder {
    ProfileFolder(
      StoreLayout(
        userDirectory: sandbox.config, systemDirectory: sandbox.system,
        stateDirectory: sandbox.state, hostIdentifier: "H", userName: "ada"))
  }

  private func install(
    _ sandbox: Sandbox, _ file: String, _ payloads: [Value], _ others: ValueDictionary = [:]
  ) throws {
    sandbox.shell("mkdir -p \(sandbox.system)/managed/ada")
    let bytes = try Document.write(Self.document(payloads, others), as: .xml)
    try Data(bytes).write(to: URL(fileURLWithPath: "\(sandbox.system)/managed/\(file)"))
  }

  @Test("among profiles the last identifier in byte order wins, in each directory apart")
  func order() throws {
    try withSandbox { sandbox in
      let payload = { (value: Value) -> [Value] in [["PayloadType": "d", "K": value]] }
      try install(sandbox, "1.mobileconfig", payload("z"), ["PayloadIdentifier": "org.b"])
      try install(sandbox, "2.mobileconfig", payload("a"), ["PayloadIdentifier": "org.a"])
      try install(sandbox, "3.mobileconfig", payload("B"), ["PayloadIdentifier": "org.B"])
      try install(sandbox, "ada/4.mobileconfig", payload("own"), ["PayloadIdentifier": "a"])
      try install(sandbox, ".5.mobileconfig", payload("hidden"), ["PayloadIdentifier": "z"])
      try install(sandbox, "6.plist", payload("list"), ["PayloadIdentifier": "z"])
      let settings = folder(sandbox).settings(of: .managed, at: .now)
      #expect(settings.values["d"]?["K"]?.value == "z")
      #expect(settings.values["d"]?["K"]?.metadata.setter == .profile("org.b"))
      #expect(settings.reports.map { $0["identifier"] } == ["org.B", "org.a", "org.b"])
      let own = folder(sandbox).settings(of: .ownManaged, at: .now)
      #expect(own.values["d"]?["K"]?.value == "own")
      #expect(folder(sandbox).settings(of: .managedFor("bob"), at: .now).reports == [])
    }
  }

  @Test("arrays of several profiles become one, without duplicates where the profile says so")
  func unions() throws {
    try withSandbox { sandbox in
      // 40,000 elements, which are compared with each other, take no minute.
      let many = (0..<40_000).map { Value.string("v\($0)") }
      let once: Value = ["mcx_preference_settings": ["in": ["once"]]]
      for (file, values) in [("1", ["a", "b"]), ("2", ["b", "c"] + many)] as [(String, [Value])] {
        let entry: Value = [
          "mcx_preference_settings": ["in": .array(values)],
          "mcx_union_policy_keys": [
            [
              "mcx_input_key_names": ["in"], "mcx_output_key_name": "out",
              "mcx_remove_duplicates": true,
            ], ["mcx_input_key_names": ["in", "none"], "mcx_output_key_name": "all"],
          ],
        ]
        try install(
          sandbox, "\(file).mobileconfig",
          [Self.managed(["d": ["Forced": [entry], "Set-Once": [once]]])],
          ["PayloadIdentifier": .string("org.\(file)")])
      }
      let forced = folder(sandbox).settings(of: .managed, at: .now).values["d"]
      #expect(forced?["out"]?.value == .array(["a", "b", "c"] + many))
      #expect(forced?["all"]?.value == .array(["a", "b", "b", "c"] + many))
      #expect(forced?["in"]?.value == .array(["b", "c"] + many))
    }
  }

  @Test("the earlier of RemovalDate and DurationUntilRemoval ends a profile")
  func ends() throws {
    try withSandbox { sandbox in
      let payload: [Value] = [["PayloadType": "d", "K": 1]]
      let soon = (Date().timeIntervalSinceReferenceDate + 1000).rounded()
      try install(
        sandbox, "1.mobileconfig", payload,
        ["RemovalDate": .date(AbsoluteTime(seconds: soon)), "DurationUntilRemoval": 2000])
      let seconds: (Double) -> Timestamp = { later in
        Timestamp(nanoseconds: Timestamp.now.nanoseconds + Int64(later * 1e9))
      }
      let settings = folder(sandbox).settings(of: .managed, at: .now)
      #expect(settings.values["d"] != nil)
      let until = try #require(settings.until)
      #expect(abs(until.nanoseconds(after: seconds(1000))) < 10_000_000_000)
      #expect(!settings.isOutdated(at: .now) && settings.isOutdated(at: seconds(1100)))
      let ended = folder(sandbox).settings(of: .managed, at: seconds(1100))
      #expect(ended.values["d"] == nil && !ended.isOutdated(at: seconds(1100)))
      // The clock was wrong.
      #expect(ended.isOutdated(at: .now))
      try install(
        sandbox, "1.mobileconfig", payload,
        ["RemovalDate": .date(AbsoluteTime(seconds: 2e11)), "DurationUntilRemoval": 500])
      #expect(folder(sandbox).settings(of: .managed, at: seconds(400)).values["d"] != nil)
      #expect(folder(sandbox).settings(of: .managed, at: seconds(600)).values["d"] == nil)
      for duration in [Value.real(-1e308), .integer(WideInteger(UInt64.max))] {
        try install(sandbox, "1.mobileconfig", payload, ["DurationUntilRemoval": duration])
        _ = folder(sandbox).settings(of: .managed, at: .now)
      }
    }
  }

  // MARK: - Signatures

  private func openssl(_ sandbox: Sandbox) throws {
    try install(sandbox, "plain.mobileconfig", [["PayloadType": "d", "Color": "blue"]])
    let outcome = sandbox.shell(
      """
      cd \(sandbox.system)/managed; for n in One Two; do
        openssl req -x509 -newkey rsa:2048 -nodes -keyout $n.key -out $n.crt -subj /CN=$n -days 1
        openssl cms -sign -in plain.mobileconfig -signer $n.crt -inkey $n.key -outform DER \
          -nodetach -binary -out $n.mobileconfig; done; rm plain.mobileconfig
      openssl x509 -in One.crt -noout -subject
      """)
    #expect(outcome.output.contains("One"), "\(outcome)")
  }

  @Test("where signers are named, weak signatures and certificates of TLS servers do not count")
  func weakSignatures() throws {
    try withSandbox { sandbox in
      try install(sandbox, "plain.mobileconfig", [["PayloadType": "d", "Color": "blue"]])
      let outcome = sandbox.shell(
        """
        cd \(sandbox.system); mkdir profile-signers
        for n in Both Server Small; do
          use=serverAuth,clientAuth key=rsa:2048
          test $n != Server || use=serverAuth; test $n != Small || key=rsa:1024
          openssl req -x509 -newkey $key -nodes -keyout $n.key -out profile-signers/$n.crt \
            -subj /CN=$n -days 1 -addext extendedKeyUsage=$use
        done
        openssl req -newkey rsa:2048 -nodes -keyout Old.key -out Old.csr -subj /CN=Old
        openssl x509 -req -in Old.csr -CA profile-signers/Both.crt -CAkey Both.key -sha1 \
          -CAcreateserial -days 1 -out Old.crt
        openssl cms -sign -in managed/plain.mobileconfig -signer Old.crt -inkey Old.key \
          -outform DER -nodetach -binary -out Old.sha256
        openssl cms -sign -in managed/plain.mobileconfig -signer profile-signers/Both.crt \
          -inkey Both.key -outform DER -nodetach -binary -nocerts -out Bare.sha256
        for d in md5 sha1 sha256; do for n in Both Server Small; do
          openssl cms -sign -md $d -in managed/plain.mobileconfig -signer profile-signers/$n.crt \
            -inkey $n.key -outform DER -nodetach -binary -out $n.$d
        done; done; ls *.sha256
        """)
      let made = "Bare.sha256\nBoth.sha256\nOld.sha256\nServer.sha256\nSmall.sha256\n"
      #expect(outcome.output == made, "\(outcome)")
      let refusal = { (file: String) throws -> String in
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: "\(sandbox.system)/\(file)")))
        guard case .string(let why)? = folder(sandbox).check(bytes)["refused"] else { return "" }
        return why
      }
      #expect(try refusal("Both.sha256") == "")
      #expect(try refusal("Both.sha1").contains("SHA-1"))
      #expect(try refusal("Both.md5").contains("MD5"))
      #expect(try refusal("Server.sha256").contains("only for TLS servers"))
      #expect(try refusal("Small.sha256").contains("signature is not valid"))
      #expect(try refusal("Old.sha256").contains("signature is not valid"))
      #expect(try refusal("Bare.sha256") == "", "the signer's certificate is known")
      // Several certificates in one file.
      sandbox.shell(
        "cd \(sandbox.system)/profile-signers; cat Server.crt Both.crt > all; rm Both.crt Server.crt"
      )
      #expect(try refusal("Both.sha256") == "")
      sandbox.shell("rm -r \(sandbox.system)/profile-signers")
      #expect(try refusal("Both.sha1") == "" && refusal("Server.sha256") == "")
    }
  }

  @Test(
    "where profile-signers is no directory, no profile counts",
    arguments: ["ln -s /nowhere", "touch", "ln -s self"])
  func noSigners(_ make: String) throws {
    try withSandbox { sandbox in
      try install(sandbox, "plain.mobileconfig", [["PayloadType": "d", "Color": "blue"]])
      #expect(folder(sandbox).settings(of: .managed, at: .now).values["d"] != nil)
      sandbox.shell("cd \(sandbox.system); \(make) profile-signers")
      #expect(folder(sandbox).settings(of: .managed, at: .now).values["d"] == nil)
    }
  }

  @Test("a signed profile counts; with one byte changed it is refused, whichever byte it is")
  func signed() throws {
    try withSandbox { sandbox in
      try openssl(sandbox)
      let file = "\(sandbox.system)/managed/One.mobileconfig"
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: file)))
      let good = folder(sandbox).check(bytes)
      #expect(good["signer"] == "One" && good["refused"] == nil)
      let color = try #require(bytes.firstRange(of: Array("blue".utf8))).lowerBound
      var changed = bytes
      changed[color] ^= 1
      guard case .string(let why)? = folder(sandbox).check(changed)["refused"] else {
        Issue.record("a changed profile counts")
        return
      }
      #expect(why.contains("its signature is not valid"))
      // A change anywhere is refused, or changes nothing that counts (an unsigned attribute).
      for index in stride(from: 0, to: bytes.count, by: 37) {
        changed = bytes
        changed[index] ^= 0x55
        let report = folder(sandbox).check(changed)
        #expect(report["refused"] != nil || report["forced"] == good["forced"], "\(index)")
      }
      for count in [1, 2, 100, bytes.count - 1] {
        #expect(folder(sandbox).check(Array(bytes.prefix(count)))["refused"] != nil)
      }
    }
  }

  @Test("a certificate of a signer that cannot be read lets no profile through")
  func unreadableSigner() throws {
    try withSandbox { sandbox in
      try install(sandbox, "plain.mobileconfig", [["PayloadType": "d", "Color": "red"]])
      let signers = "\(sandbox.system)/profile-signers"
      let isForced = { folder(sandbox).settings(of: .managed, at: .now).values["d"] != nil }
      #expect(isForced())
      sandbox.shell("mkdir \(signers)")
      #expect(isForced(), "no signer is required yet")
      for command in ["mkfifo \(signers)/one.crt", "echo junk > \(signers)/one.crt"] {
        sandbox.shell(command)
        #expect(!isForced(), "\(command)")
        sandbox.shell("rm \(signers)/one.crt")
      }
      #expect(isForced())
    }
  }

  @Test("with certificates of signers, only what they signed counts")
  func signers() throws {
    try withSandbox { sandbox in
      try openssl(sandbox)
      sandbox.shell(
        "cd \(sandbox.system); mkdir profile-signers; cp managed/One.crt profile-signers")
      try install(sandbox, "plain.mobileconfig", [["PayloadType": "d", "Color": "red"]])
      let reports = folder(sandbox).settings(of: .managed, at: .now).reports
      let outcome = reports.map { report -> String in
        guard case .string(let file)? = report["file"] else { return "" }
        let name = file.split(separator: "/").last.map(String.init) ?? ""
        return report["refused"] == nil ? name : "not " + name
      }
      #expect(
        outcome.sorted()
          == ["One.mobileconfig", "not Two.mobileconfig", "not plain.mobileconfig"])
    }
  }
}
