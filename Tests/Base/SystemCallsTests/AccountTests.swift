import Glibc
import Testing

@testable import SystemCalls

@Suite("Accounts") struct AccountTests {
  @Test("this user's account is the one that the system knows")
  func own() throws {
    let entry = try #require(getpwuid(getuid()))
    let account = try #require(Account.own)
    #expect(account.name == String(cString: entry.pointee.pw_name))
    #expect(account.home == String(cString: entry.pointee.pw_dir))
  }

  @Test("a user is found by number in lines of passwd(5); lines that are none are left out")
  func find() {
    let lines = Array("a:x:1:1::/a:/bin/sh\nbad\nb:x:x:2::/b:\nc:x:7:7:C,,:/home/c:/bin/sh\n".utf8)
    let account = Account(name: "c", home: "/home/c", user: 7, group: 7)
    #expect(Account.find(.number(7), in: lines) == account)
    #expect(Account.find(.name("c"), in: lines) == account)
    #expect(
      Account.find(.number(2), in: lines) == nil && Account.find(.name("C"), in: lines) == nil)
    #expect(Account.named("0") == nil && Account.named("-h") == nil && Account.named("") == nil)
    #expect(Account.named("root")?.home == "/root")
    #expect(Account.numbered(4_000_000_001) == nil)
    #expect(Account.names(in: lines) == ["a", "b", "c"])
    let answer = Array("ada@corp.example:*:7:8:Ada:/home/ada:/bin/sh\n".utf8)
    #expect(Account.only(in: answer)?.name == "ada@corp.example")
    #expect(Account.only(in: lines) == nil && Account.only(in: []) == nil)
    #expect(Account.named("root")?.groups.contains(0) == true)
    let names: Set = ["root", "-h", "0", "nobody-knows", ""]
    #expect(Account.local(among: names) == ["root"] && Account.served(among: names) == ["root"])
  }

  @Test("a group is a line of group(5); a line whose number is none is left out")
  func groups() {
    let lines = Array("root:x:0:\nbad\nstaff:x:x:ada\ndevelopers:x:7:ada,bob\n".utf8)
    #expect(
      Account.groups(in: lines) == [
        Account.Group(name: "root", number: 0, members: []),
        Account.Group(name: "developers", number: 7, members: ["ada", "bob"]),
      ])
    let asked: Set = ["root", "prefsfs-none", "-h", "0"]
    #expect(Account.named("root")?.memberships(among: asked)?["root"] == true)
    #expect(Account.knownGroups(among: asked) == ["root"])
  }

  @Test(
    "group(5) is the only source of groups where nsswitch.conf(5) says so",
    arguments: [
      ("group: files\n", true), ("group: files # ldap\ninitgroups:\tfiles\n", true),
      ("group: files ldap\n", false), ("group: files\ninitgroups: ldap\n", false), ("", false),
      ("passwd: files\n", false),
    ])
  func groupSources(_ text: String, _ isAlone: Bool) {
    #expect(Account.areGroupsInFileAlone(Array(text.utf8)) == isAlone, "\(text)")
  }

  @Test(
    "where passwd(5) is the only source of users, no other one is asked",
    arguments: [
      ("passwd: files\n", true), ("# passwd: x\ngroup: nis\npasswd:\t files # all\n", true),
      ("passwd: files systemd\n", false), ("passwd: files [NOTFOUND=return] sss\n", false),
      ("passwd: compat\n", false), ("passwd:\n", false), ("passwd_compat: files\n", false),
      ("", false),
    ])
  func sources(_ text: String, _ isAlone: Bool) {
    #expect(Account.isFileAlone(Array(text.utf8)) == isAlone, "\(text)")
  }

  @Test("the output of a program is what it wrote, and a program that hangs is ended")
  func output() throws {
    #expect(try Child.output("echo", ["text"], milliseconds: 5000) == Array("text\n".utf8))
    #expect(throws: SystemError.self) { try Child.output("sleep", ["60"], milliseconds: 50) }
    #expect(throws: SystemError.self) { try Child.output("/nope", [], milliseconds: 50) }
  }

  @Test("output that is too long is refused, and not cut; the program that wrote it ends")
  func longOutput() throws {
    let most = 1 << 20
    let words = { (count: Int) in ["-c", "\(count)", "/dev/zero"] }
    #expect(try Child.output("head", words(most), milliseconds: 5000).count == most)
    for count in [most + 1, 2 * most] {
      let error = #expect(throws: SystemError.self) {
        try Child.output("head", words(count), milliseconds: 5000)
      }
      #expect(error?.errno == .fileTooLarge)
    }
  }

  @Test("a program is run also where this process has no standard input and output")
  func closedStreams() {
    let output = withoutStreams { try? Child.output("echo", ["text"], milliseconds: 5000) }
    #expect(output == Array("text\n".utf8))
  }

  /// Returns what the body does while descriptors 0 and 1 are closed.
  private func withoutStreams<Result>(_ body: () -> Result) -> Result {
    let kept = [STDIN_FILENO, STDOUT_FILENO].map { fcntl($0, F_DUPFD_CLOEXEC, 10) }
    for number in [STDIN_FILENO, STDOUT_FILENO] { close(number) }
    defer {
      for (number, copy) in zip([STDIN_FILENO, STDOUT_FILENO], kept) where copy >= 0 {
        dup2(copy, number)
        close(copy)
      }
    }
    return body()
  }
}
