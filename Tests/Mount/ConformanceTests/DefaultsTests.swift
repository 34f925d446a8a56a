import Foundation
import Support
import Testing

/// `defaults` beside mounts: what one has written, the next command reads through the other, and it
/// survives `kill -9`.
@Suite("defaults and mounts") struct DefaultsTests {
  @Test("what defaults writes, the next command reads in the mount, 1,000 times")
  func writeThenRead() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/d; cd $M/d
        for i in $(seq 500); do
          defaults write d K -int $i; read text < K; [ "$text" = $i ] || echo "K is $text, not $i"
          [ ! -e New$i ] || echo "New$i before its time"
          defaults write d New$i text; read text < New$i; [ "$text" = text ] || echo "New$i: $text"
        done
        """)
      #expect(outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome)")
    }
  }

  @Test("every change by defaults shows in two mounts at once, and echo shows in defaults")
  func twoMounts() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let second = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { second.unmount() }
      let outcome = sandbox.shell(
        """
        mkdir $M/d
        for i in $(seq 50); do
          for m in $M $M2; do
            defaults write d K -int $i; [ "$(cat $m/d/K)" = $i ] || echo "K at $i"
            defaults rename d K L; [ "$(cat $m/d/L)" = $i ] || echo "L at $i"
            ! [ -e $m/d/K ] || echo "K still at $i"
            defaults delete d L; ! [ -e $m/d/L ] || echo "L still at $i"
            echo '{"J": '$i'}' | defaults import d -; [ "$(cat $m/d/J)" = $i ] || echo "J at $i"
            echo text$i > $m/d/E; [ "$(defaults read d E)" = text$i ] || echo "E at $i"
            defaults delete d; ! [ -e $m/d/J ] || echo "d still at $i"
            mkdir $m/d 2> /dev/null
          done
        done; true
        """)
      #expect(outcome.output.isEmpty, "\(outcome)")
    }
  }

  @Test("a read and a write are one message to the owner each: greeting and question together")
  func messages() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let count = "grep -c -e sendto $C/../calls"
      let script = """
        for verb in "read d Integer" "write d Integer -int 43"; do
          strace -e trace=sendto -o $C/../calls defaults $verb > /dev/null; \(count)
        done
        """
      #expect(sandbox.shell(script).output == "1\n1\n")
    }
  }

  @Test("what defaults wrote survives kill -9 of every process")
  func killed() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        for i in $(seq 10); do
          defaults write d K$i -int $i; kill -9 $(cat \(sandbox.state)/prefsfs/*/lock)
        done
        for i in $(seq 10); do defaults read d K$i; done | tr '\\n' ' '
        """)
      #expect(outcome.output == "1 2 3 4 5 6 7 8 9 10 ")
    }
  }

  @Test("while the owner is stopped a write fails, and it is not carried out later")
  func stopped() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        defaults write d K old; p=$(cat \(sandbox.state)/prefsfs/*/lock)
        kill -STOP $p; until grep -q 'State:.T' /proc/$p/status; do sleep 0.01; done
        defaults write d K new; echo $?; kill -CONT $p; sleep 0.3; defaults read d K
        """)
      #expect(outcome.output == "1\nold\n")
      #expect(outcome.errors.contains("Could not write domain d; exiting"))
    }
  }

  @Test("where the home does not answer, each command ends, and a mount; programs read arguments")
  func hung() throws {
    let commands = [
      "read", "read d K", "read-type d K", "write d K 1", "delete d", "rename d K L",
      "import d in.plist", "export d out.plist", "domains", "find x", "explain d K", "watch d",
      "history", "undo 1", "apply in.plist", "synchronize", "suites d", "check",
    ]
    try withSandbox { sandbox in
      // Nobody reads the device of this mount, so no request to it is answered.
      let outcome = sandbox.shell(
        """
        cd \(sandbox.root); echo '{d = {A = 1;};}' > in.plist
        cat > ask <<'END'
        exec 9<> /dev/fuse; n=0
        mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hung $C || exit 1
        try() {
          n=$((n + 1))
          ( timeout -s KILL 60 "$@" > out.$n 2>&1 < /dev/null
            echo "$? $(grep -c 'its file system (fuse at .*) has not answered for 5 s' out.$n)" \
              "$(basename "$1") ${*:2}" > rest.$n ) &
        }
        \(commands.map { "try defaults \($0)" }.joined(separator: "\n"))
        try prefsfs -f $M; try $SAMPLE get K -K given; wait; cat rest.* | sort
        END
        unshare -m bash ask
        """)
      let lines =
        commands.map { "1 1 defaults \($0)" }
        + ["4 1 prefsfs -f \(sandbox.mountPoint)", "0 1 prefs-sample get K -K given"]
      #expect(
        Set(outcome.output.split(separator: "\n").map(String.init)) == Set(lines), "\(outcome)")
    }
  }
}
