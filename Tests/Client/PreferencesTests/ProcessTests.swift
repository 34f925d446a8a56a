import Foundation
import Support
import Testing

/// Programs that use the library, beside mounts and `defaults`: each reads what the others set, and
/// it survives the end of every process.
@Suite("Programs with preferences") struct ProcessTests {
  @Test("sets survive the end of their program at once", arguments: ["exit", "kill"])
  func ends(_ way: String) throws {
    try withSandbox { sandbox in
      for count in [1, 3000] {
        sandbox.shell("$SAMPLE set \(count) \(way)")
        sandbox.waitUntil("[ $(defaults read prefs-sample | grep -c Key) = \(count) ]")
        #expect(
          sandbox.shell("defaults read prefs-sample Key\(count - 1)").output == "\(count - 1)\n")
      }
    }
  }

  @Test("an object of the user who runs the program has its preferences; of another there is none")
  func user() throws {
    try withSandbox { sandbox in
      sandbox.shell("defaults write prefs-sample K mine")
      let outcome = sandbox.shell("$SAMPLE user $(id -un) K; $SAMPLE user nobody-else K")
      #expect(outcome.output == "mine\nnil\n", "\(outcome)")
    }
  }

  @Test("what was synchronized survives kill -9 of every process")
  func synchronized() throws {
    try withSandbox { sandbox in
      sandbox.shell("$SAMPLE sync K text; kill -9 $(cat \(sandbox.state)/prefsfs/*/lock)")
      #expect(sandbox.shell("$SAMPLE get K").output == "text\n")
    }
  }

  @Test("a program sets 100 keys with a few messages, and waits for no answer")
  func messages() throws {
    try withSandbox { sandbox in
      sandbox.shell("$SAMPLE get K")
      // Of the program only the calls that receive are traced: a slow sendto(2) would give the owner
      // the time to fall asleep after each set, so that each would have to wake it.
      sandbox.shell(
        """
        owner=$(cat \(sandbox.state)/prefsfs/*/lock)
        strace -f -qq -o $C/../owner -e trace=recvmsg -p $owner &
        sleep 0.5
        strace -f --seccomp-bpf -o $C/../program -e trace=recvmsg $SAMPLE set 100 exit
        sleep 0.5; kill $owner; wait
        """)
      let count = { (process: String) in
        Int(sandbox.shell("grep -c 'recvmsg.* = [1-9]' $C/../\(process)").output.dropLast()) ?? -1
      }
      // The hello, the requests for domains, and a message where the owner has to be woken.
      #expect((1...50).contains(count("owner")))
      #expect((1...50).contains(count("program")))
    }
  }

  @Test("sets leave a program while the owner is stopped, and are there when it goes on")
  func stopped() throws {
    try withSandbox { sandbox in
      sandbox.shell("$SAMPLE set 1 exit")
      let outcome = sandbox.shell(
        """
        p=$(cat \(sandbox.state)/prefsfs/*/lock)
        coproc S { $SAMPLE paused 50; }; pid=$S_PID; read -u ${S[0]}
        kill -STOP $p; echo go >&${S[1]}; time wait $pid; kill -CONT $p
        """)
      #expect(outcome.errors.contains("real\t0m0."), "\(outcome)")
      sandbox.waitUntil("[ $(defaults read prefs-sample | grep -c Key) = 50 ]")
    }
  }

  @Test("a mount and a program read what the other set, and the program's arguments win")
  func besideMount() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("mkdir $M/prefs-sample; $SAMPLE sync K first")
      #expect(sandbox.shell("cat $M/prefs-sample/K").output == "first\n")
      sandbox.shell("echo second > $M/prefs-sample/K")
      #expect(sandbox.shell("$SAMPLE get K").output == "second\n")
      #expect(sandbox.shell("$SAMPLE get K -K argument").output == "argument\n")
      sandbox.shell("defaults write -g G global")
      #expect(sandbox.shell("$SAMPLE get G").output == "global\n")
    }
  }

  @Test("a program observes changes by echo, defaults, an edited list, and a new owner")
  func observes() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("mkdir $M/prefs-sample; echo old > $M/prefs-sample/K")
      let watcher = try sandbox.start("exec $SAMPLE watch K 5 > $C/../told 2>&1")
      defer { sandbox.end(watcher) }
      sandbox.waitUntil("grep -q watching $C/../told")
      let told = { (count: Int) in
        sandbox.waitUntil("[ $(grep -c -e '->' $C/../told) = \(count) ]")
      }
      sandbox.shell("echo old > $M/prefs-sample/K; echo one > $M/prefs-sample/K")
      told(1)
      sandbox.shell("defaults write prefs-sample K two; defaults write prefs-sample L other")
      told(2)
      sandbox.shell("defaults write prefs-sample K two; defaults delete prefs-sample K")
      told(3)
      sandbox.waitUntil("test -f $C/prefs-sample.plist")
      sandbox.makeList(sandbox.config + "/prefs-sample.plist", "dict(K='edited')")
      told(4)
      mount.crash()
      sandbox.shell("defaults write prefs-sample K after")
      told(5)
      #expect(
        sandbox.shell("grep -e '->' $C/../told").output == """
          old -> one
          one -> two
          two -> (none)
          (none) -> edited
          edited -> after

          """)
    }
  }

  @Test("without prefsd nothing is read, a set is refused, nothing is durable; the log says so")
  func noOwner() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        export PREFSFS_PREFSD=/nope; $SAMPLE get K; $SAMPLE set 1 stay; echo $?
        $SAMPLE sync Synchronized text; echo $?
        """)
      // The program would end with kill -9 if `synchronize` were true.
      #expect(outcome.output == "(none)\n0\n1\n", "\(outcome)")
      #expect(outcome.errors.contains("no preferences can be read or set"))
      #expect(outcome.errors.contains("Key0"), "the set that was refused is named")
    }
  }

  /// What is stored in Frame, whose members are integers; what a program reads, whose default is
  /// 800 by 600; and what its log says when it reads, and when it sets the height.
  static let frames: [(stored: String, read: String, log: [String])] = [
    ("-dict width -int 1024 height -int 768", "1024 768", []),
    ("-dict width -int 1024", "1024 600", []),
    ("-dict width 1024 height ' 768 '", "1024 768", []),
    (
      "-dict width wide height -int 768", "800 768",
      ["the default's are used: width", "is replaced; `prefs history prefs-sample Frame`"]
    ),
    (
      "-array 1024 768", "800 600",
      ["an array cannot be read as Frame", "is replaced; `prefs history prefs-sample Frame`"]
    ),
  ]

  @Test(
    "members that are missing or odd come from the default, and the log names what is lost",
    arguments: frames)
  func members(_ stored: String, _ read: String, _ log: [String]) throws {
    try withSandbox { sandbox in
      sandbox.shell("defaults write prefs-sample Frame \(stored)")
      let outcome = sandbox.shell("$SAMPLE frame; defaults read prefs-sample Frame | tr -d ' \\n'")
      let width = read.prefix { $0 != " " }
      #expect(
        outcome.output
          == "\(read)\n\(read)\n\(width) 700\n{height=700;width=\(width);}", "\(outcome)")
      let lines = outcome.errors.split(separator: "\n")
      #expect(lines.count == log.count, "\(outcome)")
      for (line, part) in zip(lines, log) { #expect(line.contains(part)) }
    }
  }

  @Test("preferences that are kept in memory leave no file and no process")
  func inMemory() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        $SAMPLE memory; PREFSFS_IN_MEMORY=1 $SAMPLE set 3 stay; PREFSFS_IN_MEMORY=1 $SAMPLE get Key0
        find \(sandbox.root) -type f -o -type s
        """)
      #expect(outcome.output == "true [1, 2] true true\n(none)\n", "\(outcome)")
      #expect(sandbox.shell("$SAMPLE set 1 stay; $SAMPLE get Key0").output == "0\n")
    }
  }

  @Test("updates by several processes are all in the value, and one of a forced key is refused")
  func updates() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        "for i in 1 2 3 4; do $SAMPLE count 250 & done; wait; defaults read prefs-sample Count")
      #expect(outcome.output == "1000\n", "\(outcome)")
      sandbox.makeList(sandbox.system + "/managed/prefs-sample.plist", "dict(Count=5)")
      sandbox.waitUntil("[ $($SAMPLE get Count) = 5 ]")
      let refused = sandbox.shell("$SAMPLE count 1")
      #expect(refused.output.contains("unavailable") && refused.output.contains("Count"))
    }
  }

  @Test("a copy that fork(2) makes of a program is refused, and the program's sets are kept")
  func copied() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell("$SAMPLE fork; defaults read prefs-sample")
      #expect(outcome.output == "{\n    After = 1;\n    Before = 1;\n}\n")
      #expect(outcome.errors.contains("this process is a copy that fork(2) has made"))
      // A standard error that nobody reads, and one that is full.
      let pipes = sandbox.shell(
        """
        cd $C/..; $SAMPLE fork 2> >(exec 0<&-; sleep 1); mkfifo full; sleep 100 <> full & sleep .1
        timeout -s KILL 1 cat /dev/zero > full; timeout -s KILL 20 $SAMPLE fork 2> full; echo $?; kill -9 %1
        """)
      #expect(pipes.output == "0\n", "\(pipes)")
    }
  }

  @Test("a program whose standard streams are closed keeps what it sets", arguments: 0...2)
  func closedStream(_ number: Int) throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        "$SAMPLE set 3 exit \(number)>&-; $SAMPLE sync K text \(number)>&-; defaults read prefs-sample"
      )
      let keys = (0..<3).map { "    Key\($0) = \($0);\n" }.joined()
      #expect(outcome.output == "{\n    K = text;\n\(keys)}\n", "\(outcome)")
    }
  }

  @Test("a program whose path is not UTF-8 has its preferences")
  func oddPath() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        "cp $SAMPLE $C/../$'\\xff'; cd $C/..; ./$'\\xff' sync K text; ./$'\\xff' get K")
      #expect(outcome.output == "text\n", "\(outcome)")
    }
  }

  @Test("a prefsd that fails once is started again, and the program's preferences are there")
  func failsOnce() throws {
    try withSandbox { sandbox in
      sandbox.shell("$SAMPLE sync K text; kill -9 $(cat $XDG_STATE_HOME/prefsfs/*/lock)")
      let outcome = sandbox.shell(
        """
        printf '%s\\n' '#!/bin/sh' "mkdir $C/../tried 2> /dev/null && exit 1" \
          'exec $PREFSD "$@"' > $C/../once; chmod +x $C/../once
        PREFSFS_PREFSD=$C/../once $SAMPLE late K | uniq
        """)
      #expect(outcome.output == "(none)\ntext\n")
      #expect(outcome.errors.contains("prefsd cannot serve"))
    }
  }

  @Test("a program that begins while the owner is stopped reads its arguments, and finds it later")
  func finds() throws {
    try withSandbox { sandbox in
      sandbox.shell("$SAMPLE sync K text")
      let outcome = sandbox.shell(
        """
        p=$(cat \(sandbox.state)/prefsfs/*/lock); kill -STOP $p
        (sleep 6; kill -CONT $p) & $SAMPLE get Other -Other given > $C/../other &
        $SAMPLE late K | uniq -c | sed 's/^ *//'; cat $C/../other
        """)
      // It reads once each 50 ms, and after the first read none waits.
      let lines = outcome.output.split(separator: "\n")
      let counts = lines.prefix(2).compactMap { Int($0.prefix { $0 != " " }) }
      #expect(lines.count == 3 && lines.last == "given", "\(outcome)")
      #expect(counts.count == 2 && counts[0] > 10, "\(outcome)")
      #expect(outcome.errors.contains("(kill -CONT"), "\(outcome)")
    }
  }
}
