import PreferenceDeclarations
import PreferenceModel
import PropertyList
import SystemCalls
import TerminalScreen
import Testing

@testable import PreferenceBrowser

/// Random keys and answers, and what holds after each.
@Suite("A random walk through the browser") struct RandomWalkTests {
  private static let inputs: [Input] =
    "tabx jkgGuUxyrdvc e?/q@mod1".map { .text(String($0)) } + [
      .key(.enter), .key(.tab), .key(.escape), .key(.down), .key(.up), .key(.pageDown), .key(.home),
      .key(.end), .key(.delete), .key(.backspace), .control("u"), .control("n"), .control("p"),
      .control("w"), .paste("a\u{1B}[2Jb"), .wheel(isUp: true), .wheel(isUp: false), .alt("b"),
    ]

  @Test("a chosen key exists, and is on the screen; the cursor is within it; typing is kept")
  func walk() {
    var numbers = Numbers(state: 5)
    var state = BrowserState(Grid.Size(rows: 24, columns: 80))
    // A debug build makes some 3,000 a second, so CI has 5,000, and who changes the browser 100,000.
    let most = Environment.variable("PREFSFS_WALK_EVENTS").flatMap { Int($0) } ?? 5000
    for step in 0..<most {
      let before = state
      let event = Self.event(step, &numbers)
      _ = state.handle(event)
      // One answer comes for what is waited for, sometime; and for what was given up.
      if before.isWaiting, case .input(.key(.escape)) = event {
        _ = state.handle(Self.answer(&numbers))
      }
      if state.isWaiting, step % 3 == 0 { _ = state.handle(Self.answer(&numbers)) }
      guard let problem = Self.problem(of: state, before, event, draws: step % 100 == 0) else {
        continue
      }
      Issue.record("after \(step) events, by \(event): \(problem)")
      return
    }
  }

  private static func event(_ step: Int, _ numbers: inout Numbers) -> Event {
    switch Int.random(in: 0..<100, using: &numbers) {
    case 0:
      return .size(
        Grid.Size(
          rows: .random(in: 1...40, using: &numbers), columns: .random(in: 1...120, using: &numbers)
        ))
    case 1...4: return .changed((0..<3).map { _ in entry(&numbers) }, gone: [entry(&numbers).id])
    case 5: return .found([entry(&numbers)])
    case 6: return .loaded
    case 7: return .declarations([entry(&numbers).id: ["desk"]], drifted: [entry(&numbers).id])
    default: return .input(inputs.randomElement(using: &numbers) ?? .key(.enter))
    }
  }

  private static func entry(_ numbers: inout Numbers) -> Entry {
    let names = ["Tab", "Bar", "日本語", "e\u{301}", "K\n", "Max", "TabWidth"]
    let id = EntryID(
      DomainName("d\(Int.random(in: 0..<4, using: &numbers))"),
      Key(names.randomElement(using: &numbers) ?? ""))
    return Entry(
      id, value: ["1", "日", "\u{1B}"].randomElement(using: &numbers) ?? "", source: "user",
      marks: Bool.random(using: &numbers) ? [.set, .modified] : [.set, .required, .secret])
  }

  private static func answer(_ numbers: inout Numbers) -> Event {
    let id = entry(&numbers).id
    let kinds: [Kind] = [.integer, .string, .boolean, .dictionary]
    let subject = Subject(
      id: id, value: 1, location: Location(.user, id.domain), expected: 1,
      kind: kinds.randomElement(using: &numbers) ?? .string, rule: "a rule",
      choices: Bool.random(using: &numbers) ? [] : [.init(value: 1, text: "1")])
    let step = OwnChange.Step(location: subject.location, before: nil, after: 1)
    let change = OwnChange(id: id, steps: [step])
    return [
      .undone(change, .refused("it has changed since")), .opened(subject), .refused("no"),
      .history(id, [(1, "a change")]), .made(change, line: "defaults write", message: "set"),
      .exported("text", message: "printed"), .viewed(id, "a\nb"),
    ].randomElement(using: &numbers) ?? .refused("no")
  }

  /// What does not hold; nil if all does.
  private static func problem(
    of state: BrowserState, _ before: BrowserState, _ event: Event, draws: Bool
  ) -> String? {
    if let chosen = state.chosen {
      guard let position = state.table.position(of: chosen) else { return "\(chosen) is not shown" }
      let rows = max(Layout(state.size).list.count, 1)
      if !(state.top..<state.top + rows).contains(position) { return "the chosen row is not seen" }
    } else if state.table.count > 0 {
      return "no key is chosen"
    }
    // Drawing costs more than all else.
    let grid = draws ? Drawing.grid(of: state) : Grid(state.size)
    if let cursor = grid.cursor,
      !(0..<grid.size.rows).contains(cursor.row)
        || !(0..<grid.size.columns).contains(cursor.column)
    {
      return "the cursor is outside"
    }
    if grid.text.unicodeScalars.contains(where: { $0.value < 0x20 && $0 != "\n" }) {
      return "a control is on the screen"
    }
    // Only inputs change what is typed, and those that have come while an answer was waited for.
    if case .input = event { return nil }
    if before.isWaiting { return nil }
    if state.filter != before.filter { return "the filter has changed" }
    if case .editing(let editing) = before.mode, case .editing(let now) = state.mode,
      editing.line != now.line
    {
      return "the line has changed"
    }
    return nil
  }
}

/// Random numbers that are the same at each run.
private struct Numbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ (state >> 29)
  }
}
