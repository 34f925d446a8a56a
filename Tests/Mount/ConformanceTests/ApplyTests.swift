import Foundation
import Support
import Testing

/// Documents that are written to `.prefs/apply`.
@Suite("Changes as one document") struct ApplyTests {
  @Test("one write sets and removes keys of several domains, with their types, as one change")
  func transaction() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      let watcher = try sandbox.watch(["mount/d", "mount"])
      let outcome = sandbox.shell(
        """
        type() { getfattr --only-values -n user.prefs.type $M/$1; echo; }
        ls $M/new $M2/d/Text 2>&1 | wc -l
        document='{"d": {"Integer": 7, "Text": "14", "List": ["a", 1.5], "String": null, "None": null}'
        echo "$document"', "new": {"Flag": true}, "NSGlobalDomain": {"G": "x"}}' > $M/.prefs/apply; echo $?
        cat $M/d/Integer $M2/d/Text $M2/new/Flag $M/other/G; type d/Text; type d/List; type new/Flag
        ls $M/d/String $M2/d/String 2>&1 | grep -c 'No such file'
        defaults history --all --json | tail -n 1 | jq -c '[.via, (.changes | length)]'
        echo '{"d": {"Integer": 8}}' >> $M/.prefs/apply; cat $M2/d/Integer
        stat -c '%a %s' $M/.prefs/apply; cat $M/.prefs/apply | wc -c
        """)
      sandbox.end(watcher)
      #expect(
        outcome.output == """
          2
          0
          7
          14
          true
          x
          string
          array
          boolean
          2
          ["mount",6]
          8
          200 0
          0

          """, "\(outcome)")
      let events = sandbox.shell("cat $C/../events").output
      #expect(events.contains("MODIFY mount/d/Integer") && events.contains("CREATE mount/d/Text"))
      #expect(events.contains("DELETE mount/d/String") && events.contains("CREATE,ISDIR mount/new"))
    }
  }

  @Test("a document that is refused in one part changes nothing, and the log says why")
  func refused() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; defaults write $PREFSFS_SYSTEM_DIR/managed/d Forced -int 1; sleep 1; cd $M
        for text in '{"d": {"Integer": 1, "Forced": 2}}' '{"d": {"Integer": 1}, "e": 5}' \\
          '{"d": {"Integer": 1' '[]' '{"a/b": {"K": 1}, "d": {"Integer": 1}}'; do
          echo "$text" > .prefs/apply
        done
        cat d/Integer; rm .prefs/apply; mv .prefs/apply .prefs/other; echo x > .prefs/new
        """)
      let lines = outcome.output.split(separator: "\n").map { $0.split(separator: ": ").last ?? "" }
      #expect(
        lines == [
          "Operation not permitted", "Invalid argument", "Invalid argument", "Invalid argument",
          "Operation not permitted", "42", "Permission denied", "Permission denied",
          "Permission denied",
        ], "\(outcome)")
      #expect(mount.log.contains("apply: d Forced"), "\(mount.log)")
      #expect(mount.log.contains("apply: e: expected a dictionary"))
    }
  }
}
