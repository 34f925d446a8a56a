import Testing

@testable import prefsfs

@Suite("Command line") struct OptionsTests {
  @Test(
    "words give this source and mount point",
    arguments: [
      (["/m"], nil, "/m"), (["/s", "/m"], "/s", "/m"), (["none", "/m"], nil, "/m"),
      (["prefsfs", "/m", "-o", "rw,_netdev,x-y=z"], nil, "/m"),
      (["-f", "/m", "--", "-Key", "v"], nil, "/m"),
    ] as [([String], String?, String)])
  func paths(_ words: [String], _ source: String?, _ point: String) throws {
    let options = try Options(words)
    #expect(options.source == source)
    #expect(options.mountPoint == point)
  }

  @Test("each option has its effect")
  func options() throws {
    let options = try Options([
      "/m", "-o", "ro,store=/s,format=xml,new=string",
      "-olist=all,writeback=0.5,umask=077,uid=5,gid=6,allow_other", "--", "-A", "1",
    ])
    #expect(options.isReadOnly && options.store == "/s" && options.tree.style == .xml)
    #expect(options.tree.createsStrings && options.tree.listsInherited)
    #expect(options.writeback == 0.5 && options.ownership.mask == 0o077)
    #expect(options.ownership.user == 5 && options.ownership.group == 6)
    #expect(options.passedOn == ["allow_other"] && options.arguments == ["-A", "1"])
    #expect(!options.covers)
    #expect(try Options(["/m", "-o", "nonempty"]).covers)
  }

  @Test(
    "a wrong command line is a mistake",
    arguments: [
      [], ["/m", "-x"], ["/m", "-o"], ["/m", "-o", "nonsense"], ["/m", "-o", "format=yaml"],
      ["/m", "-o", "new="],
      ["/m", "-o", "writeback=-1"], ["/m", "-o", "umask=9"], ["/a", "/b", "/c"],
      ["/m", "-o", "store"], ["--upgrade", "/a", "/b"], ["--status", "/a", "/b"],
      ["--list", "/m"], ["/m", "--json"], ["--system", "/s", "/m"],
      ["--system", "/m", "-o", "store=/s"],
    ])
  func mistakes(_ words: [String]) {
    #expect(throws: Options.Mistake.self) { try Options(words) }
  }
}
