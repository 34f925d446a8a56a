import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceDeclarations

@Suite("Deadlines of declarations") struct DeadlineTests {
  /// A machine whose clocks a test sets.
  private struct Machine {
    var name = "here"
    var boot = "one"
    var uptime: Int64 = 1000
    var time: Int64 = 50_000

    var now: ClockReading { ClockReading(machine: name, boot: boot, uptime: uptime, time: time) }

    mutating func pass(_ seconds: Int64) { (uptime, time) = (uptime + seconds, time + seconds) }

    mutating func restart(_ seconds: Int64) {
      time += seconds
      (boot, uptime) = (boot + "+", 0)
    }
  }

  private func deadline(_ machine: Machine, _ length: Int64) -> Deadline {
    Deadline(start: machine.now, length: length, isLease: false, former: nil)
  }

  @Test("it is over when its length has passed, whatever the time of day is set to")
  func clocks() {
    var machine = Machine()
    let deadline = deadline(machine, 100)
    machine.pass(99)
    machine.time -= 5000
    #expect(deadline.remaining(at: machine.now) == 1)
    machine.time += 20_000
    #expect(deadline.remaining(at: machine.now) == 1)
    machine.pass(1)
    #expect(deadline.remaining(at: machine.now) == 0)
  }

  @Test("after a restart the time of day counts; one that was set back, for its length at most")
  func restarts() {
    var machine = Machine()
    let deadline = deadline(machine, 100)
    machine.pass(10)
    machine.restart(20)
    #expect(deadline.remaining(at: machine.now) == 70)
    machine.pass(69)
    #expect(deadline.remaining(at: machine.now) == 1)
    machine.time = 0
    #expect(deadline.remaining(at: machine.now) == 31)
    machine.pass(31)
    #expect(deadline.remaining(at: machine.now) == 0)
    machine.restart(Int64.max - machine.time)
    #expect(deadline.remaining(at: machine.now) == 0)
  }

  @Test("another machine knows the time of day, whenever it has started")
  func shared() throws {
    let deadline = deadline(Machine(), 100)
    #expect(Deadline(deadline.value) == deadline)
    var other = Machine(name: "there", boot: "other", uptime: 1_000_000, time: 50_000)
    other.pass(99)
    #expect(deadline.remaining(at: other.now) == 1)
    other.pass(1)
    #expect(deadline.remaining(at: other.now) == 0)
  }

  @Test("numbers of a ledger that somebody has edited overflow nothing")
  func extremes() {
    for start in [Int64.min, -1, 0, .max] {
      for length in [0, 1, Int64.max] {
        let first = ClockReading(boot: "one", uptime: start, time: start)
        let deadline = Deadline(start: first, length: length, isLease: true, former: nil)
        #expect(Deadline(deadline.value) == deadline)
        for now in [Int64.min, 0, .max] {
          for boot in ["one", "two"] {
            let reading = ClockReading(boot: boot, uptime: now, time: now)
            #expect((0...length).contains(deadline.remaining(at: reading)))
          }
        }
      }
    }
  }

  private func apply(
    _ store: DeclaredStore, _ settings: ValueDictionary, for length: Int64?, _ machine: Machine
  ) throws {
    let declaration = try Declaration(["d": .dictionary(settings)])
    var requests: [Declarations.Request] = [.declare("a", declaration, over: [])]
    if let length {
      requests.append(.limit("a", nanoseconds: length, isLease: false, from: machine.now))
    }
    _ = try Declarations(store.places).carryOut(requests, by: store.author)
  }

  private func expire(_ store: DeclaredStore, _ machine: Machine) throws {
    _ = try Declarations(store.places).carryOut(
      [.expire("a", at: machine.now)], by: store.author)
  }

  @Test("what was not confirmed is again what it was; what somebody has changed since stays")
  func back() throws {
    let store = DeclaredStore()
    var machine = Machine()
    try store.set("A", 0)
    try apply(store, ["A": 1, "B": 1, "C": 1], for: nil, machine)
    try apply(store, ["A": 2, "B": 2, "D": 2], for: 100, machine)
    machine.pass(50)
    // Applied once more before it was confirmed: what was confirmed comes back.
    try apply(store, ["A": 3, "B": 3, "D": 3], for: 100, machine)
    try store.set("B", 9)
    machine.pass(99)
    try expire(store, machine)
    #expect(try store.find("A") == 3)
    machine.pass(1)
    try expire(store, machine)
    #expect(try store.find("A") == 1 && store.find("B") == 9 && store.find("C") == 1)
    #expect(try store.find("D") == nil)
    let ledger = try Declarations(store.places).ledger()
    #expect(ledger.deadlines.isEmpty)
    #expect(ledger.declarations["a"]?.document == ["d": ["A": 1, "B": 1, "C": 1]])
    try store.undeclare("a")
    #expect(try store.find("A") == 0 && store.find("B") == 9 && store.find("C") == nil)
    #expect(try store.places.keys(at: Location(.user, .declared)).isEmpty)
  }

  @Test("a declaration that was new goes; one that is confirmed, or applied again, stays")
  func confirmed() throws {
    let store = DeclaredStore()
    var machine = Machine()
    let declarations = Declarations(store.places)
    try apply(store, ["A": 1], for: 10, machine)
    machine.pass(10)
    try expire(store, machine)
    #expect(try store.find("A") == nil && declarations.ledger() == Ledger())
    try apply(store, ["A": 1], for: 10, machine)
    _ = try declarations.carryOut([.confirm("a")], by: store.author)
    #expect(throws: EngineError.self) {
      try declarations.carryOut([.confirm("a")], by: store.author)
    }
    machine.pass(10)
    try expire(store, machine)
    #expect(try store.find("A") == 1)
    try apply(store, ["A": 2], for: 10, machine)
    try apply(store, ["A": 2], for: nil, machine)
    machine.pass(10)
    try expire(store, machine)
    #expect(try store.find("A") == 2)
  }
}
