import Testing

@testable import PreferenceTree

@Suite("Names of scratch files") struct ScratchNameTests {
  typealias Making = ScratchName.Making

  private static let keys = ["K", "Key1", "Show"]
  private static let plain = Making.file(exclusively: false, readsToo: false)
  /// As cp, tar, git and install make a new file.
  private static let exclusive = Making.file(exclusively: true, readsToo: false)
  /// As mkstemp(3) does.
  private static let random = Making.file(exclusively: true, readsToo: true)

  private func judge(
    _ name: String, _ making: Making, beside keys: [String] = Self.keys
  ) -> ScratchName.Verdict {
    ScratchName.judge(name, making, isKey: keys.contains)
  }

  @Test(
    "a name that a key can have is a key at once, beside any other key",
    arguments: [
      ("tab", "tab_width"), ("theme", "theme_light"), ("sort", "sort_reverse"),
      ("sort", "sort_alias"), ("NSRecentDocumentsLimit", "NSRecentDocumentsLimit_Folders"),
      ("_FXSortFoldersFirst", "_FXSortFoldersFirstOnDesktop"), ("autohide", "autohide-delay"),
      ("ssl", "ssl_crl_dir"), ("ssl", "ssl_ca_file"), ("jit", "jit_provider"),
      ("geqo", "geqo_effort"), ("log_statement", "log_statement_stats"),
      ("recovery_target", "recovery_target_lsn"), ("include", "include_dir"),
      ("hot_standby", "hot_standby_feedback"), ("CACHE_PLUGIN", "CACHE_PLUGIN_PREFIX"),
      ("DEFAULT_BECOME", "DEFAULT_BECOME_EXE"), ("K", "K.1"), ("K", "K.old"), ("K", "K.new"),
      ("K", "K.bak"), ("K", "K.orig"), ("K", "K.save"), ("K", "K.save.1"), ("K", "K.4711"),
      ("K", "Kx1y2z3"), ("K", "Ka1b2c3d4"), ("K", "K.a1b2c3"), ("K", "K20261121-4711-1abcde"),
      ("Key1", "Key1Password"), ("K", "sedatives"), ("K", "Cubism"),
    ])
  func settings(_ key: String, _ name: String) {
    #expect(judge(name, Self.plain, beside: [key, name]) == .key)
    #expect(judge(name, Self.plain, beside: [key]) == .key)
    #expect(judge(name, Self.exclusive, beside: [key]) == .key)
  }

  @Test(
    "a redirection to a name that only resembles a temporary one makes a key",
    arguments: ["K.tmp", "K.lock", "K.part", "K.gawk.x9Yz1a", "K.o3a4b5c", "Other.tmp"])
  func redirected(_ name: String) { #expect(judge(name, Self.plain) == .key) }

  @Test(
    "made exclusively, such a name is in doubt",
    arguments: [
      "K.tmp", "K.lock", "Other.tmp", "K.augnew", "K.augnew.a1B2c3", "K.gawk.x9Yz1a", "K.o3a4b5c",
      "K.r3a4b5c",
    ])
  func exclusively(_ name: String) { #expect(judge(name, Self.exclusive) == .inDoubt) }

  @Test(
    "what mkstemp(3) makes is in doubt, and temporary if no key can have the name",
    arguments: ["anything", "K.a1b2c3d4.tmp", "K20261121-4711-1abcde", "sedx1Y2z3", "tab_width"])
  func randomNames(_ name: String) {
    #expect(judge(name, Self.random) == .inDoubt)
    #expect(judge("." + name, Self.random) == .temporary)
  }

  @Test(
    "a companion of a key is an editor's, and in doubt where there is no such key",
    arguments: [".#K.swp", ".K.swp", ".K.swpx", ".K.un~", "#K#", ".#K"])
  func companions(_ name: String) {
    let keys = ["K", "K.swp"]
    #expect(judge(name, Self.plain, beside: keys) == .temporary)
    #expect(judge(name, Self.exclusive, beside: keys) == .temporary)
    #expect(judge(name, Self.plain, beside: []) == .inDoubt)
  }

  @Test("a backup that an editor makes is temporary, one that a person writes in doubt")
  func backups() {
    for name in ["K~", "K.~1~", "K.~12~"] {
      for making in [Making.rename, .link, Self.exclusive] {
        #expect(judge(name, making) == .temporary, "\(name)")
        #expect(judge("No" + name, making) == .inDoubt, "\(name)")
      }
      #expect(judge(name, Self.plain) == .inDoubt, "\(name)")
    }
  }

  @Test(
    "a name that is scratch by pattern, and nobody's companion, is in doubt",
    arguments: [".hidden", "#x", "4913", "tmp.x", "x.swp", "DEADJOE", "ed.hup", "draft~"])
  func patterns(_ name: String) {
    #expect(judge(name, Self.plain) == .inDoubt)
    #expect(judge(name, Self.exclusive) == .inDoubt)
  }

  @Test("a tool's own hidden name, made exclusively, is temporary")
  func hidden() {
    for name in [".goutputstream-A1B2C3", ".New.swp", ".K.tmp", ".~lock.K#"] {
      #expect(judge(name, Self.exclusive) == .temporary, "\(name)")
      #expect(judge(name, Self.plain) == .inDoubt, "\(name)")
    }
  }

  @Test("renaming and linking a key to a backup's name parks or copies it; other names are keys")
  func parking() {
    for name in ["K.bak", "K.old", "K.orig", "K.1"] {
      #expect(judge(name, .rename, beside: ["K"]) == .inDoubt, "\(name)")
      #expect(judge(name, .link, beside: ["K"]) == .inDoubt, "\(name)")
    }
    for name in ["Other.old", "K_width", "Kx1y2z3", "K.1.2.x"] {
      #expect(judge(name, .rename, beside: ["K"]) == .key, "\(name)")
    }
    #expect(judge("CuA1b2c3", .link) == .inDoubt)
    #expect(judge("K_width", .link) == .key)
  }

  @Test("directories, and an escape that says that a key is meant")
  func others() {
    #expect(judge("x.lock", .directory) == .temporary)
    #expect(judge("folder", .directory) == .key)
    #expect(ScratchName.isOfDocument("com.example.json.tmp"))
    #expect(!ScratchName.isOfDocument("com.example.tmp"))
    for making in [Self.plain, Self.exclusive, Self.random, .rename, .link] {
      for name in ["%2Ehidden", "%74ab_width", "%4B.tmp"] { #expect(judge(name, making) == .key) }
    }
  }
}
