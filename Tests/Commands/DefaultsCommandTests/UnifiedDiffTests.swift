import Testing

@testable import DefaultsCommand

@Suite("Differences of texts") struct UnifiedDiffTests {
  private static func diff(_ old: String, _ new: String) -> String {
    UnifiedDiff.text(of: "f", from: Array(old.utf8), to: Array(new.utf8))
  }

  @Test(
    "the differences are those that diff -u writes",
    arguments: [
      ("a\n", "a\n", ""),
      ("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
      ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
      (
        "a", "b",
        "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
      ),
      (
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n",
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n"
      ),
    ])
  func text(_ old: String, _ new: String, _ hunks: String) {
    #expect(Self.diff(old, new) == (hunks.isEmpty ? "" : "--- f\n+++ f\n" + hunks))
  }

  @Test("differences that are far from each other have a part each")
  func parts() {
    let old = (1...30).map { "\($0)\n" }.joined()
    let new = old.replacing("\n5\n", with: "\n").replacing("\n25\n", with: "\nx\n25\n")
    #expect(
      Self.diff(old, new) == """
        --- f
        +++ f
        @@ -2,7 +2,6 @@
         2
         3
         4
        -5
         6
         7
         8
        @@ -22,6 +21,7 @@
         22
         23
         24
        +x
         25
         26
         27

        """)
  }
}
