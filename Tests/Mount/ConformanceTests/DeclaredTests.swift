import Foundation
import Support
import Testing

/// Declarations as a user of `defaults` and of a mount meets them.
@Suite("Declarations on a mount") struct DeclaredTests {
  @Test("an option in the place of a name, and a domain with two names, change nothing")
  func refused() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..; defaults write e K -int 8; echo '{"e": {"K": 2}}' > e.json
        unset name; defaults apply --as $name --dry-run e.json 2> /dev/null | head -c 6; defaults declared
        echo '{"NSGlobalDomain": {"K": 1}, "Apple Global Domain": {"K": 2}}' > g.json
        defaults apply g.json 2>&1 | grep -c 'names the domain twice'
        defaults read e K; defaults read -g K 2> /dev/null || echo none
        """)
      #expect(outcome.output == "usage:1\n8\nnone\n")
    }
  }

  @Test("a declaration of many new keys asks the owner few questions about each")
  func questions() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..; python3 -c "print({'d': {f'k{i}': i for i in range(100)}})" | tr "'" '"' > a.json
        defaults write e K 1; strace -f -e trace=sendto -o calls defaults apply --as x a.json | grep -c k
        echo $(($(grep -c sendto calls) / 100))
        """)
      let lines = outcome.output.split(separator: "\n")
      #expect(lines.first == "100" && lines.last.flatMap { Int($0) } ?? 99 <= 8, "\(outcome)")
    }
  }

  @Test("several documents may call a domain by its names; the last one wins")
  func several() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..; echo '{"NSGlobalDomain": {"K": 1, "L": 1}}' > a.json
        echo '{"Apple Global Domain": {"K": 2}}' > b.json
        defaults apply --as x a.json b.json; echo "[$?]"
        """)
      let lines = "NSGlobalDomain K: (none) -> 2\nNSGlobalDomain L: (none) -> 1\n[2]\n"
      #expect(outcome.output == lines, "\(outcome)")
    }
  }

  @Test("a list that cannot be read is drift of its own keys, and hides no other declaration")
  func unreadable() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $C/..; echo '{"a": {"K": 1}}' > a.json; echo '{"b": {"K": 1}}' > b.json
        defaults apply --as one a.json; defaults apply --as two b.json; defaults synchronize
        sleep 1.1; echo 'x{' > $C/b.plist; defaults write a K 2
        until defaults declared --drift | grep -q cannot; do sleep 0.05; done
        defaults declared; defaults declared --drift | cut -d : -f 1,2; echo "[${PIPESTATUS[0]}]"
        cut -d : -f 1,2 $M/.prefs/declared/drift
        defaults declared --drift --json | jq -r '.unreadable // "read"' | cut -c 1-15
        """)
      let drift = """
        a K: declared 1 (one), is 2
        b K: declared 1 (two), cannot be read
        """
      #expect(
        outcome.output == """
          a K: (none) -> 1
          b K: (none) -> 1
          one: 1 key of 1 domain, 1 drifted
          two: 1 key of 1 domain, 1 drifted
          \(drift)
          [2]
          \(drift)
          read
          the list cannot

          """, "\(outcome)")
    }
  }

  @Test("apply --as says what it does, and takes back what is declared no more")
  func command() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..
        declare_() { printf '%s' "$2" > $1.json; defaults apply --as $1 $1.json; echo "[$?]"; }
        defaults write e TabWidth -int 8; defaults write e Font Serif
        printf '{"e": {"TabWidth": 2, "Theme": "Dark", "Font": "Mono", "Gone": null}}' > site.json
        defaults apply --as site --dry-run site.json; echo "[$?]"; defaults declared
        defaults apply --as site site.json; echo "[$?]"; defaults apply --as site site.json; echo "[$?]"
        defaults declared; defaults declared --drift; echo "[$?]"
        defaults write e TabWidth -int 4; defaults declared
        defaults declared --drift | sed 's/: [0-9]* 20.*Z/: N T/; s|/.*/||'; echo "[${PIPESTATUS[0]}]"
        declare_ site '{"e": {"TabWidth": 2, "Font": "Mono"}}'
        defaults write e Font Other; defaults undeclare site | sed 's/, 20.*Z/, T/; s|/.*/||'
        defaults read e; defaults declared; defaults domains; defaults undeclare site | tail -1
        """)
      #expect(
        outcome.output.replacing(#/.* defaults\[[0-9:]+\] /#, with: "") == """
          e Font: Serif -> Mono
          e TabWidth: 8 -> 2
          e Theme: (none) -> Dark
          [2]
          e Font: Serif -> Mono
          e TabWidth: 8 -> 2
          e Theme: (none) -> Dark
          [2]
          [0]
          site: 4 keys of 1 domain
          [0]
          site: 4 keys of 1 domain, 1 drifted
          e TabWidth: declared 2 (site), is 4: N T command, defaults
          [2]
          e TabWidth: 4 -> 2
          e Theme: Dark -> (none)    (back: no longer declared)
          [2]
          e Font: Other stays    (changed since, T, command, defaults)
          e TabWidth: 2 -> 4    (back: no longer declared)
          {
              Font = Other;
              TabWidth = 4;
          }
          e
          Could not undeclare; nothing was changed
          defaults: prefsfs.declared: there is no declaration site

          """, "\(outcome)")
    }
  }

  @Test("a member that is declared absent comes back, and so does the absence of a domain")
  func members() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $C/..; defaults write d G '{a = one;}'; printf '{"d": {"G": {"a": null}}}' > m.json
        defaults apply --as m --merge m.json; defaults read d G; defaults undeclare m
        defaults read d G; cd $M; echo '{"n": {"A": 1}}' > .prefs/declared/s.json
        echo '{"n": {"B": 1}}' > .prefs/declared/s.json; rm .prefs/declared/s.json
        for i in $(seq 50); do test -e n || break; sleep .02; done; ls
        """)
      #expect(
        outcome.output == """
          d G.a: one -> (none)
          {
          }
          d G.a: (none) -> one    (back: no longer declared)
          {
              a = one;
          }
          NSGlobalDomain
          d

          """, "\(outcome)")
    }
  }

  @Test("a dry run touches nothing on the disk; the second apply makes no change")
  func quiet() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $C/..; printf '{"d": {"A": 1, "B": {"x": [1, 2]}}}' > s.json
        defaults write d A -int 0; defaults history > /dev/null; sleep 1.3; last() { jq '."last change"' $M/.prefs/status.json; }
        before=$(last); files=$(find $C $XDG_STATE_HOME -type f -printf '%p %i %T@\\n' | sort)
        defaults apply --as s --dry-run s.json | wc -l; [ "$(last)" = "$before" ] && echo same
        [ "$(find $C $XDG_STATE_HOME -type f -printf '%p %i %T@\\n' | sort)" = "$files" ] && echo untouched
        defaults apply --as s s.json > /dev/null; before=$(last)
        defaults apply --as s s.json; [ "$(last)" = "$before" ] && echo same
        """)
      #expect(outcome.output == "2\nsame\nuntouched\nsame\n", "\(outcome)")
    }
  }

  @Test("a document in the mount may call domains as `apply --as` lets it")
  func names() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        echo '{"Apple Global Domain": {"A": 1}, "d.plist": {"B": 2}}' > $M/.prefs/declared/n.json
        defaults read -g A; defaults read d B; rm $M/.prefs/declared/n.json; cat $M/d/B
        """)
      #expect(outcome.output == "1\n2\n", "\(outcome)")
    }
  }

  @Test("a document reads back its bytes, null and all, in another mount and after a remount")
  func bytes() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      let text = #"{ "d":{"A":1,   "Gone": null},"e": {} }"#
      sandbox.shell("printf '\(text)' > $M/.prefs/declared/s.json")
      #expect(sandbox.shell("cat $M2/.prefs/declared/s.json; cat $M/d/A").output == "\(text)1\n")
      #expect(sandbox.shell("cat $M2/.prefs/declared/s.plist").output.contains("$absent"))
      other.unmount()
      sandbox.shell("pkill -f \"prefsd --store $C\"; sleep 0.3")
      let again = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { again.unmount() }
      let outcome = sandbox.shell(
        """
        cd $C/..; cat $M2/.prefs/declared/s.json
        printf '\(text)' > s.json; defaults apply --as s s.json; cat $M2/.prefs/declared/s.json
        printf '{"d": {"A": 2}}' > s.json; defaults apply --as s s.json; cat $M/.prefs/declared/s.json
        """)
      #expect(
        outcome.output == """
          \(text)\(text)d A: 1 -> 2
          {
            "d": {
              "A": 2
            }
          }

          """, "\(outcome)")
    }
  }

  @Test("a declaration is a file: writing applies it, removing it takes back, a conflict is EPERM")
  func files() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $M; mkdir d; echo 8 > d/A; D=.prefs/declared
        echo '{"d": {"A": 2, "B": "x", "Gone": null}, "new": {"K": true}}' > $D/site.json
        cat d/A d/B new/K $D/site.json; ls $D; cat $D/drift; echo 5 > d/A; cat $D/drift
        echo '{"d": {"A": 3}}' > $D/other.json; echo "[$?]"
        for text in '{"d": 3}' '[1]' '{"d": {"A": '; do echo "$text" > $D/bad.json; echo "[$?]"; done; rm -f $D/bad.json
        echo x > $D/drift; touch $D/nothing; echo "[$?]"
        echo '{"d": {"B": "y"}}' > $C/../s.json; cp $C/../s.json $D/site.json; cat d/A d/B; ls
        sed -i 's/"y"/"z"/' $D/site.json; cat d/B; mv $D/site.json $D/site2.json; cat d/B
        grep -c '<key>B</key>' $D/site2.plist; rm $D/site2.json; ls d; ls $D; ls
        printf '{"d": {"A": 1}}' > $C/../s.json; cp $C/../s.json $D/k.json; cat $D/k.json > /dev/null; ls $D/k.plist
        defaults undeclare k > /dev/null; cp $C/../s.json $D/k.json && cat d/A; rm $D/k.json; ls $D/k.plist
        """)
      #expect(
        outcome.output.replacing("/bin/bash: line", with: "bash: line").replacing(
          #/bash: line \d+: /#, with: "") == """
            2
            x
            true
            {"d": {"A": 2, "B": "x", "Gone": null}, "new": {"K": true}}
            drift
            site.json
            site.plist
            d A: declared 2 (site), is 5
            echo: write error: Operation not permitted
            [1]
            echo: write error: Invalid argument
            [1]
            echo: write error: Invalid argument
            [1]
            [0]
            .prefs/declared/drift: Operation not permitted
            touch: cannot touch '.prefs/declared/nothing': Operation not permitted
            [1]
            5
            y
            NSGlobalDomain
            d
            prefsfs.declared
            z
            z
            1
            A
            drift
            NSGlobalDomain
            d
            .prefs/declared/k.plist
            1
            ls: cannot access '.prefs/declared/k.plist': No such file or directory

            """, "\(outcome)")
      #expect(mount.log.contains("declared differently by other (3) and site (2)"), "\(mount.log)")
    }
  }

  @Test("elements, exact domains and variables by a file; why, and adoption, by the command")
  func instructions() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $C/..; defaults write d L -array a b; defaults write d Other 1; D=$M/.prefs/declared
        echo '{"d": {"$exact": true, "L": {"$add": ["c"], "$remove": ["a"]}, "H": "${home}/x"}}' > $D/s.json
        defaults read d L; sed "s|$HOME|HOME|" $M/d/H; ls $M/d
        echo '{"e": {"H": "${nothing}"}}' > $D/t.json 2> /dev/null; echo "[$?]"; rm -f $D/t.json
        rm $D/s.json; defaults read d L; defaults read d Other
        printf '{"e": {"K":   1}}' > k.json; defaults apply --as k k.json
        defaults write --because 'it is better' e K -int 2
        defaults declared --drift | sed 's/.*: //'; defaults declared --adopt k.json; cat k.json; echo
        defaults declared --drift; echo "[$?]"; defaults apply --as k k.json; echo "[$?]"
        """)
      #expect(
        outcome.output == """
          (
              b,
              c
          )
          HOME/x
          H
          L
          [1]
          (
              b,
              a
          )
          1
          e K: (none) -> 1
          it is better
          k.json adopted
          {"e": {"K":   2}}
          [0]
          [0]

          """, "\(outcome)")
    }
  }

  @Test("adoption changes all files or none, keeps what a schema calls secret, reads no comments")
  func refusedAdoption() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; printf '{"e": {"K":   1}}' > k.json
        # No temporary file beside it can have a longer name.
        L=$(printf 'x%.0s' $(seq 249)).json; printf '{"f": {"K": 1}}' > $L
        prefs apply --as k k.json $L; prefs write e K -int 2; prefs write f K -int 2
        prefs declared --adopt k.json $L 2>&1 | sed 's,/.*/xx*.json.[0-9]*,FILE,'; cat k.json $L; echo
        prefs declared --drift | wc -l; mkdir $PREFSFS_SYSTEM_DIR/schemas
        echo '{"pfm_domain": "g", "pfm_subkeys": [
          {"pfm_name": "Pin", "pfm_type": "string", "pfm_sensitive": true}]}' \\
          > $PREFSFS_SYSTEM_DIR/schemas/g.plist
        echo '{"g": {"Pin": "1", "K": 1}}' > s.json; prefs apply --as s s.json > log
        prefs write g Pin 2; prefs write g K -int 2; prefs declared --adopt s.json; echo "[$?]"
        cat s.json; echo '{"g": {"K": 1, /* one */ "L": 2}}' > s.json
        prefs declared --adopt s.json; echo "[$?]"
        """)
      #expect(
        outcome.output == """
          e K: (none) -> 1
          f K: (none) -> 1
          prefs: Could not adopt; no document was changed
          prefs: open FILE: File name too long
          {"e": {"K":   1}}{"f": {"K": 1}}
          2
          prefs: g Pin: it is a secret by its name or schema, or is not to be kept
          s.json adopted
          [1]
          {"g": {"Pin": "1", "K": 2}}
          prefs: Could not parse s.json; no document was changed
          prefs: json property list, line 1: JSON has no comments
          [1]

          """, "\(outcome)")
    }
  }

  @Test("a document that was edited is not adopted, also not by name: it would set values")
  func editedAdoption() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; echo '{"e": {"K": 1}}' > k.json; echo '{"f": {"L": 1}}' > l.json
        prefs apply --as k k.json l.json > log; prefs write e K -int 2
        echo '{"e": {"K": 1, "New": 3}}' > edited.json
        prefs declared --adopt --as k edited.json l.json; echo "[$?]"; cat edited.json
        prefs declared --adopt --as k k.json > log 2>&1; echo "[$?]"; prefs read f L
        prefs read e New > log 2>&1; echo "[$?]"
        prefs declared --adopt --as k k.json l.json; cat k.json
        """)
      #expect(
        outcome.output.contains("edited.json, l.json: not what k declares")
          && outcome.output.hasSuffix(
            """
            [1]
            {"e": {"K": 1, "New": 3}}
            [1]
            1
            [1]
            k.json adopted
            {"e": {"K": 2}}

            """),
        "\(outcome)")
    }
  }

  @Test("what is not confirmed goes back, also if the owner was killed; a lease ends by itself")
  func deadlines() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..; defaults write d K -int 1; echo '{"d": {"K": 2}}' > s.json
        defaults apply --as s --confirm 1 s.json; defaults declared | sed 's/until .*Z/until T/'
        kill -9 $(cat $XDG_STATE_HOME/prefsfs/*/lock); sleep 1.1; defaults read d K; defaults declared
        defaults apply --as s --lease 1 s.json; defaults declared | sed 's/until .*Z/until T/'
        for i in $(seq 100); do [ "$(defaults read d K)" = 2 ] || break; sleep .05; done
        defaults read d K; defaults apply --as s --confirm 5m s.json; defaults confirm s
        defaults declared; defaults confirm s 2> /dev/null; echo "[$?]"
        defaults write --lease 2h d New -int 5; defaults read d New; defaults undeclare lease:d:New
        """)
      #expect(
        outcome.output == """
          d K: 1 -> 2
          s: 1 key of 1 domain, until T unless it is confirmed
          1
          d K: 1 -> 2
          s: 1 key of 1 domain, until T
          1
          d K: 1 -> 2
          s: 1 key of 1 domain
          [1]
          5
          d New: 5 -> (none)    (back: no longer declared)

          """, "\(outcome)")
    }
  }

  @Test("a copy of a store that is mounted beside it keeps its leases")
  func backup() throws {
    try withSandbox { sandbox in
      let applied = sandbox.shell(
        "echo '{\"d\": {\"K\": 2}}' > $C/../s.json; prefs apply --as s --lease 2 $C/../s.json")
      // With everything saved, and before the deadline.
      sandbox.killOwner(with: SIGTERM)
      let outcome = sandbox.shell(
        """
        cp -r $C $C/../copy; sleep 2; $PREFSFS -o store=$C/../copy $M; cat $M/d/K; sleep 1.1; cat $M/d/K
        prefs read d K 2> /dev/null; echo "[$?]"; fusermount3 -u $M
        """)
      #expect(applied.output == "d K: (none) -> 2\n", "\(applied)")
      #expect(outcome.output == "2\n2\n[1]\n", "\(outcome)")
    }
  }

  @Test("root forces through a declaration in the machine's places, and takes it back")
  func machine() throws {
    try withMount(["--system"]) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        ls $M/declared; echo '{"d": {"K": 1}}' > $M/declared/managed/fleet.json; defaults explain d K | head -1
        printf '{"d": {"V": 2}}' > $C/../v.json; defaults apply --as vendor --place host --place any-user $C/../v.json
        ls $M/declared/*; defaults declared --place managed; defaults write d K 3 2> /dev/null; echo "[$?]"
        rm $M/declared/managed/fleet.json; defaults explain d K 2> /dev/null; defaults write d K 3; defaults read d K
        defaults undeclare --place any-user vendor; sleep 1.3; find $PREFSFS_SYSTEM_DIR -name '*.plist'
        """)
      #expect(
        outcome.output.replacing(sandbox.mountPoint, with: "M") == """
          any-user
          managed
          * managed (forced): 1
          d V: (none) -> 2
          M/declared/any-user:
          drift
          vendor.json
          vendor.plist

          M/declared/managed:
          drift
          fleet.json
          fleet.plist
          fleet: 1 key of 1 domain
          [1]
          3
          d V: 2 -> (none)    (back: no longer declared)

          """, "\(outcome)")
    }
  }

  @Test("kill -9 at any moment of an apply: values and ledger agree")
  func killed() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..
        for n in 1 2; do
          python3 -c "import json; print(json.dumps({'d%d' % i: {'K%d' % k: $n for k in range(5)} for i in range(4)}))" > $n.json
        done
        defaults write d0 Own 1
        for round in $(seq 30); do
          n=$((round % 2 + 1)); defaults apply --as site $n.json > /dev/null 2>&1 &
          sleep 0.0$((RANDOM % 30)); kill -9 $(cat $XDG_STATE_HOME/prefsfs/*/lock) 2> /dev/null; wait $!
          defaults declared --drift || echo "drift in round $round"
          [ "$(for i in 0 1 2 3; do defaults read d$i 2> /dev/null; done | grep -c 'K[0-9]* = ')" -eq 20 ] || \\
            [ "$(defaults declared)" = "" ] || echo "keys are missing in round $round"
        done
        defaults undeclare site > /dev/null; defaults domains; defaults read d0
        """)
      #expect(outcome.output == "d0\n{\n    Own = 1;\n}\n", "\(outcome)")
    }
  }
}
