import Foundation
import Support
import Testing

/// Every example of the README and of the articles: a shell session must print what it shows, and
/// Swift code is compiled and run.
@Suite("Documentation") struct DocumentationTests {
  private static let root = Program.package
  private static let catalogue = "Sources/Client/Preferences/Preferences.docc/"
  private static let contract = "Sources/Mount/PreferenceTree/PreferenceTree.docc/"
  static let articles = ["Preferences", "ComingFromUserDefaults", "ProgramsForSeveralSystems"].map {
    catalogue + $0 + ".md"
  }
  static let sessions = [
    "README.md",
    catalogue + "Preferences.md",
    catalogue + "History.md",
    catalogue + "Declarations.md",
    catalogue + "Schemas.md",
    catalogue + "PreferencesInScripts.md",
    catalogue + "PreferencesOfMachines.md",
    catalogue + "PreferencesOfManyMachines.md",
    catalogue + "GSettingsPrograms.md",
    catalogue + "ProgramsThatReadFiles.md",
    catalogue + "Effects.md",
    contract + "TextOfValues.md",
    contract + "ScratchFiles.md",
    contract + "ControlDirectory.md",
    contract + "ConfigurationProfiles.md",
  ]

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  /// Returns the lines of each code block of the language.
  private static func blocks(_ language: String, of path: String) throws -> [[String]] {
    let parts = try text(path).components(separatedBy: "```\(language)\n").dropFirst()
    return parts.compactMap {
      $0.components(separatedBy: "\n```").first?.components(separatedBy: "\n")
    }
  }

  // MARK: - Swift

  @Test("the Swift code of an article is in the examples that are compiled", arguments: articles)
  func compiled(_ article: String) throws {
    let lines = { (text: String) in
      text.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        .filter { !$0.isEmpty && !$0.hasPrefix("import ") }
    }
    let source = try Self.text("Tests/Programs/Sample/Examples.swift")
    let examples = lines(source).joined(separator: "\n")
    let blocks = try Self.blocks("swift", of: article)
    #expect(!blocks.isEmpty)
    for block in blocks {
      let text = lines(block.joined(separator: "\n")).joined(separator: "\n")
      #expect(examples.contains(text), "\(text)")
    }
  }

