import CLinux
import Glibc
import PropertyList
import SystemCalls

/// Measures the most memory that reading or writing a list takes, as a multiple of the memory of
/// its value.
enum MemoryBench {
  static func run(_ sample: Value, _ report: Report) {
    for format in [Format.binary, .xml] {
      guard let bytes = try? Document.write(sample, as: format) else { continue }
      let (size, peak) = measure { try? Document.read(bytes).value }
      let samples = Report.Samples(subject: "prefsfs", values: [peak / size])
      report.add("peak of reading \(format.rawValue)", .times, [samples], goals: [.atMost(3)])
      let (_, writing) = measure { try? Document.write(sample, as: format) }
      let written = Report.Samples(subject: "prefsfs", values: [writing / size])
      report.add("peak of writing \(format.rawValue)", .times, [written], goals: [.atMost(3)])
    }
  }

  /// Returns the memory that the result takes, and the most that was taken while it was made, in
  /// kilobytes.
  static func measure<Result>(_ body: () -> Result) -> (size: Double, peak: Double) {
    malloc_trim(0)
    let before = status("VmRSS:")
    // Resets the peak, VmHWM (proc(5)).
    try? Descriptor(opening: "/proc/self/clear_refs", O_WRONLY).write(Array("5".utf8))
    let result = body()
    let peak = status("VmHWM:") - before
    malloc_trim(0)
    let size = status("VmRSS:") - before
    return withExtendedLifetime(result) { (max(size, 1), peak) }
  }

  /// Returns the number of a line of /proc/PID/status, in kilobytes; 0 if there is none.
  static func status(_ name: String, of process: String = "self") -> Double {
    guard let bytes = try? Files.contents("/proc/\(process)/status", limit: 1 << 16)
    else { return 0 }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    let words = lines.first { $0.hasPrefix(name) }?.split(whereSeparator: {
      $0 == " " || $0 == "\t"
    })
    return words.flatMap { Double($0[1]) } ?? 0
  }
}
