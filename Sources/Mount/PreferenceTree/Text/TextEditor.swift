import PreferenceModel
import PropertyList
import SystemCalls

/// Edits the text of one key while it is being written: decides when the text becomes a value, when
/// it is held, and when it is refused.
///
/// It is a state machine that asks no engine and no clock. Its methods return what the tree must
/// do. If the tree fails to do it, the tree throws the editor away, and the file shows the value
/// again. It is a class because a copy of its state costs more than a step does.
///
/// Threads: the tree's alone.
///
/// Phases:
/// - `complete`: the text is that of the engine's value.
/// - `truncated`: the text was cut to nothing a moment ago. The engine has the old value.
/// - `held`: the text is the beginning of a value's text. The engine has the last valid value.
/// - `overlaid`: new text is before the tail of an old, longer text. The engine has the value of
///   the whole text if that is one, else the value of the new text if that is one, else the last
///   valid value.
///
/// Cost: writing n bytes in any number of pieces is O(n). The judge goes on where it ended, and of
/// a long string or data the engine gets only what was written, as a splice.
final class TextEditor {
  /// What the tree must do after a step.
  enum Action: Equatable {
    case nothing
    /// Set the value in the engine, with these bytes as its text.
    case commit(Value, [UInt8])
    /// Change a part of the engine's string or data.
    case splice(Splice)
    /// Throw the text away, so that the file shows the value again. The string is the reason, if it
    /// is to be logged.
    case revert(String?)
    /// Refuse the request for this reason and throw the text away: no continuation makes it the
    /// text of a value.
    case refuse(String)
    /// Refuse the request: the text would be longer than a value's may be. The step has changed
    /// nothing.
    case tooLarge
    /// Invalidate the file: its text became shorter without a write. The value stays.
    case cut
  }

  /// What is known of the text; `until` is when the phase ends by itself. See `TextEditor`.
  enum Phase: Equatable {
    case complete
    case truncated(until: Instant)
    case held(until: Instant)
    case overlaid(Overlay)
  }

  /// New text before an old tail.
  struct Overlay: Equatable {
    /// The offset at which the new text ends and the old tail begins.
    var end: Int
    var until: Instant
    /// Whether the new text with the old tail is the text of a value; nil if that was not judged yet,
    /// because the text is long.
    var tailCounts: Bool?
    /// Whether the new text alone is the text of a value.
    var headCounts: Bool
  }

  /// What the next editor of the file must know of an editor that was thrown away.
  struct Memory: Equatable {
    /// Whether the next write at offset 0 starts from empty text, because the file was truncated.
    var startsEmpty = false
    /// The offset at which a write would continue text that was dropped or refused; such a write is
    /// refused, until nobody has tried for a minute.
    var droppedEnd: Int?
  }

  /// The string or data that the engine has.
  struct Committed: Equatable {
    var kind: Kind
    /// Bytes of the value.
    var count: Int
  }

  /// The most bytes that a value's text may have.
  static let largest = 16 << 20
  /// Milliseconds for which a truncation, or an old tail, waits for the next write.
  static let patience: Int64 = 50

  /// The offset at which `count` bytes end that are written at the offset; nil if the text would be
  /// longer than `largest`.
  static func end(of count: Int, at offset: Int) -> Int? {
    let (end, overflow) = offset.addingReportingOverflow(count)
    return offset >= 0 && !overflow && end <= largest ? end : nil
  }

  /// Milliseconds for which incomplete text is held.
  static let holding: Int64 = 5000

  /// What the file shows.
  private(set) var text: [UInt8]
  private(set) var memory: Memory
  /// Was fed the text up to `fed`.
  var judge: Judge
  /// The offset up to which the text is judged. What is behind it is an old tail.
  private(set) var fed = 0
  var phase = Phase.complete
  /// The string or data that the engine has of this text; nil if the value is of a different type,
  /// or is not the value of this text.
  var committed: Committed?
  /// The bytes of the text that were written since the last commit; nil if there are none.
  private(set) var dirty: Range<Int>?
  /// Whether the last commit has bytes that were in the text before it was written to. Such a
  /// commit is right only as long as the engine has the value that the text was computed from.
  private(set) var isComputed = false
  /// Whether the bytes that are written are appended to an empty text. What is committed next is
  /// right only as long as nobody else has written something.
  private var startsAtEnd = false

  /// What the file showed before the text was cut to nothing a moment ago.
  private var cutText: [UInt8] = []
  /// What somebody else has appended to that since.
  private var appended: [UInt8] = []

