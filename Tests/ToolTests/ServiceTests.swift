import Support
import Testing

/// The programs under systemd, as the units of the package start them.
@Suite("Services") struct ServiceTests {
  @Test("prefsd is started by the first program that needs preferences, through its socket")
  func socketActivation() throws {
    try withSandbox { sandbox in
      let script = """
        mkdir -p $XDG_RUNTIME_DIR/prefsfs; chmod 700 $XDG_RUNTIME_DIR $XDG_RUNTIME_DIR/prefsfs
        systemd-socket-activate -E HOME -E XDG_CONFIG_HOME -E XDG_STATE_HOME -E XDG_RUNTIME_DIR \\
          -E PREFSFS_SYSTEM_DIR -l $XDG_RUNTIME_DIR/prefsfs/prefsd $PREFSD -f 2> $C/../notes & P=$!
        until [ -S $XDG_RUNTIME_DIR/prefsfs/prefsd ]; do sleep 0.05; done
        cat /proc/$P/comm; defaults write d Key -int 4; defaults read d Key; cat /proc/$P/comm
        kill $P; wait $P
        """
      let outcome = sandbox.shell(script)
      #expect(outcome.output == "systemd-socket-\n4\nprefsd\n", "\(outcome)")
    }
  }
}
