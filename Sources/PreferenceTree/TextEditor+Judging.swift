import PreferenceModel
import PropertyList
import SystemCalls

// What becomes of a text after a step: judged up to `fed`, and what stands behind it.

extension TextEditor {
  /// Shorter values are committed whole.
  private static let shortestSpliced = 4096
  /// Of longer collections the old tail is looked at when its time is over, not with every write.
  private static let longestTail = 1 << 16

  mutating func judged(now: Instant) -> Action {
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
      guard let value = judge.value(of: text) else { return .refuse("the text is no value") }
      return complete(value)
    case .incomplete:
      phase = .held(until: now.advanced(milliseconds: Self.holding))
      return .nothing
    }
  }

  private mutating func judgedWithTail(now: Instant) -> Action {
    let until = now.advanced(milliseconds: 50)
    if let action = splicedBeforeTail(until: until) { return action }
    let head = Array(text[..<fed])
    let verdict = judge.judgement(of: head)
    if case .impossible(let reason) = verdict { return .refuse(reason) }
    let headValue = verdict == .complete ? judge.value(of: head) : nil
    var wholeValue: Value?
    let isLong = text.count > Self.longestTail
    if !isLong {
      var whole = judge
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

  /// A string's or data's text before an old tail that is sound: the whole is sound too, if both parts end
  /// between characters.
  private mutating func splicedBeforeTail(until: Instant) -> Action? {
    switch phase {
    case .complete: break
    case .overlaid(let overlay) where overlay.tailCounts == true: break
    case .overlaid, .held, .truncated: return nil
    }
    guard !isInferred, case .value(let kind) = judge.plain(text),
      kind == .data || text[fed] & 0xC0 != 0x80, let splice = splice(kind)
    else { return nil }
    phase = .overlaid(Overlay(end: fed, until: until, tailCounts: true, headCounts: true))
    return .splice(splice)
  }

  /// The splice that makes the engine's string or data the one of the text; nil where the engine's value is of
  /// another kind, and where the value is short: it is then set as a whole.
  private mutating func splice(_ kind: Kind) -> Splice? {
    guard let old = committed, old.kind == kind, let dirty, text.count >= Self.shortestSpliced
    else {
      return nil
    }
    let count = plainCount(kind)
    let start = min(dirty.lowerBound, old.count, count)
    let end = count == old.count ? max(start, min(dirty.upperBound, count)) : count
    let splice = Splice(
      base: old.count, offset: start, bytes: Array(text[start..<end]), count: count,
      isBare: kind == .data || count == text.count)
    guard let splice else { return nil }
    noteCommitted(text.count)
    committed = Committed(kind: kind, count: count)
    return splice
  }
}
