import PropertyList
import SystemCalls

/// The text of one key while it is being written: held text, truncation, old tail (SPEC section 5).
///
/// A pure state machine. Its methods return what is to be done; who performs it may fail, and then
/// throws the editor away, so that the file shows the value again.
///
/// States: `settled` (the text denotes the value), `truncated` (cut to nothing a moment ago: the
/// engine has the old value until `until`), `held` (the beginning of a value's text: the engine
/// has the last valid value), `overlaid` (new text stands before an old tail: the engine has the
/// whole if that is a value's text, else the new part if that is one, else the last valid value).
struct TextEditor {
  /// What to do after a step.
  enum Action: Equatable {
    case nothing
    /// The engine gets the value, with these bytes as its text.
    case commit(Value, [UInt8])
    /// The text is thrown away and the file shows the value again, for the reason.
    case revert(String?)
    /// No continuation makes it a value's text: as `revert`, and the caller is told.
    case refuse(String)
    /// Larger than a value may be; nothing was changed.
    case tooLarge
    /// The text that is shown became shorter by itself; the value stays.
    case cut
  }

  private enum Phase: Equatable {
    case settled
    case truncated(until: Instant)
    case held(until: Instant)
    case overlaid(Overlay)
  }

  private struct Overlay: Equatable {
    /// Where the new text ends.
    var end: Int
    var until: Instant
    /// Whether the new text with the old tail is a value's.
    var tailCounts: Bool
    /// Whether the new text alone is.
    var headCounts: Bool
  }

  /// What outlives an editor that was thrown away.
  struct Memory: Equatable {
    /// The next write at offset 0 starts from empty text.
    var startsEmpty = false
    /// Where text that was dropped ended: writing on to it is refused.
    var droppedEnd: Int?
  }

  /// Bytes that a value's text may have.
  static let largest = 16 << 20
  private static let patience: Int64 = 50

  /// Where so many bytes that are written at the offset end; nil past the largest text.
  static func end(of count: Int, at offset: Int) -> Int? {
    let (end, overflow) = offset.addingReportingOverflow(count)
    return offset >= 0 && !overflow && end <= largest ? end : nil
  }

  private static let holding: Int64 = 5000

  private(set) var text: [UInt8]
  private(set) var memory: Memory
  private let fresh: Judge
  private var judge: Judge
  /// How much of the text the judge has been fed.
  private var fed = 0
  private var phase = Phase.settled

  /// Begins with the text that the file shows.
  init(text: [UInt8], judge: Judge, memory: Memory = Memory()) {
    self.text = text
    self.memory = memory
    fresh = judge
    self.judge = judge
  }

  /// When `expire` must be called; nil while the text is settled.
  var deadline: Instant? {
    switch phase {
    case .settled: nil
    case .truncated(let until), .held(let until): until
    case .overlaid(let overlay): overlay.until
    }
  }

  /// Whether the type follows from the text, as for a new key.
  var isInferred: Bool { fresh.isInferred }

  /// Whether the text is not a value's yet.
  var isHeld: Bool {
    switch phase {
    case .held: true
    case .overlaid(let overlay): !overlay.tailCounts && !overlay.headCounts
    case .settled, .truncated: false
    }
  }

  /// write(2). With `appending` the offset is the caller's belief; our own end counts.
  mutating func write(
    _ bytes: [UInt8], at offset: Int, appending: Bool, now: Instant
  ) -> Action {
    let startsEmpty = memory.startsEmpty && offset == 0 && !appending
    let position = appending ? text.count : offset
    guard let end = Self.end(of: bytes.count, at: position) else { return .tooLarge }
    if position == memory.droppedEnd, position > 0, !appending {
      return .refuse("it goes on from text that was dropped; write the whole text again")
    }
    if startsEmpty { replaceText(with: []) }
    if position > text.count { text += repeatElement(0, count: position - text.count) }
    text.replaceSubrange(position..<min(end, text.count), with: bytes)
    if fed != position {
      judge = fresh
      judge.feed(text[..<position])
    }
    judge.feed(bytes[...])
    fed = end
    let action = judged(now: now)
    if case .refuse = action {
      memory.droppedEnd = position
    } else {
      memory = Memory()
    }
    return action
  }

  /// ftruncate(2).
  mutating func truncate(to size: Int, now: Instant) -> Action {
    guard (0...Self.largest).contains(size) else { return .tooLarge }
    if size == 0 {
      memory = Memory(startsEmpty: true)
      let value = judge.isInferred ? fresh.emptyValue : nil
      replaceText(with: [])
      if let value { return settle(value) }
      phase = .truncated(until: now.advanced(milliseconds: Self.patience))
      return .nothing
    }
    memory.startsEmpty = false
    if size == text.count { return .nothing }
    if size < text.count {
      text.removeLast(text.count - size)
    } else {
      text += repeatElement(0, count: size - text.count)
    }
    if fed != size {
      judge = fresh
      judge.feed(text[...])
      fed = size
    }
    return judged(now: now)
  }

  /// The time of `deadline` has come, or fsync(2) asks to decide at once.
  mutating func expire(now: Instant) -> Action {
    switch phase {
    case .settled: return .nothing
    case .truncated:
      guard let value = fresh.emptyValue else { return .revert(nil) }
      return settle(value)
    case .held:
      memory.droppedEnd = text.count
      return .revert("text that stayed incomplete for 5 s was dropped")
    case .overlaid(let overlay):
      phase =
        overlay.tailCounts || overlay.headCounts
        ? .settled : .held(until: now.advanced(milliseconds: Self.holding - Self.patience))
      guard !overlay.tailCounts else { return .nothing }
      text.removeLast(text.count - overlay.end)
      return .cut
    }
  }

  private mutating func replaceText(with bytes: [UInt8]) {
    text = bytes
    judge = fresh
    fed = 0
  }

  private mutating func settle(_ value: Value) -> Action {
    phase = .settled
    return .commit(value, text)
  }

  /// Judges the text up to `fed`, and what stands behind it.
  private mutating func judged(now: Instant) -> Action {
    guard fed == text.count else { return judgedWithTail(now: now) }
    switch judge.judgement(of: text) {
    case .impossible(let reason): return .refuse(reason)
    case .complete:
      guard let value = judge.value(of: text) else { return .refuse("the text is no value") }
      return settle(value)
    case .incomplete:
      phase = .held(until: now.advanced(milliseconds: Self.holding))
      return .nothing
    }
  }

  private mutating func judgedWithTail(now: Instant) -> Action {
    let head = Array(text[..<fed])
    let verdict = judge.judgement(of: head)
    if case .impossible(let reason) = verdict { return .refuse(reason) }
    var whole = judge
    whole.feed(text[fed...])
    let wholeValue = whole.judgement(of: text) == .complete ? whole.value(of: text) : nil
    let headValue = verdict == .complete ? judge.value(of: head) : nil
    phase = .overlaid(
      Overlay(
        end: fed, until: now.advanced(milliseconds: Self.patience),
        tailCounts: wholeValue != nil, headCounts: headValue != nil))
    if let wholeValue { return .commit(wholeValue, text) }
    return headValue.map { .commit($0, head) } ?? .nothing
  }
}
