import Foundation
import Support
import Testing

/// `.prefs/effective`, and `defaults export --effective`: the values that programs read of a domain,
/// as documents.
@Suite("Documents of what programs read") struct EffectiveTests {
  @Test("a document has the values of all rows, and changes when one of them does, and only then")
  func documents() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell(Self.reading).output == Self.shown)
      let directory = sandbox.mountPoint + "/.prefs/effective"
      let watcher = try sandbox.watch(["."], in: directory)
      defer { sandbox.end(watcher) }
      /// Runs commands that change the document, and waits until it has been announced that often.
      let change = { (commands: String, count: Int) in
        let outcome = sandbox.shell("cd \(directory); \(commands)")
        #expect(outcome.errors == "", "\(commands): \(outcome)")
        sandbox.waitUntil("[ $(grep -c 'CLOSE_WRITE,CLOSE ./d.json' $C/../events) -ge \(count) ]")
        sandbox.shell("cat \(directory)/d.json")
      }
      // What leaves the document as it is comes before what does not, and is not announced.
      change(
        """
        defaults write d Integer -int 42; defaults write other Key x; defaults write -g Inherited x
        echo 43 > $M/d/Integer
        """, 1)
      change("defaults write $PREFSFS_SYSTEM_DIR/managed/d Integer -int 9", 2)
      change(
        """
        defaults write $PREFSFS_SYSTEM_DIR/d Integer -int 5; defaults write base FromSuite -int 0
        defaults suites d add base
        """, 3)
      change("defaults write base FromSuite -int 1", 4)
      change("defaults write $PREFSFS_SYSTEM_DIR/managed/.GlobalPreferences String x", 5)
      let events = sandbox.shell("sort $C/../events | uniq -c | sed 's/^ *//' | grep d.json")
      #expect(events.output == "5 CLOSE_WRITE,CLOSE ./d.json\n5 MODIFY ./d.json\n", "\(events)")
      #expect(
        sandbox.shell("jq -c '[.Integer, .FromSuite, .String]' \(directory)/d.json").output
          == "[9,1,\"x\"]\n")
      sandbox.shell("cat \(directory)/other.env; defaults delete other")
      sandbox.waitUntil(
        "[ ! -e \(directory)/other.env ] && grep -q 'DELETE ./other.env' $C/../events")
    }
  }

  private static let reading = """
    exec 2>&1; cd $M/.prefs/effective; echo $(ls | grep '^d[.]')
    jq -c '[.Integer, .Machine, .Forced, .Inherited, .Date, .Data]' d.json
    plutil -p d.plist | grep -E 'Forced|Machine'; grep -E '^(Dict|Integer|Machine)=' d.env
    sed -n '/Dict/,$p' d.ini; stat -c %a d.json
    for try in 'echo x > d.json' 'rm d.env' 'touch new.ini' 'mkdir x' 'mv d.json e.json'; do
      (eval "$try") 2> /dev/null && echo "$try was not refused"; done
    ls | grep -cE 'new|x|e[.]json'; ls none.json 2> /dev/null || echo none
    for form in json plist env ini; do defaults export --effective --as $form d | cmp - d.$form; done
    defaults export --effective --as json --global d $C/all; jq -c '[.Integer, .Inherited]' $C/all
    for words in '--effective d' '--as json d' '--effective --as xml d'; do
      defaults export $words > /dev/null 2>&1; echo $?; done
    # Both keys are set by one change, so no reader sees one of them alone.
    echo '{"d": {"A": 10, "B": 10}}' > $M/.prefs/apply
    for i in {11..50}; do echo "{\\"d\\": {\\"A\\": $i, \\"B\\": $i}}" > $M/.prefs/apply; done & writer=$!
    while kill -0 $writer 2> /dev/null; do jq -e '.A == .B' d.json > /dev/null || echo torn; done
    wait $writer; jq .B d.json; sleep 0.2
    """

  private static let shown = """
    d.env d.ini d.json d.plist
    [42,"m",7,null,"2026-11-21T07:20:00Z","AQI="]
      "Forced" => 7
      "Machine" => "m"
    Dict="{\\"a\\": 1, \\"b\\": {\\"c\\": [true]}}"
    Integer="42"
    Machine="m"
    [Dict]
    a=1
    b={"c": [true]}
    600
    0
    none
    [42,"global"]
    255
    255
    255
    50

    """
}
