import ManualPage

/// The text of `plutil -help` and of the manual page plutil(1).
enum Manual {
  private typealias Form = ManualPage.Form

  static let page = ManualPage(
    "plutil", "check, convert and edit property lists",
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
    Form("-lint", "checks that each file is a property list; the default"),
    Form("-p", "prints the list in a form for people"),
    Form("-convert FORMAT [-header]", "rewrites the file; objc can have a header file too"),
    Form("-insert PATH -TYPE VALUE [-append]", "adds a value, or an element to an array"),
    Form("-replace PATH -TYPE VALUE", "sets a value, also where there is one already"),
    Form("-remove PATH", "removes a value"),
    Form("-extract PATH FORMAT [-expect TYPE]", "writes one value as a list of its own"),
    Form("-type PATH [-expect TYPE]", "prints the type of a value"),
    Form("-create FORMAT", "makes an empty dictionary; FILE may be - for standard output"),
    Form("-help, -man", "prints this text, or the manual page as troff"),
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
    Form("-dictionary, -array", "an empty dictionary or array, without a VALUE"),
  ]

  private static let options = [
    Form("-o PATH", "where the result goes; - is standard output"),
    Form("-e EXTENSION", "the result goes beside the file, with that extension"),
    Form("-r", "JSON with line breaks and indents"),
    Form("-n", "no newline after raw text"),
    Form("-s", "-lint prints nothing for valid files"),
    Form("--", "all further words are files"),
  ]

  private static let description = """
    plutil reads property lists (binary, XML, old-style) and JSON, and carries out the command for
    each FILE; - is standard input. Its commands, messages and exit statuses are those of plutil on
    macOS. A PATH is made of names of keys and numbers of elements, separated by dots; a backslash
    before a dot makes it part of a name. As on macOS, -replace of an element of an array inserts
    before it. An old-style file (an empty one, {}, is old-style too) can be read but not edited.

    To change preferences, use defaults(1) or the files of a mount instead: every program sees such
    a change at once.
    """
}
