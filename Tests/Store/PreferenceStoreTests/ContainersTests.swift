import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import Testing

@testable import PreferenceStore
@testable import SystemCalls

@Suite("Containers of a Mac's sandboxed programs", .serialized) struct ContainersTests {
  /// A store of a Mac's home.
  private struct Mac {
    let sandbox: Sandbox
    var library: String { sandbox.root + "/mac/Library" }
    /// Inside of `library`.
    static let list = "Containers/org.app/Data/Library/Preferences/org.app.plist"

    var layout: StoreLayout {
      StoreLayout(
        userDirectory: library + "/Preferences", systemDirectory: sandbox.system,
        stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada")
    }

    func store() throws -> Store { try Store(layout) { _ in } }

    func list(_ path: String, _ python: String) { sandbox.makeList("\(library)/\(path)", python) }

    /// Runs a command in `library`.
    func shell(_ command: String) -> String {
      sandbox.shell("cd $C/../mac/Library; \(command)").output
    }
  }

  /// Calls the body with a Mac's home that has containers of `org.app`, `org.app.more` and `prefsfs`,
  /// and one of the group `group.org`.
  private func withMac(_ body: (Mac) throws -> Void) throws {
    try withSandbox { sandbox in
      let mac = Mac(sandbox: sandbox)
      sandbox.shell(
        """
        mkdir $C/../mac; mkdir -p $C/../mac/Library/Preferences; cd $C/../mac/Library
        mkdir -p Containers/{org.app,prefsfs}/Data/Library/Preferences Containers/org.app.more
        mkdir -p 'Group Containers/group.org/Library/Preferences' 'Group Containers/org.app'
        """)
      mac.list(Mac.list, "dict(K='inside')")
      mac.list("Containers/org.app/Data/Library/Preferences/org.app.part.plist", "dict(K='part')")
      mac.list("Containers/org.app/Data/Library/Preferences/other.plist", "dict(K='other')")
      mac.list("Containers/prefsfs/Data/Library/Preferences/prefsfs.plist", "dict(K='ours')")
      mac.list("Group Containers/group.org/Library/Preferences/group.org.plist", "dict(K='group')")
      mac.list("Preferences/org.app.plist", "dict(K='outside')")
      mac.list("Preferences/org.app.part.plist", "dict(K='outside')")
      mac.list("Preferences/org.app.more.plist", "dict(K='outside')")
      try body(mac)
    }
  }

  @Test("a container has its own domain, and those below it whose lists are there")
  func paths() throws {
    try withMac { mac in
      let inner = "Containers/org.app/Data/Library/Preferences"
      let more = "Containers/org.app.more/Data/Library/Preferences"
      let rows: [(Place, DomainName, path: String)] = [
        (.user, "org.app", "\(inner)/org.app.plist"),
        (.host, "org.app", "\(inner)/ByHost/org.app.HOST.plist"),
        (.user, "org.app.part", "\(inner)/org.app.part.plist"),
        (.host, "org.app.part", "Preferences/ByHost/org.app.part.HOST.plist"),
        (.user, "org.app.none", "Preferences/org.app.none.plist"),
        (.user, "org.app.more", "\(more)/org.app.more.plist"),
        (.user, "org.application", "Preferences/org.application.plist"),
        (.user, "other", "Preferences/other.plist"),
        (.user, "prefsfs", "Preferences/prefsfs.plist"),
        (.user, "prefsfs.effects", "Preferences/prefsfs.effects.plist"),
        (.user, .global, "Preferences/.GlobalPreferences.plist"),
        (.user, "group.org", "Group Containers/group.org/Library/Preferences/group.org.plist"),
      ]
      let layout = mac.layout
      for (place, domain, path) in rows {
        let list = layout.list(at: Location(place, domain))
        #expect(list.path == "\(mac.library)/\(path)", "\(domain)")
        #expect((list.container == nil) == path.hasPrefix("Preferences"), "\(domain)")
      }
      #expect(layout.list(at: Location(.anyUser, "org.app")).container == nil)
      #expect(layout.needsDisk(for: Location(.user, "org.app.part")))
      #expect(!layout.needsDisk(for: Location(.user, "org.app")))
      #expect(!layout.needsDisk(for: Location(.anyUser, "org.app.part")))
    }
  }

