import PreferenceModel

/// The reason why a command fails.
struct Refusal: Error {
  /// The message of Apple's command; if it is empty, the command line is wrong, and the usage is
  /// shown instead.
  var message: String
  /// This project's explanation, which is shown after the message.
  var detail: String?
  /// The exit status.
  var status: Int32 = 1

  /// There is no command line: the whole help is shown.
  static let usage = Refusal(message: "", status: 255)

  /// The command line is wrong.
  /// - Parameter sentence: what is wrong with it.
  static func mistake(_ sentence: String) -> Refusal {
    Refusal(message: "", detail: sentence, status: 255)
  }
}

extension Refusal {
  /// Creates a refusal with Apple's message and, if there is an error, its text as the explanation.
  init(_ message: String, _ error: (some Error)? = nil as EngineError?) {
    let hint = (error as? EngineError)?.reason == .unfit ? " (--force sets it)" : ""
    self.init(message: message, detail: error.map { "\($0)\(hint)" })
  }

  /// Runs the body, and turns an error that it throws into a refusal with this message.
  static func wrapping<Result, Failure: Error>(
    _ message: String, _ body: () throws(Failure) -> Result
  ) throws(Refusal) -> Result {
    do throws(Failure) {
      return try body()
    } catch {
      throw Refusal(message, error)
    }
  }
}
