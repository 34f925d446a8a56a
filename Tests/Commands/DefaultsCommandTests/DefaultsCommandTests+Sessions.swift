extension DefaultsCommandTests {
  /// What `defaults` prints in short sessions.
  static let sessions: [(name: String, session: String, text: String)] = [
    ("read prints a value", "defaults write d K -int 5; defaults read d K", "5\n[0]\n"),
    ("verbs may be in any case", "defaults WRITE d K x; defaults Read d K", "x\n[0]\n"),
    (
      "read of a missing key fails", "defaults write d K x; defaults read d No",
      "\nThe domain/default pair of (d, No) does not exist\n[1]\n"
    ),
    (
      "read-type in a missing domain fails", "defaults read-type no No",
      "\nThe domain/default pair of (no, No) does not exist\n[1]\n"
    ),
    ("read of a missing domain fails", "defaults read no", "\nDomain no does not exist\n[1]\n"),
    (
      "read of a missing global key fails", "defaults read -g No",
      "\nThe domain/default pair of (kCFPreferencesAnyApplication, No) does not exist\n[1]\n"
    ),
    (
      "read of an empty global domain fails", "defaults read NSGlobalDomain",
      "\nDomain Apple Global Domain does not exist\n[1]\n"
    ),
    (
      "the global domain has four names",
      "defaults write -g A 1; defaults write 'Apple Global Domain' B 2; "
        + "defaults write NSGlobalDomain C 3; defaults read -globalDomain",
      "{\n    A = 1;\n    B = 2;\n    C = 3;\n}\n[0]\n"
    ),
    (
      "read-type names each type",
      "defaults write d S s; defaults write d I -int 1; defaults write d F -float 1; "
        + "defaults write d B -bool yes; defaults write d D -date now; defaults write d X -data 00; "
        + "defaults write d A -array; defaults write d O -dict\n"
        + "for k in S I F B D X A O; do defaults read-type d $k; done",
      "Type is string\nType is integer\nType is float\nType is boolean\nType is date\n"
        + "Type is data\nType is array\nType is dictionary\n[0]\n"
    ),
    (
      "write of a domain takes a dictionary only", "defaults write d key",
      "\nRep argument is not a dictionary\nDefaults have not been changed.\n[1]\n"
    ),
    (
      "write of a dictionary replaces a domain",
      "defaults write d Old x; defaults -currentHost write d Old y; defaults write d '{New = z;}'; "
        + "defaults read d", "{\n    New = z;\n}\n[0]\n"
    ),
    (
      "-array-add appends to an array",
      "defaults write d A -array-add a; defaults write d A -array-add a -int 1; defaults read d A",
      "(\n    a,\n    a,\n    1\n)\n[0]\n"
    ),
    (
      "-dict-add adds to a dictionary",
      "defaults write d O -dict-add a 1 b 2; defaults write d O -dict-add b 3; defaults read d O",
      "{\n    a = 1;\n    b = 3;\n}\n[0]\n"
    ),
    (
      "-array-add takes an array only", "defaults write d S s; defaults write d S -array-add a",
      "Value for key S is not an array; cannot append.  Leaving defaults unchanged.\n[1]\n"
    ),
    (
      "-dict-add takes a dictionary only", "defaults write d S s; defaults write d S -dict-add a b",
      "Value for key S is not a dictionary; cannot append.  Leaving defaults unchanged.\n[1]\n"
    ),
    (
      "rename replaces the other key",
      "defaults write d A -int 1; defaults write d B x; defaults rename d A B; "
        + "defaults read d", "{\n    B = 1;\n}\n[0]\n"
    ),
    (
      "rename of a missing key fails", "defaults rename d A B",
      "Key A does not exist in domain d; leaving defaults unchanged\n[1]\n"
    ),
    (
      "delete removes a key",
      "defaults write d A x; defaults write d B y; defaults delete d A; "
        + "defaults read d", "{\n    B = y;\n}\n[0]\n"
    ),
    (
      "remove removes a domain", "defaults write d A x; defaults remove d; defaults read d",
      "\nDomain d does not exist\n[1]\n"
    ),
    (
      "delete-all removes a domain",
      "defaults write d A x; defaults delete-all d; defaults domains", "\n[0]\n"
    ),
    (
      "delete of a missing domain fails", "defaults delete d",
      "\nDomain (d) not found.\nDefaults have not been changed.\n[1]\n"
    ),
    (
      "delete of a missing key fails", "defaults write d A x; defaults delete d B",
      "\nDomain (d) not found.\nDefaults have not been changed.\n[1]\n"
    ),
    (
      "domains lists all but the global domain",
      "for d in b.c a -g; do defaults write $d K x; done; defaults domains",
      "a, b.c\n[0]\n"
    ),
    (
      "read without a domain prints them all",
      "for d in b.c a -g; do defaults write $d K x; done; defaults read",
      "{\n    \"Apple Global Domain\" =     {\n        K = x;\n    };\n    a =     {\n"
        + "        K = x;\n    };\n    \"b.c\" =     {\n        K = x;\n    };\n}\n[0]\n"
    ),
    (
      "find searches keys and values in any case",
      "defaults write d Needle x; defaults write d K -array -int 1 'a nEEdle b'; "
        + "defaults write e K no; defaults find needle",
      "Found 2 keys in domain 'd': {\n    K =     (\n        1,\n        \"a nEEdle b\"\n    );\n"
        + "    Needle = x;\n}\n[0]\n"
    ),
    (
      "find says that it found nothing",
      "defaults find zzz", "No domain, key, nor value containing 'zzz'\n[0]\n"
    ),
    (
      "-currentHost and -host use this host's list",
      "defaults write d K any; defaults -currentHost write d K here; "
        + "defaults read d K; defaults -currentHost delete d K; defaults read d K; "
        + "defaults -host localhost read d K",
      "here\nany\n\nThe domain/default pair of (d, K) does not exist\n[1]\n"
    ),
    (
      "a plain write changes this host's value too",
      "defaults -currentHost write d K here; "
        + "defaults write d K there; defaults -currentHost read d K", "there\n[0]\n"
    ),
    (
      "--path reaches into nested values",
      "defaults write --path d K:a:b -int 1; defaults write --path d K:a:c x; "
        + "defaults delete --path d K:a:b; defaults read --path d K:a",
      "{\n    c = x;\n}\n[0]\n"
    ),
    (
      "read of a path that leads nowhere fails", "defaults write d K x; defaults read --path d K:a",
      "\nThe domain/default pair of (d, K:a) does not exist\n[1]\n"
    ),
    (
      "--apple-text escapes as macOS does",
      "defaults write d K 'à'; defaults --apple-text read d K; defaults read d K",
      "\\340\nà\n[0]\n"
    ),
    (
      "escapes in an untyped word are read",
      "defaults write d K '@\\U21a9'; defaults read d K", "@↩\n[0]\n"
    ),
    (
      "the name of the global list is the global domain",
      "defaults write .GlobalPreferences K -int 1; defaults read -g K", "1\n[0]\n"
    ),
    (
      "-currentHost lists and reads this host's domains",
      "defaults write a K x; defaults -currentHost write b K x; defaults -currentHost domains; "
        + "defaults -currentHost read", "b\n{\n    b =     {\n        K = x;\n    };\n}\n[0]\n"
    ),
    (
      "whole reals have no exponent",
      "defaults write d K -float 100000000; defaults read d K", "100000000\n[0]\n"
    ),
    (
      "a domain is gone with its last key",
      "defaults write d K x; defaults delete d K; defaults domains", "\n[0]\n"
    ),
    (
      "a name that no list can have does not exist", "defaults read a/b; defaults read a/b K",
      "\nDomain a/b does not exist\n\n"
        + "The domain/default pair of (a/b, K) does not exist\n[1]\n"
    ),
    (
      "a rename renames the key in this host's list too, and each list keeps its value",
      "defaults write d A x; defaults -currentHost write d A y; defaults write d B z; "
        + "defaults rename d A B; defaults read $C/d; defaults -currentHost read d; "
        + "defaults read d A",
      """
      {
          B = x;
      }
      {
          B = y;
      }

      The domain/default pair of (d, A) does not exist
      [1]

      """
    ),
    (
      "a key is not renamed to a forced one",
      "mkdir -p $PREFSFS_SYSTEM_DIR/managed; defaults write d A x; "
        + "printf '{B = 9;}' > $PREFSFS_SYSTEM_DIR/managed/d.plist; sleep 0.5; "
        + "defaults rename d A B > /dev/null 2>&1; echo $?; defaults read $C/d A", "1\nx\n[0]\n"
    ),
    (
      "a key of this host alone is renamed there alone",
      "defaults -currentHost write d A y; defaults write d B z; defaults rename d A B; "
        + "defaults -currentHost read d B; defaults -currentHost delete d; defaults read d B | tail -1",
      "y\n\nThe domain/default pair of (d, B) does not exist\n[0]\n"
    ),
    (
      "U+FFFD in an argument is UTF-8",
      "defaults write d $'\\xef\\xbf\\xbd' v; defaults read d $'\\xef\\xbf\\xbd'",
      "v\n[0]\n"
    ),
    (
      "a list that became unreadable refuses the next write at once",
      "defaults write --sync d A x; echo '{' > $C/d.plist; sleep 0.2; defaults write d A y "
        + "2> /dev/null; echo $?; defaults read d A 2> /dev/null", "1\n[1]\n"
    ),
    (
      "a date with a fraction is XML in whole seconds, also alone",
      "defaults write d A -date 2026-11-21T07:20:00.5Z; defaults read --plist d A | tail -2 | head -1",
      "<date>2026-11-21T07:20:00Z</date>\n[0]\n"
    ),
    (
      "history forget needs a domain",
      "defaults history forget 2> /dev/null > $C/../help; s=$?; head -c 5 $C/../help; "
        + "(exit $s)", "usage[255]\n"
    ),
    (
      "the history of a domain that there is not says so",
      "defaults write d A 1; defaults history nope",
      "defaults: there is no domain nope, and the history has no such change of it\n[0]\n"
    ),
    (
      "a document that has no dictionary is refused with the right article",
      "echo '{\"d\": 5, \"e\": []}' | defaults apply - 2>&1 | grep -o 'found.*'",
      "found an integer\n[0]\n"
    ),
    (
      "declared looks at this host's declarations too",
      "defaults -currentHost apply --as n - <<< '{\"d\":{\"A\":1}}' > /dev/null; "
        + "defaults -currentHost write d A 2; defaults -currentHost declared --drift | cut -c1-25",
      "d A: declared 1 (n), is 2\n[0]\n"
    ),
    (
      "an argument that is not UTF-8 is refused", "defaults write d $'\\xff' v",
      "An argument is not UTF-8; nothing was done\n[1]\n"
    ),
    (
      "a full device is reported", "defaults write d K x; defaults read d > /dev/full",
      "Could not write to standard output: No space left on device\n[1]\n"
    ),
    (
      "the 30th of February prints the usage",
      "defaults write d K -date 2026-02-30 2>&1 | cat",
      "defaults: \"2026-02-30\" is not a date, as in 2026-11-21 07:20:00 +0000\n"
        + "usage: defaults write DOMAIN KEY VALUE    (more: defaults write --help)\n[0]\n"
    ),
    (
      "--json prints JSON",
      "defaults write d K -array -int 1 -float 2 -bool yes; defaults read --json d",
      "{\n  \"K\": [\n    1,\n    2.0,\n    true\n  ]\n}\n[0]\n"
    ),
    (
      "record has what a program and its children change, and not what others change meanwhile",
      "cd $HOME; defaults record -- sh -c 'sh -c \"defaults write d A 1\"; touch started; "
        + "until [ -e go ]; do sleep 0.01; done' > out & until [ -e started ]; do sleep 0.01; done; "
        + "defaults write d B 2; touch go; wait; cat out; defaults read d B",
      "defaults write d A -string 1\n2\n[0]\n"
    ),
    (
      "what JSON has no form for is a text in a report",
      "defaults write d K '<real>nan</real>'; defaults history --json | grep -o '\"after.*nan[^,]*'",
      "\"after\": \"nan\"\n[0]\n"
    ),
  ]
}
