import Glibc
import PreferenceModel
import SystemCalls

// What the files of a journal hold, whatever has become of them.

extension Journal {
  /// What the files of a directory hold, oldest first. Throws where a newer program wrote one of
  /// them, and where one cannot be read.
  /// - Parameters:
  ///   - keepsDamaged: whether a damaged file is put aside, so that nothing removes it; the reader
  ///     without the lock changes nothing.
  ///   - report: called with a sentence for each damage.
  static func entries(
    in directory: String, keepsDamaged: Bool, report: (String) -> Void
  ) throws(SystemError) -> [Entry] {
    var entries: [Entry] = []
    for number in try numbers(in: directory) {
      let path = "\(directory)/\(prefix)\(number)"
      guard let status = try Files.linkStatus(path), status.st_mode & S_IFMT == S_IFREG else {
        continue
      }
      let bytes = try Files.contents(path, limit: 1 << 32) ?? []
      // Zeros: the power went before anything of the file was made durable.
      if bytes.count < headerSize || bytes.prefix(headerSize).allSatisfy({ $0 == 0 }) { continue }
      let file = try parse(bytes, path: path, report: report)
      entries += file.entries
      guard file.isDamaged else { continue }
      if keepsDamaged { try putAside(path, number, sound: file.sound(in: bytes)) }
      report("\(directory)/damaged.*: kept for you to look at")
    }
    return ordered(entries)
  }

  /// What one file's bytes hold.
  static func entries(ofFile bytes: [UInt8]) -> [Entry] {
    ordered(((try? parse(bytes, path: "") { _ in }) ?? Contents()).entries)
  }

  /// By number, each once: a file that was doubtful may be there beside the one that replaced it.
  private static func ordered(_ entries: [Entry]) -> [Entry] {
    var last: UInt64 = 0
    return entries.sorted { $0.sequence < $1.sequence }.filter { entry in
      defer { last = entry.sequence }
      return entry.sequence != last
    }
  }

  /// A damaged file is kept under another name; its sound records go on in a new file.
  private static func putAside(
    _ path: String, _ number: Int, sound: [UInt8]
  ) throws(SystemError) {
    let directory = Files.parent(of: path)
    if !sound.isEmpty {
      try Fresh(directory, (try numbers(in: directory).last ?? number) + 1).write(sound)
    }
    var kept = "\(directory)/damaged.\(number)"
    while try Files.linkStatus(kept) != nil { kept += "a" }
    try Files.rename(path, to: kept)
  }

  /// What a file holds.
  private struct Contents {
    var entries: [Entry] = []
    /// Where its records stand.
    var records: [Range<Int>] = []
    /// Whether something in it cannot be read although records stand behind it, or all of it.
    var isDamaged = false

    func sound(in bytes: [UInt8]) -> [UInt8] { records.flatMap { bytes[$0] } }
  }

  private static func parse(
    _ bytes: [UInt8], path: String, report: (String) -> Void
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
    _ report: (String) -> Void
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
        "\(path): from offset \(offset) to \(next) there is damage, which is left out; "
          + "what follows is read")
      contents.isDamaged = true
      offset = next
    }
  }

  /// The record at the offset, and where it ends; nil where there is none with a right sum.
  private static func record(_ bytes: [UInt8], at offset: Int) -> (entry: Entry, end: Int)? {
    var reader = ByteReader(bytes[offset...])
    guard let length = try? reader.number(UInt32.self), let sum = try? reader.number(UInt32.self),
      let content = try? reader.take(8 + Int(length)), Checksum.crc32c(content) == sum,
      let record = JournalRecord(decoding: content.dropFirst(8))
    else { return nil }
    var head = ByteReader(content.prefix(8))
    guard let sequence = try? head.number(UInt64.self), sequence < 1 << 62 else { return nil }
    return (Entry(sequence: sequence, record: record), offset + 16 + Int(length))
  }

  /// Where the next record behind damage stands. Bytes of a value can look like a record: one counts
  /// only if its number fits, and if another record, or the end of the file, follows it.
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
