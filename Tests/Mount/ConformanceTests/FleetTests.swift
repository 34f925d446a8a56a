import Support
import Testing

/// What scripts of administrators meet: schemas that refuse or are broken, forced keys.
@Suite("Commands for a fleet") struct FleetTests {
  /// Runs a script in a sandbox that has a schema of `s`: `Tab`, 16 at most.
  private func output(of script: String) throws -> String {
    try withSandbox { sandbox in
      sandbox.shell("mkdir -p $PREFSFS_SYSTEM_DIR/schemas $PREFSFS_SYSTEM_DIR/managed")
      sandbox.makeList(
        sandbox.system + "/schemas/s.plist",
        "{'pfm_domain': 's', 'prefs_authoritative': True, 'pfm_subkeys': [{'pfm_name': 'Tab', "
          + "'pfm_type': 'integer', 'pfm_range_max': 16}]}")
      return sandbox.shell("exec 2>&1; cd $C/..; \(script)").output
        .replacing(#/.*defaults\[[0-9:]+\] /#, with: "")
    }
  }

  @Test("a schema refuses for apply, for declarations, and for a dry run")
  func refused() throws {
    let script = """
      echo '{"s": {"Tab": 99}}' > bad.json; echo '{"s": {"Tab": 7}}' > good.json
      for options in '' --dry-run '--as x' '--as x --dry-run'; do
        defaults apply $options bad.json 2>&1 | grep -o '99 is more than 16'
      done
      defaults apply good.json; defaults apply good.json; echo "[$?]"; defaults read s Tab
      """
    let text = try output(of: script)
    #expect(
      text == """
        99 is more than 16
        99 is more than 16
        99 is more than 16
        99 is more than 16
        s Tab: (none) -> 7
        [0]
        7

        """)
  }

  @Test("lint, check and describe complain about a schema that cannot be read")
  func brokenSchema() throws {
    let script = """
      echo 'x{' > $PREFSFS_SYSTEM_DIR/schemas/g.plist; defaults lint; echo "[$?]"
      defaults check | grep -c 'schemas/g.plist: '; defaults describe g
      : > empty.json; defaults check empty.json | cut -c 1-11
      """
    let text = try output(of: script)
    #expect(
      text == """
        schema g: it cannot be read and does not count; `lint FILE` says why
        [1]
        1
        The schema of the domain g cannot be read; prefs lint FILE says why
        empty.json:

        """)
  }

  @Test("a forced key is not renamed; an undo names the place")
  func forced() throws {
    let script = """
      echo '{K = 9;}' > $PREFSFS_SYSTEM_DIR/managed/f.plist; echo '{K = 1;}' > $C/f.plist; sleep 1
      defaults rename f K L; echo "[$?]"; defaults -currentHost write h K 1
      defaults write new K 1; defaults undo new; defaults undo h
      """
    let text = try output(of: script)
    #expect(
      text == """
        Failed to write domain f
        defaults: f K: the administrator has set it (a managed list)
        [1]
        new K: 1 -> (none)
        host h K: 1 -> (none)

        """)
  }
}
