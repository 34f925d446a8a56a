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
      server:/homes\t/home\\040of\\040all nfs
      tmpfs none swap
      short /x

      """
    #expect(MountInformation.planned(in: Array(lines.utf8)) == ["/", "/home of all"])
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
      ]
      for example in cases {
        #expect(
          Surroundings.awaitedMount(of: example.home, example.planned) == example.point,
          "\(example)")
      }
    }
  }
}
