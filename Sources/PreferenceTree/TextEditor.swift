import PreferenceModel
import PropertyList
import SystemCalls

/// The text of one key while it is being written: held text, truncation, old tail.
///
/// A pure state machine. Its methods return what is to be done; whoever performs it may fail, and then
/// throws the editor away, so that the file shows the value again.
///
/// States: `complete` (the text denotes the value), `truncated` (cut to nothing a moment ago: the
/// engine has the old value until `until`), `held` (the beginning of a value's text: the engine
/// has the last valid value), `overlaid` (new text stands before an old tail: the engine has the
/// whole if that is a value's text, else the new part if that is one, else the last valid value).
///
/// Writing n bytes in any number of pieces costs O(n): the judge goes on where it was, and of a long
/// string or data the engine gets what was written, as a splice.
struct TextEditor {
  /// What to do after a step.
  enum Action: Equatable {
    case nothing
    /// The engine gets the value, with these bytes as its text.
    case commit(Value, [UInt8])
    /// The engine gets a part of its string or data.
    case splice(Splice)
    /// The text is thrown away and the file shows the value again, for the reason.
    case revert(String?)
    /// No continuation makes it a value's text: as `revert`, and the caller is told.
    case refuse(String)
    /// Larger than a value may be; nothing was changed.
    case tooLarge
    /// The text that is shown became shorter by itself; the value stays.
    case cut
  }

  enum Phase: Equatable {
    case complete
    case truncated(until: Instant)
    case held(until: Instant)
    case overlaid(Overlay)
  }

  struct Overlay: Equatable {
    /// Where the new text ends.
    var end: Int
    var until: Instant
    /// Whether the new text with the old tail is a value's; nil: that is found out when the time is over.
    var tailCounts: Bool?
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

  /// What the engine has of the text, where it is a string or data.
  struct Committed: Equatable {
    var kind: Kind
    /// Bytes of the value.
    var count: Int
  }

  /// Bytes that a value's text may have.
  static let largest = 16 << 20
  private static let patience: Int64 = 50

  /// Where so many bytes that are written at the offset end; nil past the largest text.
  static func end(of count: Int, at offset: Int) -> Int? {
    let (end, overflow) = offset.addingReportingOverflow(count)
    return offset >= 0 && !overflow && end <= largest ? end : nil
  }

  static let holding: Int64 = 5000

  private(set) var text: [UInt8]
  private(set) var memory: Memory
  let fresh: Judge
  var judge: Judge
  /// How much of the text the judge has been fed.
  private(set) var fed = 0
  var phase = Phase.complete
  /// What the engine has; nil where it is no string or data, or was not made from this text.
  var committed: Committed?
  /// Which bytes of the text the engine does not have yet.
  private(set) var dirty: Range<Int>?
  /// Whether what was committed last has bytes that were not written since the engine had a text: it holds
  /// for that text alone.
  private(set) var isComputed = false

  /// Begins with the text that the file shows.
  /// - Parameter committed: the value's kind and length, where it is a string or data.
  init(text: [UInt8], judge: Judge, memory: Memory = Memory(), committed: Committed? = nil) {
    self.text = text
    self.memory = memory
    self.committed = committed
    fresh = judge
    self.judge = judge
  }

  /// When `expire` must be called; nil while the text is complete.
  var deadline: Instant? {
    switch phase {
    case .complete: nil
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
    case .overlaid(let overlay): overlay.tailCounts != true && !overlay.headCounts
    case .complete, .truncated: false
    }
  }

