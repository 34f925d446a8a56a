import Foundation
import Support
import Testing

/// A write(2) is answered once its change is certain, while the driver is still busy with what
/// follows. strace(1) makes the driver wait after each reply, so that what follows is late.
@Suite("Early replies to writes") struct EarlyReplyTests {
  /// Has `$D`, the driver, wait after each reply: for less than a truncation waits for a write.
  private static func delayed(_ mount: Mount) -> String {
    """
    delay() {
      D=$(ps -o pid= --ppid \(mount.guardian) | tr -d ' ')
      strace -f -qq -o /dev/null -e trace=writev -e inject=writev:delay_exit=12000 -p $D & S=$!
      until grep -q 'TracerPid:.[1-9]' /proc/$D/status; do sleep 0.01; done
    }
    """
  }

  @Test("what a write has set survives the driver's end right after the reply")
  func killed() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.delayed(mount))
        for i in 1 2 3 4 5; do
          delay
          /usr/bin/python3 -c "import os
        file = os.open('$M/d/String', os.O_WRONLY | os.O_TRUNC)
        os.write(file, b'text $i')
        os.kill($D, 9)"
          wait $S; cat $M/d/String; sleep 0.2; echo; cat $M/d/String; echo
        done
        """)
      let lines = (1...5).flatMap { ["text \($0)", "text \($0)"] }
      #expect(outcome.output.split(separator: "\n").map(String.init) == lines, "\(outcome)")
    }
  }

  /// A file that is written, and one that shows the same value. Python's open(), which asks the
  /// driver whether the file is a terminal, would wait for it.
  static let views: [(name: String, written: String, shown: String)] = [
    ("the file itself", "d/Integer", "d/Integer"),
    ("a key that another domain inherits", "NSGlobalDomain/Shared", "d/Shared"),
    ("a key of a suite", "s/Suited", "d/Suited"),
    ("a place", "d/Integer", ".prefs/places/user/d/Integer"),
    ("a place that is written", ".prefs/places/user/d/Integer", "d/Integer"),
    ("a report", "d/Integer", ".prefs/explain/d/Integer"),
    ("a document", "d/Integer", ".prefs/domains/d.json"),
  ]

  @Test("what else shows the value is right when the reply comes", arguments: views.indices)
  func others(_ index: Int) throws {
    let (name, written, shown) = Self.views[index]
    let prepare = { (sandbox: Sandbox) in
      Fixture.make(sandbox)
      sandbox.makeList(sandbox.config + "/.GlobalPreferences.plist", "dict(Shared=1)")
      sandbox.makeList(sandbox.config + "/s.plist", "dict(Suited=1)")
      sandbox.makeList(sandbox.config + "/prefsfs.plist", "{'Suites.d': ['s']}")
    }
    try withMount(prepare: prepare) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.delayed(mount))
        cat $M/\(written) $M/\(shown) > /dev/null; delay
        /usr/bin/python3 -c "import os
        def read():
            file = os.open('$M/\(shown)', os.O_RDONLY)
            try: return os.read(file, os.fstat(file).st_size)
            finally: os.close(file)
        for i in range(1001, 1007):
            read()
            file = os.open('$M/\(written)', os.O_WRONLY | os.O_TRUNC)
            os.write(file, b'%d' % i); os.close(file)
            text = read()
            if b'%d' % i not in text: print('stale', i, text)"
        kill -9 $S; wait $S
        """)
      #expect(outcome.output == "", "\(name): \(outcome)")
    }
  }
}
