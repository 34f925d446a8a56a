import Foundation
import Support
import Testing

/// What an administrator asks of a machine, before and after something is installed.
@Suite("Reports for administrators") struct ReportTests {
  private static let prepare = """
    exec 2>&1; cd $C/..
    defaults write d A 1; defaults write -g G 2
    defaults write $PREFSFS_SYSTEM_DIR/managed/d F -bool true
    """

  @Test("read --effective has the values that count, their source, and whether they are forced")
  func effective() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.prepare)
        defaults read --effective d; defaults read --effective | grep -c G
        defaults read --effective --json d | jq -c '[.key, .value, .source, .forced]'
        defaults explain --json d F | jq -c '[.source, .forced, .value]'
        defaults explain --json d None | tail -1; echo ${PIPESTATUS[0]}
        """)
      #expect(
        outcome.output.replacing(#/.*defaults\[.*\n/#, with: "") == """
          d A: 1 (user)
          d F: 1 (managed, forced)
          d G: 2 (global)
          2
          ["A","1","user",false]
          ["F",true,"managed",true]
          ["G","2","global",false]
          ["managed",true,true]
          The domain/default pair of (d, None) does not exist
          1

          """, "\(outcome)")
    }
  }

  @Test("profiles check --effect says what a profile would change, and what stays")
  func effect() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.prepare)
        python3 -c "import plistlib, datetime
        plistlib.dump(dict(PayloadType='Configuration', PayloadVersion=1, PayloadIdentifier='a',
          PayloadUUID='U', PayloadContent=[dict(PayloadType='com.apple.ManagedClient.preferences',
          PayloadContent={'d': {'Forced': [{'mcx_preference_settings': {'A': False, 'F': False, 'N': 1}}],
          'Set-Once': [{'mcx_data_timestamp': datetime.datetime(2026, 1, 1),
            'mcx_preference_settings': {'Theme': 'Light', 'F': 3}}]}})]), open('a.mobileconfig', 'wb'))"
        defaults profiles check --effect a.mobileconfig; echo $?; defaults read d
        """)
      #expect(
        outcome.output == """
          d A: 1 (user) -> 0 (managed), cannot be changed
          d F: 1 stays: a managed list forces it, and wins over profiles
          d N: (none) -> 1 (managed), cannot be changed
          d F: 1 stays: it is forced
          d Theme: (none) -> Light, once; \(NSUserName()) can change it
          0
          {
              A = 1;
          }

          """, "\(outcome)")
    }
  }

  @Test("check complains with file and reason, before something takes effect")
  func check() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.prepare)
        defaults check; echo $?
        echo '<plist><dict><key>A</key>' > $C/bad.plist; echo '[1]' > $PREFSFS_SYSTEM_DIR/managed/array.plist
        echo '<plist><dict/></plist>' > $PREFSFS_SYSTEM_DIR/managed/p.mobileconfig; mkdir $C/other; echo x > $C/other/x.plist
        mkdir -p $PREFSFS_SYSTEM_DIR/d.d share/preferences/d.d; echo x > $PREFSFS_SYSTEM_DIR/d.d/1.plist
        echo '[1]' > share/preferences/d.d/1.plist; echo '{".over" = x; }' > $C/prefsfs.declared.plist
        defaults check; echo $?
        echo '{"d": 1}' > x.json; echo '{"d": {"A": null}}' > y.json; defaults check x.json y.json none; echo $?
        """)
      #expect(
        outcome.output.replacing(sandbox.root, with: "R") == """
          0
          R/config/bad.plist: xml property list, line 2: the text ends too early
          R/config/prefsfs.declared.plist: prefsfs.declared .over: the ledger of declarations is damaged, \
          so nothing was changed; without it (defaults delete prefsfs.declared) nothing counts as declared, \
          and values stay
          R/system/d.d/1.plist: it is not a dictionary, but of type string
          R/system/managed/array.plist: it is not a dictionary, but of type array
          R/system/managed/p.mobileconfig: it has no PayloadType
          R/share/preferences/d.d/1.plist: it is not a dictionary, but of type array
          1
          x.json: d: a declaration has a dictionary of keys and values for each domain, not a value of type integer
          none: there is no such file
          1

          """, "\(outcome)")
    }
  }

  @Test("commands that only look at files wait for no pipe, and read no device")
  func pipes() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; S=$PREFSFS_SYSTEM_DIR; mkdir -p $S/managed $S/d.d; mkfifo pipe.plist
        for file in $C/own.plist $S/l.plist $S/d.d/1.plist $S/managed/p.mobileconfig; do mkfifo $file; done
        ln -s /dev/zero $S/zero.plist; try() { timeout 20 "$@" 2>&1 | tail -1; }
        timeout 20 defaults check; try defaults profiles
        try defaults lint pipe.plist; try defaults schema swift pipe.plist; try defaults check /dev/zero
        try defaults profiles check pipe.plist; try defaults schema json $S/zero.plist
        try defaults check <(echo '[1]') | cut -d : -f 2; echo '[1]' | try defaults lint /dev/stdin
        """)
      #expect(
        outcome.output.replacing(sandbox.root, with: "R") == """
          R/config/own.plist: it is not a regular file
          R/system/d.d/1.plist: it is not a regular file
          R/system/l.plist: it is not a regular file
          R/system/managed/p.mobileconfig: it is not a regular file
          R/system/zero.plist: it is not a regular file
          R/system/managed/p.mobileconfig; refused: it is not a regular file
          pipe.plist: it is not a regular file
          defaults: it is not a regular file
          /dev/zero: it is not a regular file
          defaults: it is not a regular file
          defaults: it is not a regular file
           it is not a dictionary, but of type array
          /dev/stdin: it is not a dictionary

          """, "\(outcome)")
    }
  }

  @Test("check names what does not count on a machine: wrong names, unknown users, closed files")
  func machine() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; S=$PREFSFS_SYSTEM_DIR; list='<plist><dict/></plist>'
        mkdir -p $S/manged $S/SCHEMA $S/managed/root $S/managed/no-such-user $S/managed/open.d
        for name in com.a.PLIST managed/NSGlobalDomain.plist managed/closed.plist managed/open.plist \\
          managed/root/own.plist managed/root/com.b.plist managed/open.d/5.plist x.mobileconfig \\
          managed/p.mobileconfig com.c.plist; do
          echo "$list" > $S/$name
        done
        chmod -R a+rX $S; chmod 700 $S/managed/open.d; cd $S
        chmod 600 managed/closed.plist managed/root/own.plist managed/p.mobileconfig com.c.plist
        defaults check $S; echo "[$?]"
        """)
      #expect(
        outcome.output.replacing(sandbox.system, with: "S") == """
          S/SCHEMA: nothing in a directory of this name counts; is schemas meant?
          S/manged: nothing in a directory of this name counts; is managed meant?
          S/com.c.plist: users cannot read it (mode 600), so it does not count; chmod a+rX
          S/x.mobileconfig: it does not count: profiles lie in managed, or in the directory of a user there
          S/managed/no-such-user: there is no user no-such-user on this machine
          S/managed/closed.plist: users cannot read it (mode 600), so nothing that it may force can \
          be set; chmod a+rX
          S/managed/p.mobileconfig: users cannot read it (mode 600), so it does not count; chmod a+rX
          S/managed/open.d: users cannot read it (mode 700), so nothing that it may force can be set; \
          chmod a+rX
          S/managed/NSGlobalDomain.plist: it does not count: the list of the global domain is \
          .GlobalPreferences.plist
          S/com.a.PLIST: it does not count: its name must end in .plist, in lower case
          S/managed/p.mobileconfig: it has no PayloadType
          S/x.mobileconfig: it has no PayloadType
          [1]

          """, "\(outcome)")
    }
  }

  @Test("reports about another user are made with that user's rights")
  func rights() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.prepare)
        cp /etc/passwd passwd; echo "test-ada:x:54321:54321::$PWD/ada:/bin/sh" >> passwd
        mkdir -p ada/.config; home() { env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=$PWD/ada "$@"; }
        home defaults write d A 7; home defaults synchronize; home defaults write d A 8
        echo '{"d": {"A": 9}}' | home defaults apply --as setup - > /dev/null; home defaults write d A 10
        home defaults history | wc -l > /dev/null; home defaults synchronize
        python3 -c "import plistlib
        plistlib.dump(dict(PayloadType='Configuration', PayloadVersion=1, PayloadIdentifier='org.a',
          PayloadUUID='U', PayloadContent=[dict(PayloadType='e', P=1)]),
          open('$PREFSFS_SYSTEM_DIR/managed/a.mobileconfig', 'wb'))"
        cat > ask <<'END'
        mount --bind passwd /etc/passwd
        chmod 755 .; chown -R 54321:54321 ada; chmod -R a+rX $PREFSFS_SYSTEM_DIR
        defaults read --effective --for test-ada e
        defaults profiles --for test-ada | cut -d ';' -f 1-3
        defaults history --for test-ada d A | grep -c '^[0-9]'
        defaults read --at 1 --for test-ada d A
        defaults declared --drift --for test-ada | cut -d : -f 1-2
        chmod 600 $PREFSFS_SYSTEM_DIR/managed/a.mobileconfig; sleep 1.2
        defaults read --effective --for test-ada e; defaults profiles --for test-ada | grep -o 'refused.*denied'
        defaults read --for test-ada d
        END
        unshare -m sh ask
        """)
      #expect(
        outcome.output.replacing(sandbox.system, with: "S") == """
          e P: 1 (managed, forced)
          org.a "org.a"; not signed; e (P)
          4
          7
          d A: declared 9 (setup), is 10
          refused: open S/managed/a.mobileconfig: Permission denied
          defaults: --for goes with --effective or --at
          usage: defaults read [DOMAIN [KEY]]    (more: defaults read --help)

          """, "\(outcome)")
    }
  }

  @Test(
    "root reads what counts for another user, with what only the journal has, and changes nothing")
  func others() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.prepare)
        cp /etc/passwd passwd; echo "test-ada:x:54321:54321::$PWD/ada:/bin/sh" >> passwd
        mkdir -p ada/.config $PREFSFS_SYSTEM_DIR/managed/test-ada
        home() { env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=$PWD/ada "$@"; }
        home prefsd --writeback 60; home defaults write d Saved 1
        home defaults synchronize; home defaults write d A 7
        python3 -c "import plistlib; plistlib.dump({'Own': 1}, open('$PREFSFS_SYSTEM_DIR/managed/test-ada/d.plist', 'wb'))"
        find ada -name '*.plist' -o -name 'journal*' | sort | xargs md5sum > before
        cat > ask <<'END'
        mount --bind passwd /etc/passwd
        chmod 755 .; chown -R 54321:54321 ada; chmod -R a+rX $PREFSFS_SYSTEM_DIR
        defaults read --effective --for test-ada d; defaults explain --for test-ada d F
        defaults explain --for test-ada d G; defaults profiles check --effect --for test-ada a.mobileconfig
        cp a.mobileconfig $PREFSFS_SYSTEM_DIR/managed/test-ada; sleep 1.2
        defaults profiles check a.mobileconfig --effect --for test-ada | grep removed
        defaults read --effective --for nobody-knows d; defaults read --effective --for 54321 d
        END
        python3 -c "import plistlib
        plistlib.dump(dict(PayloadType='Configuration', PayloadVersion=1, PayloadIdentifier='a',
          PayloadUUID='U', PayloadContent=[dict(PayloadType='com.apple.ManagedClient.preferences',
          PayloadContent={'d': {'Forced': [{'mcx_preference_settings': {'A': 9, 'F': 2}}]}})]),
          open('a.mobileconfig', 'wb'))"
        unshare -m sh ask; find ada -name '*.plist' -o -name 'journal*' | sort | xargs md5sum | diff before -
        setpriv --reuid 65534 --clear-groups defaults read --effective --for root d
        """)
      #expect(
        outcome.output.replacing(#/20.*defaults\[.*\n/#, with: "") == """
          d A: 7 (user)
          d F: 1 (managed, forced)
          d Own: 1 (managed, forced)
          d Saved: 1 (user)
          * managed (forced): 1
              \(sandbox.system)/managed/d.plist
          The domain/default pair of (d, G) does not exist
          d A: 7 (user) -> 9 (managed), cannot be changed
          d F: 1 stays: a managed list forces it, and wins over profiles
          d A: 9 (managed) -> 7 (user) when the profile is removed
          d F: 2 (managed) -> 1 (managed) when the profile is removed
          defaults: there is no user nobody-knows
          defaults: there is no user 54321
          defaults: only root can read the preferences of root

          """, "\(outcome)")
    }
  }
}
