import Foundation
import Support
import Testing

// Former names of keys, as `defaults` meets them.

extension SchemaMountTests {
  @Test(
    "a former name in a list where nothing is moved: its changes are seen, and writes have effect")
  func formerElsewhere() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; S=$PREFSFS_SYSTEM_DIR; mkdir -p $S/schemas
        wait_for() { for i in $(seq 40); do eval "$1" && return; sleep 0.1; done; echo "no: $1"; }
        python3 -c "import plistlib
        plistlib.dump(dict(pfm_subkeys=[dict(pfm_name='New', prefs_former_names=['Old'])]), open('$S/schemas/e.plist', 'wb'))"
        defaults write $S/e Old -int 1; cat $M/e/New; defaults write $S/e Old -int 2
        wait_for '[ "$(cat $M/e/New)" = 2 ]'; cat $M/e/New
        defaults -currentHost write e Old -int 5; cat $M/e/New
        defaults write e New -int 6; cat $M/e/New; defaults -currentHost read e New
        cp $S/schemas/e.plist $S/schemas/f.plist; defaults write f New -int 1; defaults -currentHost write f Old -int 7
        wait_for '[ "$(cat $M/f/New)" = 7 ]'; rm $M/f/New; sleep 1.1; cat $M/f/New; defaults -currentHost read f Old 2>&1 | tail -1
        rm $M/f/New; sleep 1.1; cat $M/f/New 2>&1 | grep -c 'No such file'
        """)
      #expect(
        outcome.output.replacing(sandbox.root, with: "") == """
          defaults: /system/e Old is named New now; programs read that
          1
          defaults: /system/e Old is named New now; programs read that
          2
          defaults: e Old is named New now; programs read that
          5
          6
          6
          defaults: f Old is named New now; programs read that
          1
          The domain/default pair of (f, Old) does not exist
          1

          """, "\(outcome)")
    }
  }
}
