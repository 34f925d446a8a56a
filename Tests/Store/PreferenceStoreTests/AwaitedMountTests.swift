import StoreAccess
import Support
import Testing

@testable import SystemCalls

@Suite("A home that is not mounted yet") struct AwaitedMountTests {
  @Test("mount points of fstab(5)")
  func planned() {
    let lines = """
      # /dev/sda1 /home ext4
      UUID=1 / ext4 defaults 0 1
      server:/homes\t/home\\040of\\040all// nfs
      tmpfs none swap
      short /x

      """
    #expect(MountInformation.planned(in: Array(lines.utf8)) == ["/", "/home of all"])
  }

  @Test("names of units that mount")
  func units() {
    #expect(MountInformation.unitName("/home") == "home.mount")
    #expect(MountInformation.unitName("/home/ada-b/.x.y") == "home-ada\\x2db-.x.y.mount")
    #expect(MountInformation.unitName("/.é") == "\\x2e\\xc3\\xa9.mount")
  }

  @Test("a unit that is masked mounts nothing, whatever another directory has")
  func masked() throws {
    try withSandbox { sandbox in
      let root = sandbox.root
      sandbox.shell(
        """
        cd $C/..; mkdir first second; ln -s /dev/null first/a.mount; touch first/b.mount
        for name in a b c; do echo '[Mount]' > second/$name.mount; done
        """)
      let directories = ["\(root)/first", "\(root)/second"]
      let found = ["/a", "/b", "/c", "/d"].filter { MountInformation.hasUnit($0, in: directories) }
      #expect(found == ["/c"])
    }
  }

  @Test("a home is awaited at, or below, an empty directory where nothing is mounted")
  func awaited() throws {
    try withSandbox { sandbox in
      let root = sandbox.root
      sandbox.shell("mkdir -p $C/../homes/ada $C/../empty; touch $C/../homes/ada/file")
      let cases: [(home: String, planned: [String], point: String?)] = [
        ("\(root)/empty", ["/", "\(root)/empty"], "\(root)/empty"),
        ("\(root)/empty/ada", ["\(root)/empty"], "\(root)/empty"),
        ("\(root)/empty", [root], nil), ("\(root)/empty", ["/"], nil),
        ("\(root)/homes/ada", ["\(root)/homes"], nil),
        ("\(root)/homes/ada", ["\(root)/homes", "\(root)/homes/ada"], nil),
        ("\(root)/none", ["\(root)/none"], nil), ("\(root)/emptyhouse", ["\(root)/empty"], nil),
        ("\(root)/empty/", ["\(root)/empty"], "\(root)/empty"),
        // Neither of two is mounted.
        ("\(root)/empty/ada", ["\(root)/empty", "\(root)/empty/ada"], "\(root)/empty"),
      ]
      for example in cases {
        #expect(
          Surroundings.awaitedMount(of: example.home, where: example.planned.contains)
            == example.point, "\(example)")
      }
      // A bind mount that is empty has the device of the directory above it.
      let mount = MountInformation.Mount(
        device: 0, path: "\(root)/empty", kind: "ext4", user: nil, group: nil)
      #expect(Surroundings.awaitedMount(of: "\(root)/empty/ada", [mount]) { _ in true } == nil)
    }
  }
}
