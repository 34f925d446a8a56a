import PreferenceModel
import SystemCalls

/// What the parts of a tree share: see `Tree`.
struct TreeParts {
  let engine: any Engine
  let options: TreeOptions
  let log: TreeLog
  /// Where the tree stands in its mount.
  let position: TreePosition
  /// The author of the tree's own changes.
  let author: Author
  /// Gives the names of files that are made exclusively; nil if there are no other mounts.
  let claims: (any NameClaims)?
  let table: NodeTable
  let removedNames: RemovedNames
}

/// Receives the log lines of a tree.
struct TreeLog {
  let write: (LogLine) -> Void

  /// Writes a line.
  func callAsFunction(_ line: LogLine) { write(line) }

  /// Logs a refusal, if it has a sentence, and returns it for the caller to throw.
  func refused(_ error: TreeError) -> TreeError {
    if let sentence = error.sentence { write(.refusal(sentence, error.errno)) }
    return error
  }
}
