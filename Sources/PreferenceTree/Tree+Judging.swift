import PreferenceModel
import PropertyList
import SystemCalls

// What happens when a text is refused.

extension Tree {
  /// Removes a key, or a document, that has just been created and is still empty, because its first
  /// text was refused. So no empty value stays.
  func removeRefused(_ file: KeyFile) {
    let path = file.path
    let empty = options.kind == .dictionary ? Value.dictionary([:]) : .string("")
    guard file.creation != nil, let found = try? resolve(path), found.value == empty,
      options.isGenerated || isOwn(found, path)
    else { return }
    do throws(TreeError) {
      let displaced = try displaced(path)
      try transact([.remove(path.key, path.domain)], touching: [path], remembers: false) { _ in
        detach(displaced, at: found.modified)
        table.renewInode(of: path)
      }
      if let parent = table[path.domain]?.id { invalidateEntry(parent, path.key) }
    } catch {
      // The refusal of the text has been logged; the key stays empty.
    }
  }
}
