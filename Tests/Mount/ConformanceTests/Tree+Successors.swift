import PreferenceModel
import SystemCalls

@testable import PreferenceTree

extension Tree {
  /// Returns records of everything that has changed since the tree was last saved: see `TreeSaver`.
  /// The first call begins to note changes, and returns records of everything.
  func saved() -> [UInt8] {
    var writer = ByteWriter()
    if table.changes.isRecording {
      saver.saveChanges(&writer)
    } else {
      saver.beginSaving()
      saver.saveAll(&writer)
    }
    return writer.bytes
  }

  /// Creates a tree that goes on for another one, whose state was saved in these records.
  convenience init(successorOf tree: Tree, _ records: [[UInt8]], now: Moment) throws {
    self.init(
      engine: tree.engine, options: tree.options, position: tree.position,
      author: tree.transactor.author, now: now, log: tree.log.write)
    try restore(try SavedTrees(records).trees[0] ?? SavedTree(), now: now.instant)
  }

  /// Whether a successor shows the same: no text is under way, and no name is hidden because it was
  /// removed.
  var hasSavedAll: Bool {
    let hidden = table.domains.flatMap { domain in
      removedNames.keys(of: domain).map { KeyPath(domain: domain, key: $0) }
    }.filter { !removedNames.isMovedAway($0) }
    return hidden.isEmpty && !table.nodes.values.contains(where: \.hasTextUnderWay)
  }
}
