import Glibc

/// What proc(5) says of a process that is known by the number of one of its threads.
public struct ProcessFacts: Equatable, Sendable {
  /// The number of the process.
  public let process: pid_t
  /// The path of its program; empty where it cannot be told: the process has ended, or is another
  /// user's.
  public let program: String
  /// The last part of its control group; empty where it cannot be told.
  public let unit: String

  /// Reads them. Cost: three files of proc(5), which are in memory. Of a thread that has ended only
  /// the number is known.
  public init(ofThread thread: pid_t) {
    let status = Self.text("/proc/\(thread)/status")
    let group = status.split(separator: "\n").first { $0.hasPrefix("Tgid:") }
    process = group.flatMap { pid_t($0.dropFirst(5).drop { $0 == "\t" || $0 == " " }) } ?? thread
    program = Self.withoutMark(Files.linkTarget("/proc/\(thread)/exe") ?? "")
    unit = Self.unit(Self.text("/proc/\(thread)/cgroup"))
  }

  /// The path of a program whose file was replaced, without the mark of that.
  private static func withoutMark(_ path: String) -> String {
    let mark = " (deleted)"
    return path.hasSuffix(mark) ? String(path.dropLast(mark.count)) : path
  }

  /// The last part of the path in the line of the unified hierarchy (cgroups(7)), or of systemd's.
  static func unit(_ text: String) -> String {
    let lines = text.split(separator: "\n")
    let line =
      lines.first { $0.hasPrefix("0::") && $0 != "0::/" }
      ?? lines.first { $0.contains(":name=systemd:") }
    return line?.split(separator: "/").dropFirst().last.map(String.init) ?? ""
  }

  private static func text(_ path: String) -> String {
    String(decoding: ((try? Files.contents(path, limit: 1 << 16)) ?? nil) ?? [], as: UTF8.self)
  }
}
