import ManualPage

/// What `plutil -help` prints and plutil(1) says.
enum Manual {
  private typealias Form = ManualPage.Form

  static let page = ManualPage(
    "plutil", 1, "check, convert and edit property lists",
    synopsis: "plutil [COMMAND] [OPTION...] FILE...",
    description: description,
    sections: [
      ManualPage.Section("Commands", commands), ManualPage.Section("Formats", formats),
      ManualPage.Section("Values", values), ManualPage.Section("Options", options),
      ManualPage.Section(
        "Exit status",
        [Form("0", "done"), Form("1", "the command line is wrong, or a file failed")]),
    ],
    files: [], related: ["defaults(1)"])

  private static let commands = [
    Form("-lint", "says whether each file is a property list; the default"),
    Form("-p", "prints it for people"),
    Form("-convert FORMAT [-header]", "rewrites the file; objc can have a header file too"),
    Form("-insert PATH -TYPE VALUE [-append]", "adds a value, or an element to an array"),
    Form("-replace PATH -TYPE VALUE", "the same, over a value that is there"),
    Form("-remove PATH", "takes a value away"),
    Form("-extract PATH FORMAT [-expect TYPE]", "the value alone, as a list of its own"),
    Form("-type PATH [-expect TYPE]", "prints the type of a value"),
    Form("-create FORMAT", "makes an empty dictionary; FILE may be - for standard output"),
    Form("-help, -man", "this text, the manual page as troff"),
  ]

  private static let formats = [
    Form("xml1, binary1, json", "lists, in place of the file unless -o or -e says otherwise"),
    Form("swift, objc", "source code, beside the file"),
    Form("raw", "with -extract: the text of a value, on standard output"),
  ]

  private static let values = [
    Form("-bool WORD", "yes or true; anything else is false"),
    Form("-integer N, -float N", "the number at the beginning of the word"),
    Form("-string TEXT", "a string"),
    Form("-date TEXT", "2026-11-21T07:20:00Z"),
    Form("-data BASE64", "bytes"),
    Form("-xml LIST, -json TEXT", "a value in one of these forms"),
    Form("-dictionary, -array", "an empty one; no VALUE follows"),
  ]

  private static let options = [
    Form("-o PATH", "where the result goes; - is standard output"),
    Form("-e EXTENSION", "the result goes beside the file, with that extension"),
    Form("-r", "JSON with line breaks and indents"),
    Form("-n", "no newline after raw text"),
    Form("-s", "-lint says nothing of sound files"),
    Form("--", "all further words are files"),
  ]

  private static let description = """
    plutil reads property lists (binary, XML, old-style) and JSON, and does with each FILE what the command says;
    - is standard input. Its commands, messages and exit statuses are those of the command of macOS. A PATH is
    names of keys and numbers of elements with dots between them; a backslash before a dot makes it a part of a
    name. As on macOS, -replace of an element of an array inserts before it, and a file that is old-style, {}
    among them, can be read and not edited.

    The lists of preferences are better changed with defaults(1) or as files of a mount: every program sees such
    a change at once.
    """
}
