import Glibc
import PreferenceModel
import StoreAccess
import Support
import SystemCalls
import Testing

@testable import PreferenceEngine

@Suite("What other programs change in lists") struct ListWatcherTests {
  @Test("the target of a link is watched, also one in the root directory")
  func targets() throws {
    try withSandbox { sandbox in
      let layout = StoreLayout(
        userDirectory: sandbox.config, systemDirectory: sandbox.system,
        stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada")
      let inRoot = "/prefsfs-test-\(getpid()).plist"
      defer { unlink(inRoot) }
      // Most users cannot write there.
      let targets = [sandbox.root + "/d.plist"] + (access("/", W_OK) == 0 ? [inRoot] : [])
      for target in targets {
        sandbox.makeList(target, "dict(K=1)")
        sandbox.shell("ln -sf \(target) $C/d.plist")
        var watcher = ListWatcher(layout) { _ in }
        watcher.begin { _ in }
        let before = watcher.changes(known: { [] }, report: { _ in })
        sandbox.makeList(target, "dict(K=2)")
        let after = watcher.changes(known: { [] }, report: { _ in })
        #expect(before == [] && after == [Location(.user, "d")], "\(target)")
      }
    }
  }

  @Test("managed places that are added are watched, and what is watched stays so")
  func added() throws {
    try withSandbox { sandbox in
      let layout = StoreLayout(
        userDirectory: sandbox.config, systemDirectory: sandbox.system,
        stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada")
      let users = ["bob", "eve"]
      for user in users { sandbox.shell("mkdir -p $PREFSFS_SYSTEM_DIR/managed/\(user)") }
      var watcher = ListWatcher(layout) { _ in }
      watcher.begin { _ in }
      _ = watcher.changes(known: { [] }, report: { _ in })
      for user in users { watcher.add([.managedFor(user), .managed]) { _ in } }
      #expect(!watcher.hasBegun)
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1)")
      for user in users {
        sandbox.makeList("\(sandbox.system)/managed/\(user)/d.plist", "dict(K=1)")
      }
      let changed = watcher.changes(known: { [] }, report: { _ in })
      #expect(
        changed == [
          Location(.user, "d"), Location(.managedFor("bob"), "d"),
          Location(.managedFor("eve"), "d"),
        ])
    }
  }

  @Test("lists in containers are watched, and directories of lists that are made in them")
  func containers() throws {
    try withSandbox { sandbox in
      let inner = "Containers/org.app/Data/Library/Preferences"
      sandbox.shell(
        """
        mkdir -p $C/../mac/Library/Preferences; cd $C/../mac/Library; mkdir -p \(inner)
        mkdir Containers/org.other; ln -s $PWD Containers/org.link
        """)
      let library = sandbox.root + "/mac/Library"
      var watcher = ListWatcher(
        StoreLayout(
          userDirectory: library + "/Preferences", systemDirectory: sandbox.system,
          stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada")
      ) { _ in }
      watcher.begin { _ in }
      _ = watcher.changes(known: { [] }, report: { _ in })
      sandbox.makeList("\(library)/\(inner)/org.app.plist", "dict(K=1)")
      let user = Location(.user, "org.app")
      #expect(watcher.changes(known: { [] }, report: { _ in }) == [user])
      sandbox.shell("mkdir \(library)/\(inner)/ByHost")
      _ = watcher.changes(known: { [] }, report: { _ in })
      sandbox.makeList("\(library)/\(inner)/ByHost/org.app.HOST.plist", "dict(K=1)")
      let host = Location(.host, "org.app")
      #expect(watcher.changes(known: { [] }, report: { _ in }).contains(host))
    }
  }
}
