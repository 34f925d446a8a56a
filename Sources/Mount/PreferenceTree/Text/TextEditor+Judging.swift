import PreferenceModel
import PropertyList
import SystemCalls

// Decides what becomes of the text after a step. The judge has been fed the text up to `fed`; what
// is behind that is an old tail.

extension TextEditor {
  /// Bytes of the shortest text that is committed in parts, as splices.
  private static let shortestSpliced = 4096
  /// Bytes of the longest text that is judged together with its old tail at every write. The tail
  /// of a longer text is judged once, after `patience`.
  private static let longestTail = 1 << 16

  /// Judges the text after a step, and enters the phase that follows from the judgement.
  func judged(now: Instant) -> Action {
    guard fed == text.count else { return judgedWithTail(now: now) }
    switch judge.plain(text) {
    case .value(let kind):
      if let splice = splice(kind) {
        phase = .complete
        return .splice(splice)
      }
    case .unfinished where text.count >= Self.shortestSpliced:
      phase = .held(until: now.advanced(milliseconds: Self.holding))
      return .nothing
    case .unfinished, .other: break
    }
    switch judge.judgement(of: text) {
    case .impossible(let reason): return .refuse(reason)
    case .complete:
      guard let value = judge.value(of: text) else {
        return .refuse("the text is not a value of the key's type")
      }
      return complete(value)
    case .incomplete:
      phase = .held(until: now.advanced(milliseconds: Self.holding))
      return .nothing
    }
  }

  private func judgedWithTail(now: Instant) -> Action {
    let until = now.advanced(milliseconds: Self.patience)
    if let action = splicedBeforeTail(until: until) { return action }
    // The head is not copied for each piece of a document, but once the document is whole.
    let isUnfinished = judge.isUnfinished
    let head = isUnfinished ? [] : Array(text[..<fed])
    let verdict = isUnfinished ? .incomplete : judge.judgement(of: head)
    if case .impossible(let reason) = verdict { return .refuse(reason) }
    let headValue = verdict == .complete ? judge.value(of: head) : nil
    var wholeValue: Value?
    let isLong = text.count > Self.longestTail
    if !isLong {
      var whole = judge.copy()
      whole.feed(text[fed...])
      wholeValue = whole.judgement(of: text) == .complete ? whole.value(of: text) : nil
    }
    phase = .overlaid(
      Overlay(
        end: fed, until: until, tailCounts: isLong ? nil : wholeValue != nil,
        headCounts: headValue != nil))
    guard let wholeValue else {
      committed = nil
      guard let headValue else { return .nothing }
      noteCommitted(fed)
      return .commit(headValue, head)
    }
    let action = complete(wholeValue)
    phase = .overlaid(
      Overlay(end: fed, until: until, tailCounts: true, headCounts: headValue != nil))
    return action
  }

  /// Returns what to do where the engine has refused the new text with its old tail: commit the new
  /// text alone, if that is the text of a value too; nil if it is not.
  func withoutTail() -> Action? {
    guard case .overlaid(var overlay) = phase, overlay.tailCounts == true, overlay.headCounts else {
      return nil
    }
    let head = Array(text[..<overlay.end])
    guard let value = judge.value(of: head) else { return nil }
    overlay.tailCounts = false
    (phase, committed) = (.overlaid(overlay), nil)
    noteCommitted(overlay.end)
    return .commit(value, head)
  }

  /// Commits a part of a string or data that is written before an old tail, without judging the
  /// tail again. The whole text, which was sound before, stays sound if the new part ends between
  /// two characters. A part of a long text that ends inside a character is committed with the next
  /// part, or judged with the tail when the phase ends. Returns nil if the text is not such a case.
  private func splicedBeforeTail(until: Instant) -> Action? {
    switch phase {
    case .complete: break
    // The engine has the text but for what was written since the last commit.
    case .overlaid(let overlay) where overlay.tailCounts == true || committed != nil: break
    case .overlaid, .held, .truncated: return nil
    }
    // What was not committed lies before the tail, and was judged with the rest.
    guard let committed, let dirty, dirty.upperBound <= fed, judge.isKindCertain else {
      return nil
    }
    let plain = judge.plain(text)
    let isCut = plain == .unfinished || judge.isUnfinished
    if isCut, committed.kind == .string, text.count > Self.longestTail {
      phase = .overlaid(Overlay(end: fed, until: until, tailCounts: nil, headCounts: false))
      return .nothing
    }
    guard case .value(let kind) = plain, kind == .data || text[fed] & 0xC0 != 0x80,
      let splice = splice(kind)
    else { return nil }
    phase = .overlaid(Overlay(end: fed, until: until, tailCounts: true, headCounts: true))
    return .splice(splice)
  }

  /// Returns the splice that turns the engine's string or data into that of the text, and notes it
  /// as committed. Returns nil if the engine's value is of a different kind, or the text is short:
  /// the value is then set as a whole.
  private func splice(_ kind: Kind) -> Splice? {
    guard let old = committed, old.kind == kind, let dirty, text.count >= Self.shortestSpliced
    else {
      return nil
    }
    let count = plainCount(kind)
    var start = min(dirty.lowerBound, old.count, count)
    var end = count == old.count ? max(start, min(dirty.upperBound, count)) : count
    if kind == .string {
      // A splice of a string has whole characters. What is beside the new bytes has not changed.
      while start > 0, start < text.count, text[start] & 0xC0 == 0x80 { start -= 1 }
      while end < count, text[end] & 0xC0 == 0x80 { end += 1 }
    }
    let splice = Splice(
      base: old.count, offset: start, bytes: Array(text[start..<end]), count: count,
      isBare: kind == .data || count == text.count)
    guard let splice else { return nil }
    noteCommitted(text.count)
    committed = Committed(kind: kind, count: count)
    return splice
  }
}
