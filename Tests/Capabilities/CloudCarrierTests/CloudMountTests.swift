import Foundation
import Support
import Testing

/// Two machines of one user: two stores, each with a mount, and one etcd.
struct Machines {
  let etcd: Etcd
  let here: Sandbox
  let there: Sandbox

  /// The commands that connect a machine to the servers.
  static func connect(_ etcd: Etcd) -> String {
    "defaults write prefsfs.cloud Endpoints -array \(etcd.endpoints.joined(separator: " "))"
  }
}

/// Runs the body with two machines that are connected to one etcd.
func withMachines(
  members: Int = 1, options: [String] = [], _ body: (Machines) throws -> Void
) throws {
  try withMount { here, _ in
    try withMount { there, _ in
      let etcd = try Etcd(in: here.root, members: members, options: options)
      defer { etcd.stop() }
      for machine in [here, there] {
        machine.shell(Machines.connect(etcd))
        machine.waitUntil("defaults cloud | grep -q '^connected'")
      }
      try body(Machines(etcd: etcd, here: here, there: there))
    }
  }
}

@Suite("Cloud on real mounts and a real etcd", .serialized) struct CloudMountTests {
  @Test("a key that is set here is read there, with an event; a removal too")
  func roundTrip() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir $M/d; echo 1 > $M/d/Local; echo 2 > $M/d/Other; defaults cloud add d Local")
      there.waitUntil("[ \"$(cat $M/d/Local)\" = 1 ]")
      #expect(there.shell("cat $M/d/Other").status != 0)
      #expect(
        there.shell("getfattr --only-values -n user.prefs.source $M/d/Local").output == "cloud")
      #expect(there.shell("defaults explain d Local").output.hasPrefix("* cloud: 1\n"))
      let watch = try there.watch(["mount/d/Local"])
      defer { there.end(watch) }
      here.shell("echo 5 > $M/d/Local")
      there.waitUntil("grep -q 'MODIFY.*Local' $C/../events")
      #expect(there.shell("cat $M/d/Local").output == "5\n")
      there.shell("echo 6 > $M/d/Local")
      here.waitUntil("[ \"$(cat $M/d/Local)\" = 6 ]")
      here.shell("rm $M/d/Local")
      there.waitUntil("! cat $M/d/Local")
      // A key that is made in the place is a key of the cloud.
      there.shell("echo made > $M/.prefs/places/cloud/d/Made")
      here.waitUntil("[ \"$(cat $M/d/Made)\" = made ]")
      // A pattern: keys that are there, and later ones.
      here.shell("echo 1 > $M/d/WinOld; defaults cloud add d 'Win*'; echo 2 > $M/d/WinNew")
      there.waitUntil("[ \"$(cat $M/d/WinOld $M/d/WinNew)\" = \"$(printf '1\\n2')\" ]")
      // A tool that replaces a file by removing it first.
      here.shell("rm $M/d/WinOld; echo 9 > $M/d/WinOld; defaults cloud sync")
      #expect(here.shell("defaults explain d WinOld").output.hasPrefix("* cloud: 9"))
      here.shell("defaults cloud remove d Made; defaults cloud sync")
      #expect(here.shell("defaults explain d Made").output.hasPrefix("* user: made"))
      there.waitUntil("! cat $M/d/Made")
      there.shell("defaults write d Made theirs; defaults cloud sync")
      #expect(here.shell("defaults cloud sync; cat $M/d/Made").output == "made\n")
    }
  }

  @Test("keys of one change are one transaction; a change is not repeated, and has no echo")
  func transactions() throws {
    try withMachines { machines in
      machines.here.shell("mkdir $M/d; defaults cloud add d '*'")
      machines.here.shell(
        "printf '{\"d\": {\"A\": 1, \"B\": 2, \"C\": 3}}' > $C/../new; defaults apply $C/../new")
      machines.there.waitUntil("[ \"$(cat $M/d/C)\" = 3 ]")
      #expect(machines.here.shell("defaults cloud sync").status == 0)
      let revisions = ["A", "B", "C"].map { key in
        machines.etcd.control(["get", "-w", "fields", "--prefix", "/prefsfs/root/d/\(key)"]).output
          .split(separator: "\n").filter { $0.contains("ModRevision") || $0.contains("Version") }
      }
      #expect(revisions[0] == revisions[1] && revisions[1] == revisions[2])
      #expect(revisions[0].contains { $0.contains("\"Version\" : 1") })
      #expect(machines.there.shell("defaults cloud log").output == "")
    }
  }

  @Test(
    "both change a key while the server is down: the later wins everywhere, the replaced is kept")
  func conflict() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir $M/d; echo old > $M/d/K; defaults cloud add d K")
      there.waitUntil("[ \"$(cat $M/d/K)\" = old ]")
      machines.etcd.kill()
      #expect(here.shell("echo first > $M/d/K && cat $M/d/K").output == "first\n")
      usleep(20_000)
      #expect(there.shell("echo second > $M/d/K && cat $M/d/K").output == "second\n")
      let late = here.shell("defaults cloud sync 0.3")
      #expect(late.status == 1 && late.errors.contains("not connected"), "\(late)")
      try machines.etcd.start()
      for machine in [here, there, here] {
        #expect(machine.shell("defaults cloud sync 20").status == 0)
      }
      for machine in [here, there] { #expect(machine.shell("cat $M/d/K").output == "second\n") }
      let log = here.shell("defaults cloud log").output + there.shell("defaults cloud log").output
      #expect(log.contains("d K = first (lost to "), "\(log)")
      let owner = here.shell("defaults cloud log").output.isEmpty ? there : here
      #expect(owner.shell("defaults cloud log 1").output == "first\n")
      #expect(owner.shell("defaults cloud restore 1 && defaults cloud sync").status == 0)
      for machine in [here, there] { machine.waitUntil("[ \"$(cat $M/d/K)\" = first ]") }
    }
  }

  @Test("values on both sides at the first connection: the server's win, the local ones are kept")
  func firstConnection() throws {
    try withMachines { machines in
      machines.here.shell("mkdir $M/d; echo server > $M/d/K; defaults cloud add d K")
      #expect(machines.here.shell("defaults cloud sync").status == 0)
      try withMount { late, _ in
        late.shell("mkdir $M/d; echo local > $M/d/K; echo only > $M/d/Only")
        late.shell("defaults cloud add d K Only; \(Machines.connect(machines.etcd))")
        late.waitUntil("defaults cloud sync 1")
        #expect(late.shell("cat $M/d/K $M/d/Only").output == "server\nonly\n")
        #expect(late.shell("defaults cloud log").output.contains("d K = local"))
        machines.there.waitUntil("[ \"$(cat $M/d/Only)\" = only ]")
      }
    }
  }

  @Test("a value over 1 MB is EFBIG at write(2), values over 16 MiB together are EDQUOT")
  func limits() throws {
    try withMount { here, _ in
      here.shell("mkdir -p $M/.prefs/places/cloud/d; printf x > $M/.prefs/places/cloud/d/Text")
      let large = here.shell("head -c 1100000 /dev/zero | tr '\\0' a > $M/d/Text")
      #expect(large.errors.contains("File too large"), "\(large)")
      // As of any file, the pieces that came before stay.
      #expect(here.shell("test $(stat -c %s $M/d/Text) -le 1000000 && rm $M/d/Text").status == 0)
      for index in 0..<16 {
        let made = here.shell(
          "head -c 990000 /dev/urandom > $M/.prefs/places/cloud/d/K\(index)")
        #expect(made.status == 0, "\(made)")
      }
      let over = here.shell("head -c 990000 /dev/urandom > $M/.prefs/places/cloud/d/Over")
      #expect(over.errors.contains("quota exceeded"), "\(over)")
      #expect(here.shell("rm $M/d/K0; echo small > $M/.prefs/places/cloud/d/Over").status == 0)
    }
  }

  @Test("programs hear of accounts and limits by the notifications of NSUserDefaults")
  func notifications() throws {
    try withMount { here, _ in
      let etcd = try Etcd(in: here.root)
      defer { etcd.stop() }
      here.shell(
        "mkdir -p $M/.prefs/places/cloud/prefs-sample; echo a > $M/.prefs/places/cloud/prefs-sample/K"
      )
      here.shell("mkfifo $C/../in")
      let sample = try here.start(
        "exec $SAMPLE cloud K < $C/../in > $C/../said 2> /dev/null")
      defer { here.end(sample) }
      let input = try here.start(
        "exec 3> $C/../in; while true; do if [ -f $C/../next ]; then cat $C/../next >&3; rm $C/../next; fi; sleep 0.05; done"
      )
      defer { here.end(input) }
      func says(_ text: String) {
        here.waitUntil("[ \"$(cat $C/../said | tr '\\n' ' ')\" = '\(text) ' ]")
      }
      says("a")
      here.shell("echo 3 > $C/../line; mv $C/../line $C/../next")
      says("a none")
      here.shell("echo 1100000 > $C/../line; mv $C/../line $C/../next")
      says("a none size")
      here.shell(Machines.connect(etcd))
      says("a none size completed")
      here.shell("defaults write prefsfs.cloud Prefix /other/")
      says("a none size completed accounts completed")
      #expect(here.shell("defaults read prefs-sample K").status == 1)
    }
  }

  @Test("several may wait for a synchronisation at once; a removed key stays away")
  func waiting() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      let many = here.shell(
        "for n in 1 2 3 4 5 6; do defaults cloud sync 10 & p=\"$p $!\"; done; "
          + "for n in $p; do wait $n || exit 1; done")
      #expect(many.status == 0, "\(many)")
      // A value of the user's place behind the cloud's does not come back after a removal.
      there.shell("mkdir $M/d; echo stale > $M/d/Z; defaults cloud add d 'Q*'")
      here.shell("mkdir -p $M/.prefs/places/cloud/d; echo new > $M/.prefs/places/cloud/d/Z")
      there.waitUntil("[ \"$(cat $M/d/Z)\" = new ]")
      here.shell("defaults delete d Z; defaults cloud sync")
      there.waitUntil("[ \"$(cat $M/d/Z)\" = stale ]")
      there.shell("defaults cloud add d 'Z*'; defaults cloud sync")
      #expect(here.shell("defaults cloud sync; cat $M/d/Z").status != 0)
    }
  }

  @Test("without a server in the settings no program runs, and no more is linked")
  func nothing() throws {
    try withMount { here, mount in
      here.shell("mkdir $M/d; echo 1 > $M/d/K; defaults cloud")
      usleep(100_000)
      let threads = "cat /proc/\(mount.pid)/task/*/comm"
      #expect(!here.shell(threads).output.contains("prefs-cloud"))
      #expect(here.shell("pgrep -P \(mount.pid) prefs-cloud").status == 1)
      #expect(!here.shell("ldd $PREFSFS $PREFSD $(which defaults)").output.contains("libcurl"))
      #expect(here.shell("defaults cloud").output.hasPrefix("no cloud: Endpoints"))
    }
  }
}