  /// Whether the text was cut to nothing a moment ago.
  var isTruncated: Bool { if case .truncated = phase { true } else { false } }

  /// Whether the engine has the text once the last action is carried out, so that the editor can be
  /// thrown away. While a step is made, the bytes that it writes do not count.
  var isCommitted: Bool {
    switch phase {
    case .complete: true
    case .overlaid(let overlay): overlay.tailCounts == true
    case .truncated, .held: false
    }
  }

  /// Whether the text waits a moment, 50 ms at most, for what the program does next.
  var waitsForMore: Bool {
    switch phase {
    case .truncated: true
    case .overlaid(let overlay): overlay.tailCounts == nil
    case .complete, .held: false
    }
  }

  /// Creates an editor that begins with the text that the file shows.
  /// - Parameter committed: the kind and length of the engine's value, if it is a string or data
  ///   and may be spliced.
  init(
    text: [UInt8], rule: Judge.Rule, memory: Memory = Memory(), committed: Committed? = nil
  ) {
    self.text = text
    self.memory = memory
    self.committed = committed
    judge = Judge(rule)
  }

  /// When `expire` must be called; nil while the text is complete.
  var deadline: Instant? {
    switch phase {
    case .complete: nil
    case .truncated(let until), .held(let until): until
    case .overlaid(let overlay): overlay.until
    }
  }

  /// Whether the type follows from the text, as it does for the creator of a new key.
  var isInferred: Bool { judge.isInferred }

  /// Whether text is held: neither the whole text nor the new part of it is known to be the text of
  /// a value.
  var isHeld: Bool {
    switch phase {
    case .held: true
    case .overlaid(let overlay): overlay.tailCounts != true && !overlay.headCounts
    case .complete, .truncated: false
    }
  }

  /// Whether `expire` may find that held text is the text of a value.
  var isUndecided: Bool {
    if case .overlaid(let overlay) = phase { return overlay.tailCounts == nil }
    if case .held = phase { return isInferred }
    return false
  }

  /// Carries out write(2). With `appending` the offset is ignored, and the bytes go to the end of
  /// the text.
  func write(
    _ bytes: [UInt8], at offset: Int, appending: Bool, now: Instant
  ) -> Action {
    let startsEmpty = memory.startsEmpty && offset == 0 && !appending
    (cutText, appended) = ([], [])
    let position = appending ? text.count : offset
    guard let end = Self.end(of: bytes.count, at: position) else { return .tooLarge }
    if position == memory.droppedEnd, position > 0, !appending {
      return .refuse("the write continues text that was dropped; write the whole text again")
    }
    if startsEmpty { replaceText(with: []) }
    if appending, position == 0, phase == .complete { startsAtEnd = true }
    note(dirty: min(position, text.count)..<end)
    let continues = fed == position && !appending
    if fed != position, !goesOn(at: position) { feedAgain(to: position) }
    text.overwrite(at: position, with: bytes)
    judge.feed(bytes[...])
    fed = end
    let action = judged(now: now)
    if case .refuse = action {
      // The offset of a descriptor stays where its write was refused.
      memory.droppedEnd = continues ? position : nil
    } else {
      memory = Memory()
    }
    return action
  }

