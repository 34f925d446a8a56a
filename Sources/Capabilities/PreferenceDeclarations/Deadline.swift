import Glibc
import PropertyList
import SystemCalls

/// A moment as the clocks of a machine say it.
package struct ClockReading: Equatable, Sendable {
  /// Which machine it is; empty if that is not known.
  package let machine: String
  /// Which start of the machine it is.
  package let boot: String
  /// Nanoseconds since then, in which it slept too.
  package let uptime: Int64
  /// The time of day, in nanoseconds since 1970, as somebody has set it.
  package let time: Int64

  package init(machine: String = "", boot: String, uptime: Int64, time: Int64) {
    (self.machine, self.boot, self.uptime, self.time) = (machine, boot, uptime, time)
  }
}

extension ClockReading {
  /// The present moment. Cost: two small files are read.
  package static var now: ClockReading {
    ClockReading(
      machine: word(in: "/etc/machine-id"), boot: word(in: "/proc/sys/kernel/random/boot_id"),
      uptime: read(CLOCK_BOOTTIME), time: Timestamp.now.nanoseconds)
  }

  private static func word(in path: String) -> String {
    let bytes = (try? Files.contents(path, limit: 4096)) ?? []
    return String(decoding: bytes.filter { $0 > 0x20 }, as: UTF8.self)
  }

  private static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    let (seconds, isOver) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
    return isOver ? .max : seconds.addingReportingOverflow(Int64(time.tv_nsec)).partialValue
  }
}

/// Until when a declaration counts, unless it is confirmed; then it is what it was before.
///
/// Promises: while the machine runs, nobody moves it by setting the clock. After a restart the time
/// of day counts; a clock that was set back does not make it later than its length after that
/// restart. On another machine, with which a home is shared, the time of day counts alone.
package struct Deadline: Equatable, Sendable {
  /// What a declaration said before.
  struct Former: Equatable, Sendable {
    var document: ValueDictionary
    var isMerged: Bool
    var variables: Variables?
    var over: Set<String>
  }

  /// When the declaration was made.
  package let start: ClockReading
  /// How long it counts, in nanoseconds.
  package let length: Int64
  /// Whether it ends without a question.
  package let isLease: Bool
  /// What it was before; nil if there was none of that name.
  let former: Former?

  /// How many nanoseconds are left; 0 if it is over.
  package func remaining(at now: ClockReading) -> Int64 {
    func left(_ begin: Int64, _ now: Int64) -> Int64 {
      let (passed, isOver) = now.subtractingReportingOverflow(begin)
      if isOver { return now > begin ? 0 : length }
      return length.subtractingReportingOverflow(max(passed, 0)).partialValue
    }
    if now.boot == start.boot { return max(0, left(start.uptime, now.uptime)) }
    let byTime = left(start.time, now.time)
    if !start.machine.isEmpty, now.machine != start.machine { return max(0, byTime) }
    return max(0, min(byTime, left(0, now.uptime)))
  }
}

// MARK: - As preferences

extension Deadline {
  init?(_ value: Value?) {
    guard case .dictionary(let values)? = value, case .string(let boot)? = values["boot"],
      let uptime = values["uptime"]?.signed, let time = values["time"]?.signed,
      let length = values["length"]?.signed, length >= 0
    else { return nil }
    start = ClockReading(
      machine: values["machine"]?.string ?? "", boot: boot, uptime: uptime, time: time)
    (self.length, isLease) = (length, values["lease"] == true)
    guard case .dictionary(let former)? = values["former"] else {
      self.former = nil
      return
    }
    self.former = Former(
      document: former["document"]?.dictionary ?? [:], isMerged: former["merged"] == true,
      variables: Variables(former["variables"]),
      over: Set(former["over"]?.elements?.compactMap(\.string) ?? []))
  }

  var value: Value {
    var values: ValueDictionary = [
      "boot": .string(start.boot), "uptime": .integer(WideInteger(start.uptime)),
      "time": .integer(WideInteger(start.time)), "length": .integer(WideInteger(length)),
    ]
    if !start.machine.isEmpty { values["machine"] = .string(start.machine) }
    if isLease { values["lease"] = true }
    if let former {
      var known: ValueDictionary = ["document": .dictionary(former.document)]
      if former.isMerged { known["merged"] = true }
      known["variables"] = former.variables?.value
      if !former.over.isEmpty {
        known["over"] = .array(former.over.sorted().map { .string($0) })
      }
      values["former"] = .dictionary(known)
    }
    return .dictionary(values)
  }
}