  @Test("a store of any other name has none, and asks nothing")
  func otherStores() throws {
    try withMac { mac in
      let layout = StoreLayout(
        userDirectory: mac.library + "/Settings", systemDirectory: "", stateDirectory: "",
        hostIdentifier: "", userName: "")
      let location = Location(.user, "org.app")
      #expect(layout.list(at: location) == (mac.library + "/Settings/org.app.plist", nil))
      #expect(!layout.mayBeContained(location))
    }
  }

  @Test("the domains are those whose lists count")
  func domains() throws {
    try withMac { mac in
      mac.list("Preferences/plain.plist", "{}")
      let lists = try mac.store().lists
      #expect(
        try lists.domains(in: .user) == ["org.app", "org.app.part", "group.org", "plain"])
      #expect(try lists.domains(in: .host) == [])
      #expect(try lists.exists(Location(.user, "org.app")))
      #expect(try !lists.exists(Location(.user, "org.app.more")))
      let names = lists.names(in: [.user])
      #expect(!names.lack(Location(.user, "org.app")) && names.lack(Location(.user, "none")))
    }
  }

  @Test("a change goes where the value is read, into directories that are made for it")
  func changes() throws {
    try withMac { mac in
      let store = try mac.store()
      let locations = [
        Location(.user, "org.app"), Location(.host, "org.app"), Location(.user, "org.app.part"),
        Location(.user, "org.app.more"), Location(.user, "group.org"),
      ]
      #expect(try store.lists.find("K", at: locations[0])?.value == "inside")
      for location in locations {
        _ = try store.commit([.init(location, .set("New", 1, .canonical))])
        try store.checkpoint(location)
        #expect(mac.sandbox.evaluate(store.layout.path(location), "d['New']") == "1")
      }
      #expect(mac.sandbox.evaluate("\(mac.library)/\(Mac.list)", "d['K']") == "inside")
      #expect(
        mac.shell("cd Preferences; grep -l New *; ls -A")
          == "org.app.more.plist\norg.app.part.plist\norg.app.plist\n")
      #expect(mac.shell("stat -c %a Containers/org.app.more/Data/Library") == "700\n")
      _ = try store.commit([.init(locations[0], .removeDomain)])
      try store.checkpoint(locations[0])
      #expect(try store.lists.find("K", at: locations[0]) == nil, "the list outside does not count")
      #expect(mac.shell("ls \(Mac.list) 2> /dev/null") == "")
    }
  }

  @Test("what the journal alone has goes into the container that appeared meanwhile")
  func replay() throws {
    try withMac { mac in
      let location = Location(.user, "org.new")
      let first = try mac.store()
      _ = mac.shell("mkdir Containers/org.new")
      _ = try first.commit([.init(location, .set("K", 1, .canonical))])
      first.unlock()
      let next = try mac.store()
      #expect(try next.lists.find("K", at: location)?.value == 1)
      try next.checkpoint(location)
      #expect(
        mac.shell(
          "ls Containers/org.new/Data/Library/Preferences Preferences/org.new* 2> /dev/null")
          == "Containers/org.new/Data/Library/Preferences:\norg.new.plist\n")
    }
  }

  @Test(
    "a link is refused wherever it stands in the container, and what it leads to stays",
    arguments: [
      Mac.list, "Containers/org.app/Data/Library/Preferences", "Containers/org.app/Data",
      "Containers/org.app",
    ])
  func links(_ part: String) throws {
    try withMac { mac in
      _ = mac.shell("mv \(part) moved && ln -s $PWD/moved \(part)")
      let before = mac.shell(
        "ls -lR --time-style=full-iso moved; cat moved Preferences/org.app.plist")
      let store = try mac.store()
      let location = Location(.user, "org.app")
      let error = #expect(throws: EngineError.self) { try store.lists.find("K", at: location) }
      #expect(
        error?.description.contains("a symbolic link in \(mac.library)/Containers/org.app") == true)
      #expect(throws: EngineError.self) {
        try store.commit([.init(location, .set("K", 1, .canonical))])
      }
      #expect(
        mac.shell("ls -lR --time-style=full-iso moved; cat moved Preferences/org.app.plist")
          == before)
    }
  }

  @Test("a link that a program puts there during a rewrite leads it nowhere")
  func race() throws {
    try withMac { mac in
      let store = try mac.store()
      let location = Location(.user, "org.app")
      let directory = Files.parent(of: "\(mac.library)/\(Mac.list)")
      _ = try store.commit([.init(location, .set("K", 1, .canonical))])
      try Interposition.with({ call in
        if call.name == "rename", call.path.hasPrefix("/proc/self/fd/") {
          rename(directory, directory + ".moved")
          symlink(mac.library + "/Preferences", directory)
        }
        return .proceed
      }) {
        try store.checkpoint(location)
      }
      #expect(
        mac.sandbox.evaluate("\(mac.library)/Preferences/org.app.plist", "d") == "{'K': 'outside'}")
      #expect(mac.sandbox.evaluate(directory + ".moved/org.app.plist", "d") == "{'K': 1}")
      #expect(mac.shell("readlink \(directory)") == mac.library + "/Preferences\n")
    }
  }

  @Test("what crashed rewrites have left is not looked for behind a link")
  func leftovers() throws {
    try withMac { mac in
      let store = try mac.store()
      let location = Location(.user, "org.app")
      let directory = Files.parent(of: "\(mac.library)/\(Mac.list)")
      _ = mac.shell("touch Preferences/.prefsfs-1-1 \(directory)/.prefsfs-1-1")
      _ = try store.commit([.init(location, .set("K", 1, .canonical))])
      Interposition.with({ call in
        if call.name == "open", call.path.hasSuffix("/lists.lock") {
          rename(directory, directory + ".moved")
          symlink(mac.library + "/Preferences", directory)
        }
        return .proceed
      }) {
        _ = #expect(throws: EngineError.self) { try store.checkpoint(location) }
      }
      #expect(mac.shell("ls Preferences/.prefsfs-*") == "Preferences/.prefsfs-1-1\n")
    }
  }

  @Test("a crashed rewrite leaves nothing in a container")
  func tidied() throws {
    try withMac { mac in
      let directory = Files.parent(of: Mac.list)
      _ = mac.shell("touch \(directory)/.prefsfs-1-1")
      let store = try mac.store()
      let location = Location(.user, "org.app")
      _ = try store.commit([.init(location, .set("K", 1, .canonical))])
      try store.checkpoint(location)
      #expect(mac.shell("ls -A \(directory)") == "org.app.part.plist\norg.app.plist\nother.plist\n")
    }
  }

  @Test("a list that comes or goes in the container of another domain is an edit of the list")
  func edits() throws {
    try withMac { mac in
      let store = try mac.store()
      let location = Location(.user, "org.app.part")
      let inner = "Containers/org.app/Data/Library/Preferences/org.app.part.plist"
      #expect(try store.lists.find("K", at: location)?.value == "part")
      _ = mac.shell("rm \(inner)")
      store.lists.refresh(location)
      #expect(try store.lists.find("K", at: location)?.value == "outside")
      _ = try store.commit([.init(location, .set("New", 1, .canonical))])
      mac.list(inner, "dict(K='back')")
      store.lists.refresh(location)
      #expect(try store.lists.find("K", at: location)?.value == "back")
      try store.checkpoint(location)
      #expect(mac.sandbox.evaluate("\(mac.library)/\(inner)", "d") == "{'K': 'back', 'New': 1}")
    }
  }

  @Test("a container that was removed is not made again: its changes fail")
  func gone() throws {
    try withMac { mac in
      let store = try mac.store()
      _ = mac.shell("rm -r Containers/org.app")
      #expect(throws: EngineError.self) {
        try store.commit([.init(Location(.user, "org.app"), .set("K", 1, .canonical))])
      }
      #expect(mac.shell("ls Containers") == "org.app.more\nprefsfs\n")
    }
  }
}
