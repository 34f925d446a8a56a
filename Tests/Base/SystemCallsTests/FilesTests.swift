import Support
import SystemCalls
import Testing

@Suite("Files") struct FilesTests {
  @Test(
    "directories that are there are made again without harm, the root too",
    arguments: ["/", "//", "/usr", "/usr/"])
  func existing(_ path: String) throws {
    try Files.makeDirectories(path, mode: 0o755)
  }

  @Test("the links on a path are named in the order in which they are followed; a loop ends")
  func links() throws {
    try withSandbox { sandbox in
      sandbox.shell(
        """
        cd $C/..; mkdir -p a/b; ln -s a current; ln -s ../current/b a/l; ln -s /nowhere gone
        ln -s loop loop
        """)
      let root = try #require(Files.realPath(sandbox.root))
      #expect(
        Files.links(on: root + "/current/l")
          == ["current", "a/l", "current"].map { "\(root)/\($0)" })
      #expect(Files.links(on: root + "/gone/x") == [root + "/gone"])
      #expect(Files.links(on: root + "/a/./b/../b") == [])
      let climb = "/" + String(repeating: "../", count: 40) + root.dropFirst()
      #expect(Files.links(on: climb + "/gone/x") == [root + "/gone"])
      #expect(Files.links(on: root + "/loop").count == 40)
    }
  }
}
