import Glibc
import PreferenceModel
import SystemCalls

// Reading the files of a journal, damaged ones too.

extension Journal {
  /// Reads the journal files in a directory. Throws where a newer program wrote
  /// one of the files, and where one cannot be read.
  /// - Parameters:
  ///   - keepsDamaged: whether a damaged file is put aside, so that it is never removed. A reader
  ///     without the store's lock passes false, and changes nothing.
  ///   - report: called with a sentence for each damage.
  static func read(
    _ directory: String, keepsDamaged: Bool, report: (LogLine) -> Void
  ) throws(SystemError) -> Replay {
    var replay = Replay()
    for number in try numbers(in: directory) {
      let path = "\(directory)/\(prefix)\(number)"
      guard let status = try Files.linkStatus(path), status.st_mode & S_IFMT == S_IFREG else {
        continue
      }
      let bytes = try Files.contents(path, limit: 1 << 32) ?? []
      // A header of zeros: the power failed before anything of the file was durable.
      if bytes.count < headerSize || bytes.prefix(headerSize).allSatisfy({ $0 == 0 }) { continue }
      let file = try parse(bytes, path: path, report: report)
      replay.entries += file.entries
      replay.ends[number] = file.entries.map(\.sequence).max() ?? 0
      guard file.isDamaged else { continue }
      replay.ends[number] = nil
      if keepsDamaged {
        let kept = try putAside(path, number, sound: file.sound(in: bytes))
        report("the damaged file is kept as \(kept); nothing removes it")
      }
    }
    replay.entries = ordered(replay.entries)
    return replay
  }

  /// The records in the bytes of one file, in order; none where they are of another version.
  static func entries(ofFile bytes: [UInt8]) -> [Entry] {
    ordered(((try? parse(bytes, path: "") { _ in }) ?? Contents()).entries)
  }

  /// The entries by their numbers, each once: a file whose fdatasync(2) failed may still be there
  /// beside its copy.
  private static func ordered(_ entries: [Entry]) -> [Entry] {
    var last: UInt64 = 0
    return entries.sorted { $0.sequence < $1.sequence }.filter { entry in
      defer { last = entry.sequence }
      return entry.sequence != last
    }
  }

  /// Writes the sound records of a damaged file to a new file, and renames the damaged one to
  /// `damaged.<number>`.
  /// - Returns: the path of the damaged file.
  private static func putAside(
    _ path: String, _ number: Int, sound: [UInt8]
  ) throws(SystemError) -> String {
    let directory = Files.parent(of: path)
    if !sound.isEmpty {
      try Fresh(directory, (try numbers(in: directory).last ?? number) + 1).write(sound)
    }
    var kept = "\(directory)/damaged.\(number)"
    while try Files.linkStatus(kept) != nil { kept += "a" }
    try Files.rename(path, to: kept)
    return kept
  }

  /// The contents of a file.
  private struct Contents {
    var entries: [Entry] = []
    /// The offsets of its records.
    var records: [Range<Int>] = []
    /// Whether the header is damaged, or bytes that are followed by records.
    var isDamaged = false

    func sound(in bytes: [UInt8]) -> [UInt8] { records.flatMap { bytes[$0] } }
  }

  private static func parse(
    _ bytes: [UInt8], path: String, report: (LogLine) -> Void
  ) throws(SystemError) -> Contents {
    var contents = Contents()
    guard bytes.starts(with: magic), bytes.count >= headerSize else {
      report("\(path): the header is damaged; its records are read where they can be found")
      contents.isDamaged = true
      try read(bytes, from: 0, path, &contents, report)
      return contents
    }
    guard knownVersions.contains(bytes[8]), bytes[9..<12].allSatisfy({ $0 == 0 }) else {
      report("\(path): a journal of another version; use the program that wrote it")
      throw SystemError("read", path, .notSupported)
    }
    try read(bytes, from: headerSize, path, &contents, report)
    return contents
  }

  private static func read(
    _ bytes: [UInt8], from start: Int, _ path: String, _ contents: inout Contents,
    _ report: (LogLine) -> Void
  ) throws(SystemError) {
    var offset = start
    while offset < bytes.count {
      if let (entry, end) = record(bytes, at: offset) {
        contents.entries.append(entry)
        contents.records.append(offset..<end)
        offset = end
        continue
      }
      let last = contents.entries.last?.sequence ?? 0
      guard let next = nextRecord(bytes, after: offset, last) else {
        return report("\(path): the record at offset \(offset) is torn or damaged and left out")
      }
      report(
        LogLine(
          "\(path): from offset \(offset) to \(next) there is damage, which is left out; "
            + "what follows is read"))
      contents.isDamaged = true
      offset = next
    }
  }

  /// The record at the offset, and where it ends; nil where there is no record with a right
  /// checksum.
  private static func record(_ bytes: [UInt8], at offset: Int) -> (entry: Entry, end: Int)? {
    var reader = ByteReader(bytes[offset...])
    guard let length = try? reader.number(UInt32.self), let sum = try? reader.number(UInt32.self),
      let content = try? reader.removeNext(8 + Int(length)), Checksum.crc32c(content) == sum,
      let record = JournalRecord(decoding: content.dropFirst(8))
    else { return nil }
    var head = ByteReader(content.prefix(8))
    guard let sequence = try? head.number(UInt64.self), sequence < 1 << 62 else { return nil }
    return (Entry(sequence: sequence, record: record), offset + 16 + Int(length))
  }

  /// The offset of the next record behind damage; nil if there is none. Bytes of a value can look
  /// like a record, so a record counts only if its number fits, and another record or the end of
  /// the file follows it.
  private static func nextRecord(
    _ bytes: [UInt8], after offset: Int, _ last: UInt64
  ) -> Int? {
    guard bytes.count > offset + 24 else { return nil }
    let limit = last == 0 ? UInt64(1) << 48 : last + 1 << 24
    return (offset + 1..<bytes.count - 24).first { candidate in
      let word = bytes.withUnsafeBytes {
        UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: candidate + 8, as: UInt64.self))
      }
      guard word > last, word < limit, let (_, end) = record(bytes, at: candidate) else {
        return false
      }
      return end == bytes.count || record(bytes, at: end) != nil
    }
  }
}
