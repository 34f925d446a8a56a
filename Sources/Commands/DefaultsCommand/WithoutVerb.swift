/// A command line without a word.
enum WithoutVerb {
  /// What `prefs` and `defaults` do without a verb: they show the help, and end with status 255.
  /// This is the place where `prefs` on a terminal does something else.
  static func run() throws(Refusal) -> Int32 {
    throw .usage
  }
}
