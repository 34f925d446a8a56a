import Foundation
import Support
import Testing

/// An edit by a real program on a mount. Its script runs in the directory of the domain `d`, where
/// `Number` is the integer 42 and `Text` the string "hello"; `$W` is a directory outside the mount.
/// The script must succeed and leave the text that is expected, keep the type of `Number`, and
/// leave no other files behind.
struct Edit: Sendable, CustomTestStringConvertible {
  var name: String
  var script: String
  /// The key that is looked at afterwards, and the text that it must have.
  var key: String
  var text: String

  init(_ name: String, _ script: String, _ key: String = "Number", _ text: String = "43\n") {
    (self.name, self.script, self.key, self.text) = (name, script, key, text)
  }

  var testDescription: String { name }

  static let all: [Edit] = [
    Edit("bash >", "echo 43 > Number"), Edit("dash >", "dash -c 'echo 43 > Number'"),
    Edit("zsh >", "zsh -fc 'echo 43 > Number'"),
    Edit("zsh >> and noclobber", "zsh -fc 'setopt noclobber; echo 43 >| Number'"),
    Edit("bash noclobber, a new key", "set -C; echo 43 > Fresh", "Fresh"),
    Edit("several writes", "{ echo a; echo b; } > Text", "Text", "a\nb\n"),
    Edit(">>", "echo more >> Text", "Text", "hello\nmore\n"),
    Edit("tee", "echo 43 | tee Number"),
    Edit("tee -a", "echo x | tee -a Text", "Text", "hello\nx\n"),
    Edit("cp", "echo 43 > $W/new; cp $W/new Number"),
    Edit("cp --remove-destination", "echo 43 > $W/new; cp --remove-destination $W/new Number"),
    Edit("cp -b", "echo 43 > $W/new; cp -b $W/new Number; rm Number~"),
    Edit("cp -a of a key", "cp -a Text Copy", "Copy", "hello\n"),
    Edit("mv from elsewhere", "echo 43 > $W/new; mv $W/new Number"),
    Edit("mv key", "mv Text Moved", "Moved", "hello\n"),
    Edit("install", "echo 43 > $W/new; install -m 600 $W/new Number"),
    Edit("install -b", "echo 43 > $W/new; install -b $W/new Number; rm Number~"),
    Edit("dd", "echo 43 | dd of=Number status=none"),
    Edit("dd bs=1", "printf 'world\\n' | dd of=Text bs=1 status=none", "Text", "world\n"),
    Edit("truncate -s 0", "truncate -s 0 Text; sleep 0.1", "Text", ""),
    Edit("sed -i", "sed -i s/42/43/ Number"),
    Edit("sed -i.bak", "sed -i.bak s/42/43/ Number; rm *.bak"),
    Edit("perl -i", "perl -i -pe s/42/43/ Number"),
    Edit("perl -i.bak", "perl -i.bak -pe s/42/43/ Number; rm Number.bak"),
    Edit("gawk -i inplace", "gawk -i inplace '{ print 43 }' Number"),
    Edit("ed", "printf 's/42/43/\\nw\\nq\\n' | ed -s Number"),
    Edit("sponge", "sed s/42/43/ Number | sponge Number"),
    Edit(
      "patch", "printf -- '--- Number\\n+++ Number\\n@@ -1 +1 @@\\n-42\\n+43\\n' | patch -s Number"),
    Edit("rsync", "echo 43 > $W/Number; rsync -I $W/Number ."),
    Edit("rsync --inplace", "echo 43 > $W/Number; rsync -I --inplace $W/Number ."),
    Edit("rsync --delay-updates", "echo 43 > $W/Number; rsync -I --delay-updates $W/Number ./"),
    Edit("rsync -b", "echo 43 > $W/Number; rsync -I -b $W/Number .; rm Number~"),
    Edit("tar x", "echo 43 > $W/Number; tar cC $W Number | tar x --no-same-owner"),
    Edit(
      "git checkout into the mount",
      """
      cd $W; git init -q repo; cd repo; echo 43 > Number; git add .; \
      git -c user.name=a -c user.email=a@b commit -qm x; git --work-tree=$OLDPWD/../mount/d checkout -f -q HEAD -- .
      """),
    Edit("jq through a temporary file", "jq .+1 Number > Number.tmp && mv Number.tmp Number"),
    Edit(
      "python write_text",
      "python3 -c 'import pathlib; pathlib.Path(\"Number\").write_text(\"43\\n\")'"),
    Edit(
      "python tempfile and os.replace",
      """
      python3 -c 'import os, tempfile; f, n = tempfile.mkstemp(dir="."); os.write(f, b"43\\n"); os.close(f); os.replace(n, "Number")'
      """),
    Edit(
      "python json.dump",
      "python3 -c 'import json; json.dump([1, {\"a\": 2}], open(\"List\", \"w\"))'", "List",
      "[1, {\"a\": 2}]"),
    Edit("ex", "ex -sc '%s/42/43/|x' Number < /dev/null"),
  ]
}

@Suite("Tools on a mount") struct ToolTests {
  static func prepare(_ sandbox: Sandbox) {
    sandbox.makeList(sandbox.config + "/d.plist", "dict(Number=42, Text='hello')")
    sandbox.shell("mkdir -p $C/../work")
  }

  /// Runs a script in the domain's directory.
  static func run(_ sandbox: Sandbox, _ script: String) -> Outcome {
    sandbox.shell("export W=$C/../work PATH=/usr/bin:/bin; cd $M/d; set -e; \(script)")
  }

  @Test("an edit leaves the text, the type and no other files", arguments: Edit.all)
  func edit(_ edit: Edit) throws {
    try withMount(prepare: Self.prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = Self.run(sandbox, edit.script)
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(Self.run(sandbox, "cat \(edit.key)").output == edit.text)
      if edit.key == "Number" {
        let type = Self.run(sandbox, "getfattr --only-values -n user.prefs.type Number")
        #expect(type.output == "integer")
      }
      let names = Self.run(sandbox, "ls -A | grep -vxE 'Number|Text|Fresh|Copy|Moved|List' || true")
      #expect(names.output == "")
    }
  }

  /// Programs that skip a file which is as it should be.
  static let unchanged: [(name: String, script: String)] = [
    ("rsync -a", "rsync -ai $W/Number ."), ("rsync -c", "rsync -ci $W/Number ."),
    ("install -C", "install -Cv -m 640 $W/Number Number"),
    ("diff", "diff $W/Number Number"),
  ]

  @Test("a program that skips equal files finds nothing to do", arguments: unchanged.indices)
  func second(_ index: Int) throws {
    try withMount(prepare: Self.prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let script = Self.unchanged[index].script
      let setup = "echo ' 43' > $W/Number; chmod 640 $W/Number; touch -d 2020-05-06 $W/Number"
      #expect(Self.run(sandbox, "\(setup); chmod 640 Number").status == 0)
      let first = Self.run(sandbox, "\(script) || cp -p $W/Number Number")
      #expect(first.status == 0 && !first.output.isEmpty, "\(first.errors)")
      let second = Self.run(sandbox, script)
      #expect(second.status == 0 && second.output == "", "\(second.output)\(second.errors)")
    }
  }
}
