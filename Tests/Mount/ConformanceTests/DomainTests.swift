import Foundation
import Support
import Testing

/// Domains that are renamed, or that only defaults make: what every mount, and the command, then
/// shows of their keys and of domains that have them as a suite.
@Suite("Domains in several mounts") struct DomainTests {
  /// Runs a script with mounts at `$M` and `$M2` and returns what it prints.
  private func output(
    of script: String, _ second: [String] = [], prepare: (Sandbox) -> Void = { _ in }
  ) throws -> String {
    var text = ""
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let other = try Mount(sandbox, second, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      text = sandbox.shell("M2=\(sandbox.secondMountPoint); \(script)").output
    }
    return text
  }

  /// Makes a schema of the domain `s`, with the default 4 for the key `K`.
  private func makeSchema(_ sandbox: Sandbox) {
    sandbox.shell("mkdir -p $PREFSFS_SYSTEM_DIR/schemas")
    sandbox.makeList(
      sandbox.system + "/schemas/s.plist",
      "{'pfm_domain': 's', 'prefs_authoritative': True, 'pfm_subkeys': "
        + "[{'pfm_name': 'K', 'pfm_type': 'integer', 'pfm_default': 4}]}")
  }

  @Test("a renamed domain gives domains that have it as a suite nothing, and its new name does")
  func renamedSuites() throws {
    let script = """
      defaults write base Font Serif; defaults write d X x; defaults write e X x
      defaults suites d add base; defaults suites e add later
      cat $M/d/Font $M2/d/Font; cat $M/e/Font $M2/e/Font 2>&1 | grep -c 'No such'
      mv $M/base $M/later; sleep 0.3
      for m in $M $M2; do
        cat $m/d/Font 2>&1 | grep -c 'No such'; stat $m/d/Font 2>&1 | grep -c 'No such'; cat $m/e/Font
      done
      echo Sans > $M/d/Font; cat $M/d/Font $M2/d/Font
      """
    #expect(
      try output(of: script) == "Serif\nSerif\n2\n1\n1\nSerif\n1\n1\nSerif\nSans\nSans\n")
  }

  @Test("a domain that mkdir has made stays without its last key, one that a key has made does not")
  func made() throws {
    let script = """
      there() { for d in made born moved imported; do [ -d $M/$d ] && echo $d; done; echo; }
      mkdir $M/made; defaults write born K 1
      for d in made born; do echo 2 > $M/$d/K; defaults delete $d K; done; there
      defaults write made '{}'; there; defaults write made K 1; defaults synchronize
      pkill -f "prefsd.*$C"; sleep 0.3; defaults delete made K; there
      defaults write made K 1; pkill -9 -f "prefsd.*$C"; sleep 0.3; defaults delete made K; there
      echo 3 > $M/made/K; mv $M/made $M/moved; defaults delete moved K; there
      defaults write born K 1; mv $M/born $M/born2; mv $M/born2 $M/born; defaults delete born K
      echo '{K = 1;}' > $C/../list; defaults import imported $C/../list; defaults delete imported K
      there; rmdir $M/moved; there
      mkdir $M/made; defaults delete made; there
      defaults write made K 1; defaults delete made K; there
      """
    #expect(
      try output(of: script)
        == "made\n\nmade\n\nmade\n\nmade\n\nmoved\n\nmoved\n\n\n\n\n")
  }

  @Test("the settings' domain that is renamed leaves no suites behind")
  func renamedSettings() throws {
    let script = """
      defaults write base Font Serif; defaults write d X x; defaults suites d add base
      cat $M/d/Font $M2/d/Font; mv $M/prefsfs $M/other; sleep 0.3
      cat $M/d/Font $M2/d/Font $M/.prefs/suites/d $M2/.prefs/suites/d 2>&1 | grep -c 'No such'
      """
    #expect(try output(of: script) == "Serif\nSerif\n2\n")
  }

  @Test("the suites of a domain cannot be read while the list that keeps them is broken")
  func brokenSuites() throws {
    let script = """
      defaults write base F 1; defaults write d X x; defaults suites d add base; sleep 1.1
      show() { cat $M/.prefs/suites/d $M2/.prefs/suites/d 2>&1 | sed 's/.*: //'; }
      show; stat $M/.prefs/suites/d > /dev/null; echo 'x{' > $C/prefsfs.plist
      for i in $(seq 60); do [ "$(show | sort -u)" = 'Input/output error' ] && break; sleep 0.05; done
      show
      """
    #expect(
      try output(of: script) == "base\nbase\nInput/output error\nInput/output error\n")
  }

  @Test("an open file of a renamed domain does not keep a value where a schema's default counts")
  func renamedUnderSchema() throws {
    let script = """
      defaults write s K -int 5; defaults write s J jj
      exec 7<$M2/s/K 8<$M2/s/J; cat <&7; cat <&8; mv $M/s $M/t; sleep 0.3
      cat $M/s/K $M2/s/K $M2/t/K; cat $M2/s/J 2>&1 | grep -c 'No such'
      """
    #expect(try output(of: script, prepare: makeSchema) == "5\njj\n4\n4\n5\n1\n")
  }

  @Test("defaults watch tells of the values of a domain that is renamed")
  func watched() throws {
    let script = """
      defaults write base Font Serif; defaults watch base > $C/../watched 2> /dev/null & w=$!
      sleep 0.7; mv $M/base $M/other; sleep 0.7; kill -9 $w; grep -c Font $C/../watched
      """
    #expect(try output(of: script) == "1\n")
  }

  @Test("a list that was read, and is broken then, leaves its directory there for a new mount")
  func broken() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("defaults write b K bb; sleep 1.3; echo 'garbage{' > $C/b.plist")
      sandbox.waitUntil("! defaults read b")
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      let script = """
        cd \(sandbox.secondMountPoint); stat -c %F b; ls -l > /dev/null && echo listed
        cat b/K 2>&1 | grep -c 'Input/output'; ls -l .prefs/suites > /dev/null && echo suites
        """
      #expect(sandbox.shell(script).output == "directory\nlisted\n1\nsuites\n")
    }
  }

  @Test("the mount that makes a domain of defaults, or by a declaration, lists it everywhere")
  func madeWithoutKeys() throws {
    let script = """
      echo '{"z":{"Q":1}}' > $M/.prefs/declared/z.json; cat $M/s/K; cd $M/.prefs; ls $M suites > /dev/null
      echo '{"s":{"K":5},"new":{"K":1}}' > declared/a.json; sleep 0.3
      for m in $M $M2; do ls $m | grep -xc 's\\|new'; ls $m/.prefs/suites | grep -xc 's\\|new'; done
      """
    #expect(try output(of: script, prepare: makeSchema) == "4\n2\n2\n2\n2\n")
  }

  @Test("explain and search open for a domain that only defaults make")
  func defaultsAlone() throws {
    let script = """
      mkdir $M/.prefs/places/registered/r; echo 1 > $M/.prefs/places/registered/r/R
      cd $M/.prefs; grep -c registered explain/r/R; grep -c 'schema.*4' explain/s/K
      cat search/r search/s > /dev/null && echo found; cat search/none 2>&1 | grep -c 'No such'
      """
    #expect(try output(of: script, prepare: makeSchema) == "1\n1\nfound\n1\n")
  }

  @Test(
    "with list=all an inherited key with a shortened name can be read, and comes when it is set")
  func shortened() throws {
    let script = """
      long() { printf "$1%.0s" $(seq 300); }
      defaults write -g $(long g) one; defaults write a K 1; name=$(ls $M2/a | grep g)
      cat $M2/a/$name; defaults write -g $(long h) two; h=$(ls $M2/a | grep hh)
      defaults delete -g $(long h); cat $M2/a/$h 2>&1 | grep -c 'No such'; sleep 1.1
      defaults write -g $(long h) three; cat $M2/a/$h
      """
    #expect(try output(of: script, ["-o", "list=all"]) == "one\n1\nthree\n")
  }
}
