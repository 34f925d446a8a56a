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
}
