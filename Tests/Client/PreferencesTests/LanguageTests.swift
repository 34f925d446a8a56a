import Foundation
import Support
import Testing

/// The languages of the search list, in programs and on a mount.
@Suite("Languages") struct LanguageTests {
  /// Installs German and French locales for the sandbox alone, and a file for a language of its
  /// own.
  private func prepare(_ sandbox: Sandbox) {
    let outcome = sandbox.shell(
      """
      mkdir -p $C/../locales $C/../data/preferences/languages
      localedef -i de_DE -f UTF-8 $C/../locales/de_DE.UTF-8
      localedef -i fr_FR -f UTF-8 $C/../locales/fr_FR.UTF-8
      echo '{"NSLanguageName": "Mine", "Custom": 3}' > $C/../data/preferences/languages/x-mine.plist
      """)
    #expect(outcome.status == 0, "\(outcome)")
  }

  private static let environment = "LOCPATH=$C/../locales XDG_DATA_HOME=$C/../data"

  @Test("values follow the order of AppleLanguages, in a running mount too; files come first")
  func mount() throws {
    try withSandbox { sandbox in
      prepare(sandbox)
      sandbox.shell("mkdir $C/../m; echo '{}' > $C/d.plist")
      let mount = try sandbox.start(
        "exec env \(Self.environment) \(Program.beside("prefsfs")) -f $C/../m")
      defer {
        sandbox.shell("fusermount3 -u $C/../m")
        mount.waitUntilExit()
      }
      sandbox.waitUntil("[ -d $C/../m/NSGlobalDomain ]")
      let outcome = sandbox.shell(
        """
        cd $C/../m; cat d/NSLanguageName 2>&1 | cut -d: -f3
        echo '["xx", "de-AT", "../../etc/passwd", "fr", "x-mine"]' > NSGlobalDomain/AppleLanguages
        # On a busy machine the data of a language comes more than 1 s later: it is seen then.
        for i in $(seq 100); do [ ! -e d/NSLanguageName ] || break; sleep 0.1; done
        cat d/NSLanguageName d/Custom; getfattr --only-values -n user.prefs.source d/NSLanguageName
        echo; echo '["de", "fr"]' > NSGlobalDomain/AppleLanguages; cat d/NSLanguageName
        head -3 d/NSMonthNameArray; cat d/Custom 2>&1 | cut -d: -f3; echo '["x-mine"]' > d/AppleLanguages
        cat d/NSLanguageName NSGlobalDomain/NSLanguageName; rm d/NSLanguageName; ls d NSGlobalDomain
        echo own > d/NSLanguageName; cat d/NSLanguageName; grep -c '' .prefs/explain/d/NSLanguageName
        """)
      #expect(
        outcome.output == """
           No such file or directory
          German
          3
          language:de-AT
          German
          [
            "Januar",
            "Februar",
           No such file or directory
          Mine
          German
          NSGlobalDomain:
          AppleLanguages

          d:
          AppleLanguages
          own
          4

          """, "\(outcome)")
      #expect(outcome.errors.contains("Operation not permitted"), "\(outcome.errors)")
    }
  }

  @Test("the library's volatile domains and dictionary have the languages")
  func library() throws {
    try withSandbox { sandbox in
      prepare(sandbox)
      let outcome = sandbox.shell(
        """
        export \(Self.environment); defaults write -g AppleLanguages -array de x-mine
        $SAMPLE languages
        """)
      #expect(
        outcome.output == """
          NSArgumentDomain de x-mine NSRegistrationDomain
          German Mine 3
          true

          """, "\(outcome)")
    }
  }
}
