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
    var saved = SavedTree()
    for bytes in records {
      var reader = ByteReader(bytes[...])
      while !reader.isAtEnd {
        let kind = try reader.recordKind()
        // The number of the tree.
        _ = try reader.number(UInt16.self)
        try saved.add(kind, &reader)
      }
    }
    try restore(saved, now: now.instant)
  }
}
