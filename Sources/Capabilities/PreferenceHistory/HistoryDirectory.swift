import PreferenceModel
import PropertyList
import SystemCalls

/// The directory `history` of a store's state directory, for those who read it.
///
/// Threads: any; it may be read while the owner of the store appends to it.
public struct HistoryDirectory: Sendable {
  /// Its path.
  public let path: String

  /// The directory at the path, which need not exist.
  public init(_ path: String) { self.path = path }

  /// What the history says at one place.
  public enum Entry: Equatable, Sendable {
    case change(HistoryRecord)
    /// Changes before the next entry are missing, because of this.
    case gap(String)
  }

  /// The numbers of the files, ascending: each is that of the first change that it was made for.
  func numbers() throws(SystemError) -> [UInt64] {
    (try Files.names(in: path) ?? []).compactMap { name in
      guard let number = UInt64(name), number < 1 << 62 else { return nil }
      return number
    }.sorted()
  }

  /// The end of the name of a file that takes another one's place when it is complete.
  package static let temporary = ".new"

  /// Removes what a crash has left of files that were being rewritten.
  func removeLeftovers() throws(SystemError) {
    for name in try Files.names(in: path) ?? [] where name.hasSuffix(Self.temporary) {
      try Files.remove("\(path)/\(name)")
    }
  }

  func file(_ number: UInt64) -> String { "\(path)/\(number)" }

  /// Returns what the files have, as a whole: their `bytes`, and `gaps`, how often changes are
  /// missing; `since`, the time of the oldest change, and `until`, when a file was last written, if
  /// there is one. Cost: all files are read and summed, 64 MiB at most, but only the oldest
  /// one is decoded.
  public func summary() throws(SystemError) -> ValueDictionary {
    var (bytes, gaps) = (0, 0)
    var summary: ValueDictionary = [:]
    let numbers = try numbers()
    for number in numbers {
      guard let status = try Files.linkStatus(file(number)) else { continue }
      bytes += Int(clamping: status.st_size)
      gaps += HistoryFile.gapCount(file(number))
      summary["until"] = .date(AbsoluteTime(Timestamp(status.st_mtim)))
    }
    summary["bytes"] = .integer(WideInteger(UInt64(clamping: bytes)))
    summary["gaps"] = .integer(WideInteger(UInt64(clamping: gaps)))
    if let first = numbers.first, let oldest = try HistoryFile.read(file(first)).records.first {
      summary["since"] = .date(AbsoluteTime(oldest.time))
    }
    return summary
  }

  /// Reads the changes after the one with that number, the oldest first, and the gaps between them.
  /// A file that is damaged counts up to the damage, and a gap follows; so it does for a file that
  /// cannot be read, or is of a later version. Cost: O(bytes) of the files that may have such
  /// changes, 64 MiB at most.
  package func entries(after last: UInt64 = 0) throws(SystemError) -> [Entry] {
    var all: [Entry] = []
    let numbers = try numbers()
    for (index, number) in numbers.enumerated() {
      // A file's name is the number of its first change.
      if index + 1 < numbers.count, numbers[index + 1] <= last + 1 { continue }
      let contents: HistoryFile.Contents
      do throws(SystemError) {
        contents = try HistoryFile.read(file(number))
      } catch {
        all.append(.gap("\(file(number)) cannot be read: \(error)"))
        continue
      }
      all += contents.entries.lazy.filter { $0.number > last }.map(\.entry)
      if contents.isDamaged { all.append(.gap("the end of \(file(number)) is damaged")) }
    }
    return all
  }
}
