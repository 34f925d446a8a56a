extension CommandLine {
  /// Whether every argument of this process is UTF-8. In `arguments`, U+FFFD stands where one is not,
  /// and also where somebody has written U+FFFD. Cost: O(bytes).
  public static var isUTF8: Bool {
    (0..<Int(argc)).allSatisfy { index in
      unsafeArgv[index].map { String(validatingCString: $0) != nil } ?? true
    }
  }
}