  /// Inserts the bytes at the position; appends them if the position is not in the text.
  func insert(_ bytes: [UInt8], at position: Int, now: Instant) -> Action {
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

  /// Carries out ftruncate(2).
  func truncate(to size: Int, now: Instant) -> Action {
    guard (0...Self.largest).contains(size) else { return .tooLarge }
    if size == 0 {
      memory = Memory(startsEmpty: true)
      if !isTruncated { (cutText, appended) = (text, []) }
      let value = isInferred ? judge.emptyValue : nil
      replaceText(with: [])
      if let value { return complete(value) }
      phase = .truncated(until: now.advanced(milliseconds: Self.patience))
      return .nothing
    }
    memory.startsEmpty = false
    if size == text.count { return .nothing }
    // The next value is set whole, where the engine does not have what was written before a tail.
    if !isCommitted { committed = nil }
    note(dirty: min(size, text.count)..<size)
    text.resize(to: size)
    if fed != size { feedAgain(to: size) }
    return judged(now: now)
  }

  /// Keeps a truncation if the text that somebody else has given the key meanwhile is the former one
  /// with something appended: it becomes what was appended, as if the truncation had been first.
  /// Returns whether it does; only strings and data can be empty.
  func keepsTruncation(before newText: [UInt8]) -> Bool {
    guard isTruncated, judge.emptyValue != nil, !cutText.isEmpty,
      newText.count > cutText.count, newText.starts(with: cutText)
    else { return false }
    appended = Array(newText[cutText.count...])
    return true
  }

  /// Ends a phase: called when its `deadline` has come, or earlier by a request that needs a
  /// decision at once (fsync(2), rename(2), a change of type).
  func expire(now: Instant) -> Action {
    switch phase {
    case .complete: return .nothing
    case .truncated:
      guard let value = judge.emptyValue else { return .revert(nil) }
      if appended.isEmpty { return complete(value) }
      replaceText(with: appended)
      feedAgain(to: text.count)
      guard let rest = judge.value(of: text) else { return .revert(nil) }
      return complete(rest)
    case .held:
      if isInferred, let value = judge.value(of: text) { return complete(value) }
      memory.droppedEnd = text.count
      return .revert("text that stayed incomplete for 5 s was dropped")
    case .overlaid(let overlay): return expire(overlay, now: now)
    }
  }

  private func expire(_ overlay: Overlay, now: Instant) -> Action {
    if overlay.tailCounts == nil {
      var whole = judge.copy()
      whole.feed(text[fed...])
      if whole.judgement(of: text) == .complete, let value = whole.value(of: text) {
        judge = whole
        fed = text.count
        return complete(value)
      }
    }
    let isComplete = overlay.tailCounts == true || overlay.headCounts
    phase =
      isComplete
      ? .complete : .held(until: now.advanced(milliseconds: Self.holding - Self.patience))
    guard overlay.tailCounts != true else { return .nothing }
    text.removeLast(text.count - overlay.end)
    // The engine has a value with the tail, or that of the head alone: the next one is set whole.
    committed = nil
    return .cut
  }

  // MARK: - The judge

  private func replaceText(with bytes: [UInt8]) {
    text = bytes
    judge.reset()
    fed = 0
    (committed, dirty) = (nil, nil)
  }

  /// Feeds a new judge the text up to the position. NUL bytes fill a gap behind the text.
  private func feedAgain(to position: Int) {
    if position > text.count { text.resize(to: position) }
    judge.reset()
    judge.feed(text[..<position])
    fed = position
  }

  /// Starts a new judge at the position, if what is before it need not be judged: it is sound text
  /// of a string or data, and ends between two characters.
  /// - Returns: whether it did.
  private func goesOn(at position: Int) -> Bool {
    guard isCommitted, let committed, judge.kind == committed.kind, position <= text.count else {
      return false
    }
    if committed.kind == .string, position < text.count, text[position] & 0xC0 == 0x80 {
      return false
    }
    judge.reset()
    return true
  }

  /// Adds the range to the bytes that the engine does not have.
  private func note(dirty range: Range<Int>) { dirty = range.joined(with: dirty) }

  /// Commits the value of the whole text.
  func complete(_ value: Value) -> Action {
    let isPlain = value.kind == .string || value.kind == .data
    phase = .complete
    noteCommitted(text.count)
    committed = isPlain ? Committed(kind: value.kind, count: plainCount(value.kind)) : nil
    return .commit(value, text)
  }

  /// Notes that the engine gets the first `count` bytes of the text.
  func noteCommitted(_ count: Int) {
    let isPart = dirty.map { $0.lowerBound > 0 || $0.upperBound < count } != false
    isComputed = startsAtEnd || count > 0 && isPart
    (dirty, startsAtEnd) = (nil, false)
  }

  /// The number of bytes of the string or data whose text this is: one newline at the end of a
  /// string is not part of it.
  func plainCount(_ kind: Kind) -> Int {
    kind == .string && text.last == UInt8(ascii: "\n") ? text.count - 1 : text.count
  }
}

extension [UInt8] {
  /// Puts the bytes in the place of what is at the position, which is not negative. NUL bytes fill
  /// a gap behind the end.
  mutating func overwrite(at position: Int, with bytes: [UInt8]) {
    if position > count { resize(to: position) }
    replaceSubrange(position..<Swift.min(position + bytes.count, count), with: bytes)
  }

  /// Cuts the end off, or adds NUL bytes.
  mutating func resize(to size: Int) {
    if size < count {
      removeLast(count - size)
    } else {
      append(contentsOf: repeatElement(0, count: size - count))
    }
  }
}
