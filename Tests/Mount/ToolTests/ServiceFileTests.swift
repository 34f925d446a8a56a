import Foundation
import Support
import Testing

/// Files that are made from preferences, read by the services that they are for.
@Suite("Files of services") struct ServiceFileTests {
  @Test("journald keeps to the limit in a drop-in that a domain makes")
  func journald() throws {
    try withSandbox { sandbox in
      // A directory /run of its own, for 2 s. `Audit=` leaves the kernel's setting alone.
      let outcome = sandbox.shell(
        """
        defaults write journald Journal -dict Storage volatile RuntimeMaxUse 8M ReadKMsg no Audit ''
        prefs export --effective --as ini journald $C/../drop-in.conf
        unshare -m --propagation private bash -c 'mount -t tmpfs none /run
          mkdir -p /run/systemd/journald.conf.d /run/log/journal
          cp $C/../drop-in.conf /run/systemd/journald.conf.d
          export SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=debug
          timeout 2 /usr/lib/systemd/systemd-journald' 2>&1
        """)
      #expect(outcome.output.contains(#/max_use=8(\.0)?M /#), "\(outcome)")
      #expect(!outcome.output.contains("drop-in.conf:"), "\(outcome)")
    }
  }
}