  /// Whether `expire` may find that held text is a value's.
  var isUndecided: Bool {
    if case .overlaid(let overlay) = phase { return overlay.tailCounts == nil }
    if case .held = phase { return isInferred }
    return false
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
    note(dirty: min(position, text.count)..<end)
    if fed != position, !goesOn(at: position) { feedAgain(to: position) }
    text.replaceSubrange(position..<min(end, text.count), with: bytes)
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

  /// The bytes stand between those before and behind the position from now on.
  mutating func insert(_ bytes: [UInt8], at position: Int, now: Instant) -> Action {
    guard text.indices.contains(position), let end = Self.end(of: bytes.count, at: text.count)
    else {
      return write(bytes, at: 0, appending: true, now: now)
    }
    note(dirty: position..<end)
    if fed != position, !goesOn(at: position) { feedAgain(to: position) }
    text.insert(contentsOf: bytes, at: position)
    judge.feed(text[position...])
    fed = end
    memory = Memory()
    return judged(now: now)
  }

  /// ftruncate(2).
  mutating func truncate(to size: Int, now: Instant) -> Action {
    guard (0...Self.largest).contains(size) else { return .tooLarge }
    if size == 0 {
      memory = Memory(startsEmpty: true)
      let value = judge.isInferred ? fresh.emptyValue : nil
      replaceText(with: [])
      if let value { return complete(value) }
      phase = .truncated(until: now.advanced(milliseconds: Self.patience))
      return .nothing
    }
    memory.startsEmpty = false
    if size == text.count { return .nothing }
    note(dirty: min(size, text.count)..<size)
    if size < text.count {
      text.removeLast(text.count - size)
    } else {
      text += repeatElement(0, count: size - text.count)
    }
    if fed != size { feedAgain(to: size) }
    return judged(now: now)
  }

  /// The time of `deadline` has come, or fsync(2) asks to decide at once.
  mutating func expire(now: Instant) -> Action {
    switch phase {
    case .complete: return .nothing
    case .truncated:
      guard let value = fresh.emptyValue else { return .revert(nil) }
      return complete(value)
    case .held:
      if isInferred, let value = judge.value(of: text) { return complete(value) }
      memory.droppedEnd = text.count
      return .revert("text that stayed incomplete for 5 s was dropped")
    case .overlaid(let overlay): return expire(overlay, now: now)
    }
  }

  private mutating func expire(_ overlay: Overlay, now: Instant) -> Action {
    if overlay.tailCounts == nil {
      var whole = judge
      whole.feed(text[fed...])
      if whole.judgement(of: text) == .complete, let value = whole.value(of: text) {
        (judge, fed) = (whole, text.count)
        return complete(value)
      }
    }
    let isComplete = overlay.tailCounts == true || overlay.headCounts
    phase =
      isComplete
      ? .complete : .held(until: now.advanced(milliseconds: Self.holding - Self.patience))
    guard overlay.tailCounts != true else { return .nothing }
    text.removeLast(text.count - overlay.end)
    return .cut
  }

  // MARK: - The judge

  private mutating func replaceText(with bytes: [UInt8]) {
    text = bytes
    judge = fresh
    fed = 0
    (committed, dirty) = (nil, nil)
  }

  private mutating func feedAgain(to position: Int) {
    if position > text.count { text += repeatElement(0, count: position - text.count) }
    judge = fresh
    judge.feed(text[..<position])
    fed = position
  }

  /// Whether the judge may begin at the position: all before it is sound text of a string or data, and
  /// ends between two characters.
  private mutating func goesOn(at position: Int) -> Bool {
    guard isSound, let committed, !isInferred, position <= text.count else { return false }
    if committed.kind == .string, position < text.count, text[position] & 0xC0 == 0x80 {
      return false
    }
    judge = fresh
    return true
  }

  /// Whether the engine has the whole text, apart from what is dirty.
  private var isSound: Bool {
    switch phase {
    case .complete: true
    case .overlaid(let overlay): overlay.tailCounts == true
    case .held, .truncated: false
    }
  }

  private mutating func note(dirty range: Range<Int>) {
    guard let before = dirty else { return dirty = range }
    dirty = min(before.lowerBound, range.lowerBound)..<max(before.upperBound, range.upperBound)
  }

  mutating func complete(_ value: Value) -> Action {
    let isPlain = value.kind == .string || value.kind == .data
    phase = .complete
    noteCommitted(text.count)
    committed = isPlain ? Committed(kind: value.kind, count: plainCount(value.kind)) : nil
    return .commit(value, text)
  }

  /// The engine gets so many bytes of the text.
  mutating func noteCommitted(_ count: Int) {
    isComputed = count > 0 && dirty.map { $0.lowerBound > 0 || $0.upperBound < count } != false
    dirty = nil
  }

  /// Bytes of the value that the text denotes, if it is one of the kind.
  func plainCount(_ kind: Kind) -> Int {
    kind == .string && text.last == UInt8(ascii: "\n") ? text.count - 1 : text.count
  }
}
