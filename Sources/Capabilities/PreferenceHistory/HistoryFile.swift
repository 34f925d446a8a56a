import Glibc
import PreferenceModel
import SystemCalls

/// The format of a file of the history: `HistoryFormat.md` describes it.
enum HistoryFile {
  static let magic = Array("PREFHIST".utf8)
  static let version: UInt32 = 1
  static let headerSize = 16
  /// Bytes of the largest file that is read. A file ends after 1 MiB, and what is written at once
  /// has a few MiB at most.
  static let largest = 64 << 20

  /// - Parameter isByDay: whether each key has at most one change a day, apart from changes of
  ///   several keys.
  static func header(isByDay: Bool) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(raw: magic)
    writer.append(version)
    writer.append(isByDay ? 1 : 0 as UInt32)
    return writer.bytes
  }

  /// Whether the header of a file says that it has one change a day of each key.
  static func isByDay(_ path: String) throws(SystemError) -> Bool {
    let file = try Descriptor(opening: path, O_RDONLY)
    var bytes = [UInt8](repeating: 0, count: headerSize)
    let count = pread(file.number, &bytes, headerSize, 0)
    if count < 0 { throw SystemError("pread", path) }
    return isByDay(Array(bytes.prefix(count)))
  }

  private static func isByDay(_ bytes: [UInt8]) -> Bool {
    bytes.count >= headerSize && bytes[12] & 1 != 0
  }

  /// What could be read of a file.
  struct Contents {
    /// The changes and gaps, with the numbers of their records.
    var entries: [(number: UInt64, entry: HistoryDirectory.Entry)] = []
    /// The sources that changes of the file name by their numbers.
    var sources: [UInt32: ChangeSource] = [:]
    /// Bytes of the header and the records that could be read.
    var size = 0
    /// Whether bytes follow that are no record.
    var isDamaged = false
    /// Whether each key has at most one change a day.
    var isByDay = false
  }

  /// Reads a file up to the first record that is damaged. Throws `.notSupported` for a file of a
  /// later version, which must be left alone.
  static func read(_ path: String) throws(SystemError) -> Contents {
    var contents = Contents()
    guard let bytes = try Files.contents(path, limit: largest) else { return contents }
    guard bytes.starts(with: magic), bytes.count >= headerSize else {
      contents.isDamaged = !bytes.isEmpty
      return contents
    }
    guard bytes[8] == 1, bytes[9..<12].allSatisfy({ $0 == 0 }) else {
      throw SystemError("read", path, .notSupported)
    }
    (contents.size, contents.isByDay) = (headerSize, isByDay(bytes))
    while contents.size < bytes.count {
      guard let end = record(bytes, at: contents.size, into: &contents) else {
        contents.isDamaged = true
        break
      }
      contents.size = end
    }
    return contents
  }

  /// Returns how often changes are missing from a file: the gaps in it, and one more if it is
  /// damaged, cannot be read, or is of a later version. Checks checksums, but decodes no change.
  static func gapCount(_ path: String) -> Int {
    guard let bytes = try? Files.contents(path, limit: largest) ?? [] else { return 1 }
    guard !bytes.isEmpty else { return 0 }
    guard bytes.starts(with: magic), bytes.count >= headerSize, bytes[8] == 1 else { return 1 }
    var (count, position) = (0, headerSize)
    while position < bytes.count {
      guard let content = content(bytes, at: position) else { return count + 1 }
      if content.dropFirst(8).first == 3 { count += 1 }
      position = content.endIndex
    }
    return count
  }

  /// Returns the number and payload of the record at the offset; nil if it is damaged.
  private static func content(_ bytes: [UInt8], at offset: Int) -> ArraySlice<UInt8>? {
    var reader = ByteReader(bytes[offset...])
    guard let length = try? reader.number(UInt32.self), let sum = try? reader.number(UInt32.self),
      let content = try? reader.removeNext(8 + Int(length)), Checksum.crc32c(content) == sum
    else { return nil }
    return content
  }

  /// Adds the record at the offset to what was read.
  /// - Returns: where the record ends; nil if there is none.
  private static func record(
    _ bytes: [UInt8], at offset: Int, into contents: inout Contents
  ) -> Int? {
    guard let content = content(bytes, at: offset) else { return nil }
    var payload = ByteReader(content)
    guard let number = try? payload.number(UInt64.self), number < 1 << 62,
      (try? payload.read(number, into: &contents)) != nil
    else { return nil }
    return content.endIndex
  }

  /// Appends a change, and the source that it names, where the file lacks that.
  /// - Parameter known: the numbers of the sources that the file has.
  static func append(
    _ record: HistoryRecord, _ known: inout [ChangeSource: UInt32], to bytes: inout [UInt8]
  ) {
    let source = known[record.source] ?? UInt32(clamping: known.count + 1)
    if known.updateValue(source, forKey: record.source) == nil {
      append(record.number, to: &bytes) {
        $0.append(2 as UInt8)
        $0.append(source)
        $0.append(record.source)
        if !record.source.because.isEmpty { $0.append(counted: record.source.because.utf8) }
      }
    }
    append(record.number, to: &bytes) { $0.append(record, source: source) }
  }

  /// Appends a gap before the change of that number.
  static func append(gap reason: String, before number: UInt64, to bytes: inout [UInt8]) {
    append(number, to: &bytes) {
      $0.append(3 as UInt8)
      $0.append(counted: reason.utf8)
    }
  }

  /// Appends a record to a buffer: length, checksum, number and payload, as in the journal.
  private static func append(
    _ number: UInt64, to buffer: inout [UInt8], _ payload: (inout ByteWriter) -> Void
  ) {
    var writer = ByteWriter()
    writer.append(0 as UInt64)
    writer.append(number)
    payload(&writer)
    writer.overwrite(at: 0, with: UInt32(clamping: writer.count - 16))
    let sum = writer.withBytes { Checksum.crc32c(UnsafeRawBufferPointer(rebasing: $0[8...])) }
    writer.overwrite(at: 4, with: sum)
    buffer += writer.bytes
  }
}

extension ByteWriter {
  /// Appends the payload of a change.
  mutating func append(_ record: HistoryRecord, source: UInt32) {
    append(1 as UInt8)
    append(record.time.nanoseconds)
    append(source)
    append(record.first)
    append(UInt32(clamping: record.count))
    append(UInt32(clamping: record.items.count))
    for item in record.items { append(item) }
  }
}

extension ByteReader {
  /// Adds what the record of that number says to what was read of its file.
  fileprivate mutating func read(
    _ number: UInt64, into contents: inout HistoryFile.Contents
  ) throws {
    switch try self.number(UInt8.self) {
    case 1:
      let (time, source) = (try timestamp(), try self.number(UInt32.self))
      let (first, changes) = (try self.number(UInt64.self), try self.number(UInt32.self))
      let count = try self.number(UInt32.self)
      var items: [HistoryRecord.Item] = []
      for _ in 0..<count { items.append(try historyItem()) }
      var record = HistoryRecord(
        items, time: time, source: contents.sources[source] ?? ChangeSource(.unknown),
        count: Int(max(changes, 1)))
      (record.number, record.first) = (number, min(first, number))
      contents.entries.append((number, .change(record)))
    case 2:
      let id = try self.number(UInt32.self)
      var source = try changeSource()
      if !isAtEnd { source.because = String(decoding: try counted(), as: UTF8.self) }
      contents.sources[id] = source
    case 3:
      contents.entries.append((number, .gap(String(decoding: try counted(), as: UTF8.self))))
    default: throw Unknown()
    }
  }
}