  @Test("the examples run")
  func examples() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell("$SAMPLE examples")
      #expect(outcome.output == "800 -> 1024, by us\n", "\(outcome)")
      #expect(outcome.status == 0)
    }
  }

  @Test("the README's program reads what echo set in a mount, and is told of the next echo")
  func program() throws {
    let block = try #require(try Self.blocks("swift", of: "README.md").first)
    let source = try Self.text("Tests/Programs/Example/Editor.swift")
    #expect(source == block.joined(separator: "\n") + "\n")
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("mkdir $M/tab-editor; echo 8 > $M/tab-editor/TabWidth")
      let editor = try sandbox.start("exec stdbuf -oL tab-editor > $C/../told 2>&1")
      defer { sandbox.end(editor) }
      sandbox.waitUntil("grep -q 'tabs are 8 wide' $C/../told; sleep 0.2")
      sandbox.shell("echo 2 > $M/tab-editor/TabWidth")
      sandbox.waitUntil("grep -q 'now they are 2 wide' $C/../told")
    }
  }

  @Test("a program's keys are what its schema makes them, and the schema is what a mount judges by")
  func schema() throws {
    let directory = Self.root.appendingPathComponent("Tests/Programs/Example/Schema").path
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; defaults schema swift \(directory)/org.example.tabs.plist | diff - \(directory)/Keys.swift
        mkdir -p $C/../share/preferences/schemas; mkdir $M/org.example.tabs; tabs-example
        cp \(directory)/org.example.tabs.plist $C/../share/preferences/schemas; sleep 0.5
        cd $M/org.example.tabs; echo 99 > Width 2> /dev/null || echo refused; echo 8 > Width
        echo '["Mono"]' > Fonts; echo Dark > Theme; tabs-example; defaults lint
        """)
      #expect(
        outcome.output == """
          width 4, theme light
          fonts []
          refused
          width 8, theme dark
          fonts ["Mono"]

          """, "\(outcome)")
    }
  }

  // MARK: - Shell

  /// Commands before each session, which make it print the same on every machine. A mount is busy
  /// while another program of the machine, as df(1) of another test, looks at it; so the command
  /// that unmounts tries again for 2 s.
  private static let prelude = """
    exec 2>&1
    unset XDG_CONFIG_HOME; cd; mkdir Preferences .config
    ls() { command ls -CT0 "$@"; }
    fusermount3() {
      for try in {1..40}; do command fusermount3 "$@" 2> ~/.busy && return; sleep 0.05; done
      cat ~/.busy; return 1
    }
    defaults write -g AppleLanguages -array de en
    defaults write prefs-sample TabWidth -int 8; defaults write prefs-sample Frame '{height=600;}'
    defaults write prefs-sample Frame -dict height -int 600 width -int 1024
    $PREFSFS ~/Preferences
    """

  /// Commands that run the script `session` as a user with sudo(8): in a mount namespace in which
  /// that user exists and may use it, and in which root's home is in the sandbox.
  private static let withSudo = """
    cd ~/..; chmod 755 .; chmod -R a+rX system; mkdir -p run rootrun root; chmod 700 run
    # A user of this session alone: what it leaves is ended by its number.
    id=$((54330 + $$ % 1000)); export id; chown -R $id:$id home run state
    { sed "s#^root:.*#root:*:0:0::$PWD/root:/bin/bash#" /etc/passwd
      echo "ada:*:$id:$id::$PWD/home:/bin/bash"; } > passwd
    echo "XDG_RUNTIME_DIR=$PWD/rootrun" > variables
    cat > sudoers <<END
    Defaults env_keep += "PREFSFS_SYSTEM_DIR PREFSFS_LOG XDG_DATA_DIRS LC_ALL"
    Defaults secure_path="$PATH", env_file="$PWD/variables"
    ada ALL=(ALL) NOPASSWD: ALL
    END
    chmod 440 sudoers
    # Some machines keep the device for root.
    mknod -m 666 fuse c 10 229
    unshare -m bash -c 'mount --bind passwd /etc/passwd; mount --bind sudoers /etc/sudoers
      mount --bind fuse /dev/fuse
      exec setpriv --reuid $id --regid $id --clear-groups bash session'
    for try in {1..100}; do pkill -KILL -u $id || break; sleep 0.05; done
    for process in $(grep -lsa "=$PWD/root" /proc/[0-9]*/environ | cut -d / -f 3); do
      [ $process = $$ ] || kill -KILL $process
    done
    """

  private static let withEtcd = "PATH=$PATH:\(root.path)/.build/etcd/usr/bin"

  /// Commands that make what the session of a file expects to be there.
  private static let preparations = [
    "README.md": "defaults delete prefs-sample; defaults write com.example.editor TabWidth -int 4",
    catalogue + "PreferencesOfMachines.md": "mkdir Preferences/com.example.editor",
    catalogue + "Schemas.md": "mkdir Preferences/com.example.editor",
    catalogue + "PreferencesOfManyMachines.md": withEtcd,
    catalogue + "ProgramsThatReadFiles.md": withEtcd,
    catalogue + "GSettingsPrograms.md": """
    mkdir ../module ../gschemas
    clang -shared -fPIC -std=gnu11 \(root.path)/Sources/Capabilities/GSettingsBackend/*.c \
      -o ../module/libprefsfs-gsettings.so $(pkg-config --cflags --libs gio-2.0)
    cat > ../gschemas/desktop.gschema.xml <<'END'
    <schemalist><enum id="scheme"><value nick="default" value="0"/>
    <value nick="prefer-dark" value="1"/></enum>
    <schema id="org.gnome.desktop.interface" path="/org/gnome/desktop/interface/">
    <key name="color-scheme" enum="scheme"><default>'default'</default></key>
    <key name="cursor-size" type="i"><default>24</default></key></schema></schemalist>
    END
    glib-compile-schemas ../gschemas
    export GIO_EXTRA_MODULES=$PWD/../module GSETTINGS_SCHEMA_DIR=$PWD/../gschemas
    """,
  ]

  /// The text with one name for all times, hosts and revisions of reports.
  private static func withoutTimes(_ text: String) -> String {
    text.replacing(#/(since |^1 )20[0-9T:.-]+Z/#.anchorsMatchLineEndings(), with: "TIME")
      .replacing(#/ \S+-[0-9a-f]{8}\b/#, with: " HOST")
      .replacing(#/revision [0-9]+/#, with: "revision N")
      .replacing(#/ran 20[0-9T:.-]+Z, [0-9]+ ms/#, with: "ran TIME")
  }

  @Test("every session prints what it shows")
  func eachSession() async throws {
    try await concurrently(Self.sessions) { path in try session(path, asUser: false) }
  }

  @Test("a session that says sudo prints the same for a user who is not root")
  func sudo() async throws {
    let paths = try Self.sessions.filter { path in
      try Self.blocks("console", of: path).joined().contains { $0.contains("sudo ") }
    }
    #expect(paths.count >= 3)
    try await concurrently(paths) { path in try session(path, asUser: true) }
  }

  private func session(_ path: String, asUser: Bool) throws {
    let lines = try Self.blocks("console", of: path).filter { block in
      !block.contains { $0.contains("scripts/") }
    }.joined()
    #expect(!lines.isEmpty)
    try withSandbox { sandbox in
      defer {
        sandbox.shell("cd \(sandbox.root)/home; [ ! -f etcd.pid ] || kill -9 $(cat etcd.pid)")
      }
      let (home, system) = (sandbox.root + "/home", sandbox.system)
      let commands = lines.map { line in
        guard line.hasPrefix("$ ") else { return "" }
        return "echo '\(line.replacing("'", with: "'\\''"))'\n\(line.dropFirst(2))"
      }
      let documents = try Self.blocks("xml", of: path).map { block in
        let name = path.hasSuffix("Schemas.md") ? "editor.plist" : "editor.mobileconfig"
        return "cat > ~/\(name) <<'END'\n\(block.joined(separator: "\n"))\nEND"
      }
      let preparation = documents + [Self.preparations[path] ?? "", "echo BEGIN"]
      let sudo =
        asUser
        ? #"sudo() { if [ "$1" = ls ]; then set -- ls -CT0 "${@:2}"; fi; command sudo "$@"; }"#
        : #"sudo() { "$@"; }"#
      let script = ([Self.prelude, sudo] + preparation + commands).joined(separator: "\n")
        .replacing("/etc/preferences", with: system)
      try script.write(toFile: sandbox.root + "/session", atomically: true, encoding: .utf8)
      let outcome = sandbox.shell(asUser ? Self.withSudo : "exec bash ~/../session")
      let printed = Self.withoutTimes(outcome.output.components(separatedBy: "BEGIN\n").last ?? "")
      let expected = Self.withoutTimes(lines.joined(separator: "\n") + "\n")
      #expect(
        printed.replacing(home, with: "~").replacing(system, with: "/etc/preferences")
          .replacing(#/\S*session: line [0-9]+: /#, with: "bash: ")
          .replacing(#/\.[0-9A-F-]{36}\./#, with: ".HOST.")
          == expected.replacing("/home/ada", with: "~"), "\(path)")
    }
  }
}
