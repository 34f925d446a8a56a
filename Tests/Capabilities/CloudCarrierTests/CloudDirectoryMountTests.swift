import Foundation
import Support
import Testing

@Suite("Cloud in a directory, on real mounts", .serialized) struct CloudDirectoryMountTests {
  @Test("two machines over one directory: changes, a conflict, a killed carrier, a clone's file")
  func twoMachines() throws {
    try withMount { here, _ in
      try withMount { there, _ in
        let directory = "\(here.root)/shared"
        let key = "\(here.root)/cloud.key"
        here.shell("mkdir \(directory); umask 077; head -c 32 /dev/urandom > \(key)")
        for machine in [here, there] {
          machine.shell("defaults write prefsfs.cloud EncryptionKeyFile \(key)")
          let login = machine.shell("defaults cloud login dir:\(directory)")
          #expect(login.output.hasPrefix("connected to dir:\(directory) since"), "\(login)")
          #expect(login.output.contains("\na directory, revision "), "\(login)")
        }
        here.shell("mkdir $M/d; echo 1 > $M/d/K; defaults cloud add d K")
        there.waitUntil("[ \"$(cat $M/d/K)\" = 1 ]")
        there.shell("defaults write d K secret")
        here.waitUntil("[ \"$(cat $M/d/K)\" = secret ]")
        #expect(here.shell("cat \(directory)/*.prefscloud | grep -c secret").output == "0\n")
        here.shell("kill -9 $(pgrep -f \"prefs-cloud --owned --store $C\"); echo 3 > $M/d/K")
        there.waitUntil("[ \"$(cat $M/d/K)\" = 3 ]")
        here.shell("rm $M/d/K; defaults cloud sync")
        there.waitUntil("! cat $M/d/K")
        #expect(here.shell("ls \(directory) | grep -vc '[.]prefscloud$'").output == "0\n")
        for machine in [here, there] { #expect(machine.shell("defaults cloud log").output == "") }
        // Without the directory nothing waits; afterwards what was set goes there.
        here.shell("mv \(directory) \(directory).away; echo 4 > $M/d/L; defaults cloud add d L")
        let late = here.shell("defaults cloud sync 0.3")
        #expect(late.status == 1 && late.errors.contains("No such file"), "\(late)")
        here.shell("mv \(directory).away \(directory); defaults cloud sync")
        there.waitUntil("defaults cloud sync 1 && [ \"$(cat $M/d/L)\" = 4 ]")
        #expect(here.shell("ls \(directory) | wc -l").output == "2\n")
      }
    }
  }

  @Test("login makes a key once, logout forgets it and keeps the file; relative paths are refused")
  func login() throws {
    try withMount { here, _ in
      let refused = here.shell("defaults cloud login dir:shared")
      #expect(refused.status == 1 && refused.errors.contains("absolute path"), "\(refused)")
      let directory = "\(here.root)/shared"
      here.shell("mkdir \(directory)")
      let first = here.shell("defaults cloud login dir:\(directory)")
      #expect(first.status == 0 && first.errors.contains("made the key "), "\(first)")
      #expect(here.shell("defaults cloud logout").status == 0)
      #expect(here.shell("defaults read prefsfs.cloud EncryptionKeyFile").status == 1)
      let second = here.shell("defaults cloud login dir:\(directory)")
      #expect(second.status == 0 && !second.errors.contains("made the key"), "\(second)")
      #expect(here.shell("ls \(directory) | wc -l").output == "1\n", "it goes on with its file")
    }
  }
}
