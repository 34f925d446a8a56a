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

  /// What a program writes, and what the file shows afterwards, both in Python.
  static let texts: [(name: String, writes: String, text: String)] = [
    (
      "a short text",
      "file = os.open(path + '/String', os.O_WRONLY | os.O_TRUNC); os.write(file, b'text')",
      "b'text'"
    ),
    (
      "a long text of a new key, and again its first byte",
      "file = os.open(path + '/String', os.O_WRONLY | os.O_CREAT); "
        + "os.write(file, b'x' * 100000); os.pwrite(file, b'y', 0)",
      "b'y' + b'x' * 99999"
    ),
    (
      "a long document, and again its beginning",
      "file = os.open(path + '/String', os.O_WRONLY | os.O_CREAT); "
        + "os.write(file, b'[1]' + b' ' * 100000); os.pwrite(file, b'[2]', 0)",
      "b'[2]' + b' ' * 100000"
    ),
  ]

  @Test(
    "what writes have set survives the driver's end right after the last reply",
    arguments: texts.indices)
  func killed(_ index: Int) throws {
    let (name, writes, text) = Self.texts[index]
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.delayed(mount))
        for i in 1 2 3 4 5; do
          \(index == 0 ? "" : "rm -f $M/d/String; sleep 1.1")
          delay
          /usr/bin/python3 -c "import os
        path = '$M/d'
        \(writes); os.kill($D, 9)"
          wait $S
          /usr/bin/python3 -c "import time
        for i in range(2):
            text = open('$M/d/String', 'rb').read()
            print(text == \(text) or text[:20] + text[-20:]); time.sleep(0.2)"
        done
        """)
      let lines = Array(repeating: "True", count: 10)
      #expect(
        outcome.output.split(separator: "\n").map(String.init) == lines, "\(name): \(outcome)")
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
