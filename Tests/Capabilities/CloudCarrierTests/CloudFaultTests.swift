import Foundation
import Support
import Testing

/// Programs that are killed, servers that fail: nothing that was acknowledged is lost or repeated.
@Suite("Faults of the cloud", .serialized) struct CloudFaultTests {
  /// The process of the machine's carrier.
  private static let carrier = "pgrep -f \"prefs-cloud --owned --store $C\""

  @Test("kill -9 of the carrier at any moment loses and repeats nothing")
  func killedCarrier() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir -p $M/.prefs/places/cloud/d")
      for round in 1...15 {
        here.shell(
          """
          (sleep 0.0\(Int.random(in: 0...9)); kill -9 $(\(Self.carrier))) 2>/dev/null &
          for n in 1 2 3 4; do echo \(round)-$n > $M/.prefs/places/cloud/d/K$n; done; wait
          prefs-cloud --store $C 2>/dev/null &
          sleep 0.0\(Int.random(in: 0...9)); kill -9 $!
          """)
      }
      // The owner pauses longer and longer before it starts one again.
      let carrier = try here.start("exec prefs-cloud --store $C")
      defer { here.end(carrier) }
      here.waitUntil("defaults cloud sync 2")
      #expect(
        there.shell("defaults cloud sync 10; cat $M/d/K?").output == "15-1\n15-2\n15-3\n15-4\n")
      for machine in [here, there] { #expect(machine.shell("defaults cloud log").output == "") }
      // Each set is at most one transaction on the server: 15, and that which made the key.
      let versions = machines.etcd.control(
        ["get", "-w", "fields", "--prefix", "/prefsfs/root/d/"]
      ).output.split(separator: "\n").filter { $0.contains("\"Version\"") }
        .compactMap { Int($0.split(separator: " ").last ?? "") }
      #expect(versions.count == 4 && versions.allSatisfy { $0 <= 16 }, "\(versions)")
    }
  }

  @Test("kill -9 of the owner ends the carrier; the next owner's goes on")
  func killedOwner() throws {
    try withSandbox { there in
      try withMachines { machines in
        let here = machines.here
        here.shell("mkdir $M/d; echo 1 > $M/d/K; defaults cloud add d K; defaults cloud sync")
        let mount = try Mount(there)
        there.shell("\(Machines.connect(machines.etcd))")
        there.waitUntil("[ \"$(cat $M/d/K)\" = 1 ]")
        machines.etcd.kill()
        there.shell("echo 2 > $M/d/K")
        mount.crash()
        there.waitUntil("! \(Self.carrier)")
        try machines.etcd.start()
        let again = try Mount(there)
        defer { again.unmount() }
        #expect(there.shell("cat $M/d/K").output == "2\n")
        here.waitUntil("[ \"$(cat $M/d/K)\" = 2 ]")
      }
    }
  }

  @Test("a machine that was away finds removals and sets after a compaction; both sides at once")
  func compaction() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir $M/d; for n in 1 2 3 4; do echo $n > $M/d/K$n; done")
      here.shell("defaults cloud add d '*'; defaults cloud sync")
      there.waitUntil("[ \"$(cat $M/d/K4)\" = 4 ]")
      there.shell("kill -STOP $(\(Self.carrier))")
      here.shell("rm $M/d/K1; echo 22 > $M/d/K2; echo here > $M/d/K5; defaults cloud sync")
      there.shell("echo 33 > $M/d/K3; for n in $(seq 200); do echo $n > $M/d/K4; done")
      #expect(machines.etcd.compact().status == 0)
      there.shell("kill -9 $(\(Self.carrier))")
      there.waitUntil("defaults cloud sync 3")
      here.waitUntil("defaults cloud sync 3")
      let list = "cd $M/d; ls; cat *"
      #expect(here.shell(list).output == there.shell(list).output)
      #expect(there.shell("cat $M/d/K1").status != 0)
      #expect(there.shell("cat $M/d/K2 $M/d/K3 $M/d/K4").output == "22\n33\n200\n")
    }
  }

  @Test("a server without space: sets are kept and sent when there is room")
  func noSpace() throws {
    try withMachines(options: ["--quota-backend-bytes", "3000000"]) { machines in
      let here = machines.here
      here.shell("mkdir -p $M/.prefs/places/cloud/d")
      for index in 0..<6 {
        here.shell("head -c 700000 /dev/urandom > $M/.prefs/places/cloud/d/K\(index)")
      }
      here.waitUntil("defaults cloud | grep -q 'space exceeded'")
      #expect(here.shell("echo still > $M/.prefs/places/cloud/d/Small").status == 0)
      #expect(here.shell("cat $M/d/Small").output == "still\n")
      here.shell("cd $M/d; for n in 0 1 2 3 4 5; do rm K$n; done")
      // As an administrator makes room.
      machines.etcd.control(["del", "--prefix", "/prefsfs/root/d/K"])
      #expect(machines.etcd.compact().status == 0)
      machines.etcd.control(["defrag"])
      machines.etcd.control(["alarm", "disarm"])
      here.waitUntil("defaults cloud sync 10")
      machines.there.waitUntil("[ \"$(cat $M/d/Small)\" = still ]")
    }
  }

  @Test("of three servers any one may fail, the leader too")
  func lostLeader() throws {
    try withMachines(members: 3) { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir -p $M/.prefs/places/cloud/d")
      for index in 0..<3 {
        machines.etcd.kill(index)
        #expect(here.shell("echo \(index) > $M/.prefs/places/cloud/d/K").status == 0)
        there.waitUntil("[ \"$(cat $M/d/K)\" = \(index) ]")
        try machines.etcd.start(index)
      }
    }
  }

  @Test("both sides change 200 keys 400 times without the server; then they are equal")
  func longOffline() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir -p $M/.prefs/places/cloud/d; touch $M/.prefs/places/cloud/d/K{1..200}")
      #expect(here.shell("defaults cloud sync").status == 0)
      there.waitUntil("test -f $M/d/K200")
      machines.etcd.kill()
      for machine in [here, there] {
        machine.shell("cd $M/d; for n in {1..400}; do echo $n-$$ > K$((RANDOM % 200 + 1)); done")
        machine.shell("cd $M/d; cat K* | sort > $C/../acknowledged")
      }
      try machines.etcd.start()
      for machine in [here, there, here] { machine.waitUntil("defaults cloud sync 20") }
      let all = "cd $M/d; for k in K{1..200}; do echo $k $(cat $k); done"
      #expect(here.shell(all).output == there.shell(all).output)
      // What was acknowledged at last is a value, or in a log.
      let kept = [here, there].map { $0.shell("cat $M/d/K*; defaults cloud log").output }.joined()
      for machine in [here, there] {
        let lost = machine.shell("cat $C/../acknowledged").output.split(separator: "\n").filter {
          !$0.isEmpty && !kept.contains($0)
        }
        #expect(lost == [])
      }
    }
  }

  @Test("kill -9 of the owner at any moment loses and repeats nothing")
  func killedOwners() throws {
    try withSandbox { here in
      try withMount { there, _ in
        let etcd = try Etcd(in: here.root)
        defer { etcd.stop() }
        there.shell(Machines.connect(etcd))
        for round in 1...5 {
          let mount = try Mount(here)
          here.shell("\(Machines.connect(etcd)); mkdir -p $M/.prefs/places/cloud/d")
          usleep(useconds_t.random(in: 0...700_000))
          #expect(
            here.shell("for n in 1 2 3; do echo \(round)$n > $M/.prefs/places/cloud/d/K$n; done")
              .status == 0)
          usleep(useconds_t.random(in: 0...30_000))
          mount.crash()
        }
        let mount = try Mount(here)
        defer { mount.unmount() }
        here.waitUntil("defaults cloud sync 5")
        #expect(there.shell("defaults cloud sync; cat $M/d/K?").output == "51\n52\n53\n")
        #expect(here.shell("cat $M/d/K?; defaults cloud log").output == "51\n52\n53\n")
      }
    }
  }

  @Test("a damaged list holds up its own domain alone, and removes nothing elsewhere")
  func damagedList() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir -p $M/.prefs/places/cloud/{d,e}; echo 1 > $M/.prefs/places/cloud/d/K")
      #expect(here.shell("defaults cloud sync").status == 0)
      here.waitUntil("test -s $(echo $C/../state/prefsfs/*/Cloud)/d.plist")
      there.waitUntil("[ \"$(cat $M/d/K)\" = 1 ]")
      let list = "$(echo $C/../state/prefsfs/*/Cloud)/d.plist"
      here.shell("cp \(list) $C/../good; echo garbage > \(list)")
      here.waitUntil("! cat $M/d/K")
      here.shell("kill -9 $(\(Self.carrier)); echo 2 > $M/.prefs/places/cloud/e/K")
      there.waitUntil("[ \"$(cat $M/e/K)\" = 2 ]")
      #expect(there.shell("cat $M/d/K").output == "1\n")
      here.shell("cp $C/../good \(list)")
      here.waitUntil("[ \"$(cat $M/d/K)\" = 1 ]")
      here.waitUntil("defaults cloud sync 3")
      #expect(there.shell("defaults cloud sync; cat $M/d/K").output == "1\n")
    }
  }

  @Test("lists of the carrier that are damaged or gone while nothing runs remove nothing")
  func damagedRecords() throws {
    try withSandbox { late in
      try withMachines { machines in
        let mount = try Mount(late)
        late.shell("mkdir -p $M/.prefs/places/cloud/{d,e}; \(Machines.connect(machines.etcd))")
        late.shell("for d in d e; do echo 1 > $M/.prefs/places/cloud/$d/K; done")
        late.waitUntil("defaults cloud sync 3")
        machines.here.waitUntil("[ \"$(cat $M/d/K)\" = 1 ]")
        mount.unmount()
        late.killOwner(with: SIGTERM)
        let state = "$(echo $C/../state/prefsfs/*)"
        late.shell("echo garbage > \(state)/CloudRecords/d.plist; rm \(state)/Cloud/e.plist")
        let again = try Mount(late)
        defer { again.unmount() }
        late.waitUntil("defaults cloud sync 3")
        #expect(late.shell("cat $M/d/K $M/e/K").output == "1\n1\n")
        #expect(machines.here.shell("defaults cloud sync; cat $M/d/K $M/e/K").output == "1\n1\n")
        #expect(late.shell("ls \(state)/CloudRecords").output.contains("d.plist.damaged"))
      }
    }
  }

  @Test("a domain that is removed while no carrier runs is removed elsewhere too")
  func removedDomains() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell(
        """
        for d in a b c; do defaults write $d K 1; defaults write $d L 2; done; rm $M/b/L
        for d in a b c; do defaults cloud add $d K L; done; defaults cloud sync
        """)
      there.waitUntil("[ \"$(cat $M/a/L $M/b/K $M/c/K)\" = \"$(printf '2\\n1\\n1')\" ]")
      // The owner's carrier is stopped, and killed before it has heard of anything.
      let outcome = here.shell(
        """
        p=$(pgrep -f "prefs-cloud.*--store $C"); kill -STOP $p
        defaults delete a; defaults delete b K; rm $M/c/*; rmdir $M/c; kill -9 $p
        for i in $(seq 100); do defaults cloud | grep -q ^connected && break; sleep .1; done
        defaults cloud sync 20; ls -d $M/a $M/b $M/c
        """)
      #expect(outcome.output == "", "\(outcome)")
      there.waitUntil("! test -e $M/a/K && ! test -e $M/b/K && ! test -e $M/c/K")
    }
  }

  @Test("a carrier that is stopped does not hold up the end of the owner")
  func stoppedAtEnd() throws {
    try withMachines { machines in
      try withMount { late, mount in
        late.shell(Machines.connect(machines.etcd))
        late.waitUntil("defaults cloud")
        late.shell("kill -STOP $(\(Self.carrier))")
        // Until it has ended, the mount would start another owner, and that another carrier.
        mount.unmount()
        late.killOwner(with: SIGTERM)
        late.waitUntil("! \(Self.carrier)")
      }
    }
  }

  @Test("a server that hangs, and a carrier that is stopped, hold up no read and no write")
  func hung() throws {
    try withMachines { machines in
      let (here, there) = (machines.here, machines.there)
      here.shell("mkdir -p $M/.prefs/places/cloud/d; echo 0 > $M/.prefs/places/cloud/d/K")
      there.waitUntil("[ \"$(cat $M/d/K)\" = 0 ]")
      kill(machines.etcd.process(), SIGSTOP)
      #expect(
        here.shell("for n in $(seq 50); do echo $n > $M/d/K; done; timeout 3 cat $M/d/K").output
          == "50\n")
      here.shell("kill -STOP $(\(Self.carrier))")
      #expect(
        here.shell(
          "for n in $(seq 51 99); do timeout 3 sh -c \"echo $n > $M/d/K\"; done; cat $M/d/K"
        )
        .output == "99\n")
      kill(machines.etcd.process(), SIGCONT)
      here.shell("kill -CONT $(\(Self.carrier))")
      there.waitUntil("[ \"$(cat $M/d/K)\" = 99 ]")
    }
  }
}
