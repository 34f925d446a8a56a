import Glibc
import Support
import Testing

@testable import SystemCalls

@Suite("Directories in which somebody else may have put links") struct DirectoryBelowTests {
  @Test("no link is followed from the root on, and those above it are")
  func links() throws {
    try withSandbox { sandbox in
      sandbox.shell(
        """
        cd $C/..; mkdir -p real/root/a/b; echo 1 > real/root/a/b/file; ln -s real way
        ln -s a real/root/link; ln -s root real/linked; touch real/root/file
        """)
      let root = "\(sandbox.root)/way/root"
      let text = try Descriptor.directory(root + "/a/b", below: root)
        .withPath(of: "file") { path throws(SystemError) in try Files.contents(path, limit: 9) }
      #expect(text == Array("1\n".utf8))
      let refused: [(path: String, root: String, errno: Errno)] = [
        ("\(root)/link/b", root, .linkLoop), ("\(root)/file/b", root, .linkLoop),
        ("\(sandbox.root)/way/linked/a", "\(sandbox.root)/way/linked", .linkLoop),
        ("\(root)/none", root, .noSuchFile), (root + "/a/b", root + "/none", .noSuchFile),
      ]
      for (path, root, errno) in refused {
        let error = #expect(throws: SystemError.self, "\(path)") {
          _ = try Descriptor.directory(path, below: root)
        }
        #expect(error == SystemError("open", path, errno))
      }
    }
  }

  @Test("what is missing below the root is made, and nothing behind a link")
  func making() throws {
    try withSandbox { sandbox in
      let root = sandbox.root + "/r"
      sandbox.shell("cd $C/..; mkdir r outside; ln -s ../outside r/link")
      _ = try Descriptor.directory(root + "/a/b", below: root, making: 0o700)
      #expect(sandbox.shell("cd $C/../r; stat -c %a a a/b").output == "700\n700\n")
      #expect(throws: SystemError.self) {
        _ = try Descriptor.directory(root + "/link/b", below: root, making: 0o700)
      }
      #expect(throws: SystemError.self) {
        _ = try Descriptor.directory(
          sandbox.root + "/n/b", below: sandbox.root + "/n", making: 0o700)
      }
      #expect(sandbox.shell("cd $C/..; ls outside; ls -d n").output == "")
    }
  }

  @Test("a path through the directory leads into it, also where its name is another one's now")
  func moved() throws {
    try withSandbox { sandbox in
      sandbox.shell("cd $C/..; mkdir -p r/a outside")
      let directory = try Descriptor.directory(sandbox.root + "/r/a", below: sandbox.root + "/r")
      sandbox.shell("cd $C/../r; mv a b; ln -s ../outside a")
      try directory.withPath(of: "file") { path throws(SystemError) in
        try Files.replace(path, with: [])
      }
      #expect(sandbox.shell("cd $C/..; ls r/b outside").output == "outside:\n\nr/b:\nfile\n")
    }
  }
}
