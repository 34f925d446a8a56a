import PreferenceModel
import SystemCalls

/// A directory that a tool has made for its temporary files. Everything in it is scratch. One at the
/// root that is renamed to a domain's name becomes that domain (`KeyFiles.makeDomain`).
final class ScratchDirectory: Directory {
  var path: ScratchPath { didSet { changes.note(id) } }
  private let id: NodeID
  var listing = ListingState()
  var mode: UInt32 = 0o700 { didSet { changes.note(id) } }
  private let changes: TreeChanges

  /// - Parameter id: the directory's node.
  init(_ path: ScratchPath, _ id: NodeID, changes: TreeChanges) {
    (self.path, self.id, self.changes) = (path, id, changes)
  }

  var subject: String { path.subject }
  var scratchParent: ScratchPath.Parent { .directory(id) }
  var names: ListingPlan.Names { .nothing }
}
