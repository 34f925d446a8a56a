import SystemCalls

// Text that a predecessor of this process was writing.

extension TextWriter {
  /// Gives the file the text again that a predecessor of this process has left. One whose value
  /// cannot be read is dropped, and logged.
  func restore(_ draft: SavedDraft, of id: NodeID, _ text: [UInt8], _ now: Instant) {
    guard let file = table[id]?.keyFile else { return }
    do throws(TreeError) {
      let handle = draft.isInferred ? file.creation?.handle ?? .none : .none
      let editor = try editor(of: file, handle: handle)
      // The request that decides it may have been carried out, and comes again in a moment.
      let least = now.advanced(milliseconds: TextEditor.patience)
      editor.goOn(with: text, draft.phase.lasting(until: least))
      (file.editor, file.isInherited) = (editor, true)
      (file.origin, file.uncommittedSince) = (draft.origin, draft.uncommittedSince)
      if let end = editor.deadline {
        edited[id] = end
        wake(at: end)
      }
    } catch {
      log("\(file.path): text that was not complete is lost: \(error.sentence ?? "\(error.errno)")")
    }
  }

  /// Notes that a predecessor has carried a write out: the engine has the text.
  func noteWritten(_ node: Node) {
    if case .detached(let file) = node.content, let nameless = file.nameless,
      table[nameless.path] == nil
    {
      giveName(node, nameless, mode: file.mode)
    }
    guard let file = node.keyFile else { return }
    file.creation?.awaited = nil
    (file.editor, file.editorMemory) = (nil, TextEditor.Memory())
    kernel.invalidateFile(file.id)
  }
}

extension TextEditor.Phase {
  /// The same phase, which lasts at least until then.
  fileprivate func lasting(until least: Instant) -> TextEditor.Phase {
    switch self {
    case .complete: return .complete
    case .truncated(let until): return .truncated(until: max(until, least))
    case .held(let until): return .held(until: max(until, least))
    case .overlaid(var overlay):
      overlay.until = max(overlay.until, least)
      return .overlaid(overlay)
    }
  }
}
