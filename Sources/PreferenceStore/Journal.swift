import Glibc
import PreferenceModel
import SystemCalls

/// The journal: what was acknowledged and may not be in the lists yet.
///
/// `PreferenceStore.docc/JournalFormat.md` has the layout of the files, what each broken state leads
/// to, and the order in which they are made, emptied and removed.
///
/// Threads: the owner calls everything but `synchronize` under its own lock.
final class Journal {
  private struct Segment: Sendable {
    var path: String
    var size: Int
    var lastSequence: UInt64
    var isSynchronized: Bool
    /// An fdatasync(2) failed: the kernel may have dropped what it could not write, and will not
    /// say so again.
    var isDoubtful = false
  }

  private let directory: String
  private var segments: [Segment]
  private var active: SharedDescriptor
  private var number: Int
  /// Files whose records have been written to others.
  private var obsolete: [String] = []
  /// The number of the last record.
  private(set) var lastSequence: UInt64

  private static let magic = Array("PREFJRNL".utf8)
  private static let version: UInt32 = 3
  /// Versions that are read; a later one only adds to an earlier one.
  private static let knownVersions: ClosedRange<UInt8> = 1...3
  private static let headerSize = 16
  private static let prefix = "journal."
  /// Bytes after which records go to a new file, so that the old one can be removed.
  private static let segmentSize = 1 << 20
  private static let largestSegment = 64 << 20

  /// A record as it was found.
  struct Entry {
    let sequence: UInt64
    let record: JournalRecord
  }

  /// What the files of a directory hold, oldest first.
  /// - Parameters:
  ///   - keepsDamaged: whether a file with records behind a damaged one is put aside, so that
  ///     nothing removes it; the reader without the lock changes nothing.
  ///   - report: called with a sentence for each damage.
  static func entries(
    in directory: String, keepsDamaged: Bool, report: (String) -> Void
  ) throws(SystemError) -> [Entry] {
    var entries: [Entry] = []
    for number in try numbers(in: directory) {
      let path = "\(directory)/\(prefix)\(number)"
      let bytes = try Files.contents(path, limit: 1 << 32) ?? []
      // Zeros: the power went before anything of the file was made durable.
      if bytes.count < headerSize || bytes.prefix(headerSize).allSatisfy({ $0 == 0 }) { continue }
      guard isKnown(bytes) else {
        report("\(path): a journal of another version; use the program that wrote it")
        throw SystemError("read", path, .notSupported)
      }
      if let end = parse(bytes, path: path, into: &entries, report: report) {
        if keepsDamaged { try putAside(path, number, sound: bytes[headerSize..<end]) }
        report("\(directory)/damaged.*: kept for you to look at")
      }
    }
    return ordered(entries)
  }

  /// What one file's bytes hold.
  static func entries(ofFile bytes: [UInt8]) -> [Entry] {
    var entries: [Entry] = []
    _ = parse(bytes, path: "", into: &entries) { _ in }
    return ordered(entries)
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
    _ path: String, _ number: Int, sound: ArraySlice<UInt8>
  ) throws(SystemError) {
    let directory = Files.parent(of: path)
    let fresh = try Fresh(directory, (try numbers(in: directory).last ?? number) + 1)
    try fresh.descriptor.value.write(Array(sound))
    try fresh.descriptor.value.synchronize()
    var kept = "\(directory)/damaged.\(number)"
    while try Files.status(kept) != nil { kept += "a" }
    try Files.rename(path, to: kept)
  }

  /// - Returns: where the damage begins, when records stand behind it, so that the file is kept.
  private static func parse(
    _ bytes: [UInt8], path: String, into entries: inout [Entry], report: (String) -> Void
  ) -> Int? {
    var offset = headerSize
    while offset < bytes.count {
      var reader = ByteReader(bytes[offset...])
      guard let length = try? reader.number(UInt32.self), let sum = try? reader.number(UInt32.self),
        let content = try? reader.take(8 + Int(length)), Checksum.crc32c(content) == sum,
        let record = JournalRecord(decoding: content.dropFirst(8))
      else {
        report(
          "\(path): the record at offset \(offset) is torn or damaged; what follows is left out")
        return isLast(bytes, at: offset) ? nil : offset
      }
      var head = ByteReader(content.prefix(8))
      if let sequence = try? head.number(UInt64.self), sequence < 1 << 62 {
        entries.append(Entry(sequence: sequence, record: record))
      }
      offset += 16 + Int(length)
    }
    return nil
  }

  /// Whether the record at the offset reaches to the end of the file, as a torn one does.
  private static func isLast(_ bytes: [UInt8], at offset: Int) -> Bool {
    var reader = ByteReader(bytes[offset...])
    guard let length = try? reader.number(UInt32.self) else { return true }
    return offset + 16 + Int(length) >= bytes.count
  }

  /// Whether the header is of a version that is read.
  private static func isKnown(_ bytes: [UInt8]) -> Bool {
    bytes.starts(with: magic) && knownVersions.contains(bytes[8])
      && bytes[9..<12].allSatisfy { $0 == 0 }
  }

  private static var header: [UInt8] {
    var writer = ByteWriter()
    for byte in magic { writer.append(byte) }
    writer.append(version)
    writer.append(0 as UInt32)
    return writer.bytes
  }

  private static func numbers(in directory: String) throws(SystemError) -> [Int] {
    (try Files.names(in: directory) ?? []).compactMap { name in
      name.hasPrefix(prefix) ? Int(name.dropFirst(prefix.count)) : nil
    }.sorted()
  }

  /// Opens the journal for appending, after what was found in it.
  init(directory: String, after entries: [Entry]) throws(SystemError) {
    self.directory = directory
    let numbers = try Self.numbers(in: directory)
    lastSequence = entries.last?.sequence ?? 0
    let last = lastSequence
    segments = numbers.map {
      Segment(
        path: "\(directory)/\(Self.prefix)\($0)", size: 0, lastSequence: last, isSynchronized: false
      )
    }
    number = (numbers.last ?? 0) + 1
    let fresh = try Fresh(directory, number)
    active = fresh.descriptor
    append(fresh.path)
  }

  /// A new file with nothing but its header; made without the owner's lock.
  struct Fresh {
    let path: String
    fileprivate let descriptor: SharedDescriptor

    init(_ directory: String, _ number: Int) throws(SystemError) {
      path = "\(directory)/\(prefix)\(number)"
      descriptor = SharedDescriptor(
        try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND))
      try descriptor.value.write(header)
      try Files.synchronizeDirectory(directory)
    }
  }

  private func append(_ path: String) {
    segments.append(
      Segment(
        path: path, size: Self.headerSize, lastSequence: lastSequence, isSynchronized: true))
  }

  /// Appends a record; it survives every process when this returns. On an error (a full disk)
  /// the journal is as it was.
  /// - Returns: the record's number.
  func append(_ record: JournalRecord) throws(SystemError) -> UInt64 {
    if let size = segments.last?.size, size > Self.largestSegment {
      number += 1
      begin(try Fresh(directory, number))
    }
    let last = segments.count - 1
    var writer = ByteWriter()
    writer.append(0 as UInt64)
    writer.append(lastSequence + 1)
    record.encode(into: &writer)
    writer.overwrite(at: 0, with: UInt32(writer.bytes.count - 16))
    writer.overwrite(at: 4, with: Checksum.crc32c(writer.bytes[8...]))
    do {
      try active.value.write(writer.bytes)
    } catch {
      do { try active.value.truncate(to: segments[last].size) } catch {}
      throw error
    }
    lastSequence += 1
    segments[last].size += writer.bytes.count
    segments[last].lastSequence = lastSequence
    segments[last].isSynchronized = false
    return lastSequence
  }

  /// The number of a new file, where the present one is large enough that the next rewrites
  /// should free it.
  func reserveSegment() -> Int? {
    guard let size = segments.last?.size, size > Self.segmentSize else { return nil }
    number += 1
    return number
  }

  /// Records go to the new file from now on.
  func begin(_ fresh: Fresh) {
    active = fresh.descriptor
    append(fresh.path)
  }

  /// Every record up to the number is in the lists. Files that hold no other are to be removed by
  /// the caller, in this order, who then calls `forget`; where there are none, and the present file
  /// holds no other record, it is emptied. It never is before the older ones are gone: they would
  /// come back without what followed them.
  func release(through sequence: UInt64) throws(SystemError) -> [String] {
    let released = segments.dropLast().prefix { $0.lastSequence <= sequence }.map(\.path)
    guard released.isEmpty, segments.count == 1, obsolete.isEmpty else {
      return obsolete + released
    }
    if sequence >= lastSequence, segments[0].size > Self.headerSize {
      try active.value.truncate(to: Self.headerSize)
      segments[0].size = Self.headerSize
    }
    return []
  }

  /// The file has been removed.
  func forget(_ path: String) {
    segments.removeAll { $0.path == path }
    obsolete.removeAll { $0 == path }
  }

  /// The files whose contents are not durable yet. What a doubtful one holds is written once more,
  /// to a new file, which takes its place; the old one stays until `forget`.
  func unsynchronizedPaths() throws(SystemError) -> [String] {
    for index in segments.indices where segments[index].isDoubtful {
      number += 1
      let fresh = try Fresh(directory, number)
      do {
        let bytes = try Files.contents(segments[index].path, limit: 1 << 32) ?? []
        try fresh.descriptor.value.write(Array(bytes.dropFirst(Self.headerSize)))
      } catch {
        obsolete.append(fresh.path)
        throw error
      }
      obsolete.append(segments[index].path)
      segments[index].path = fresh.path
      segments[index].isDoubtful = false
      if index == segments.count - 1 { active = fresh.descriptor }
    }
    return segments.filter { !$0.isSynchronized }.map(\.path)
  }

  /// Notes that the files were made durable up to the record.
  func noteSynchronized(_ paths: [String], through sequence: UInt64) {
    for index in segments.indices
    where paths.contains(segments[index].path) && segments[index].lastSequence <= sequence {
      segments[index].isSynchronized = true
    }
  }

  /// Notes that the file could not be made durable.
  func noteFailure(_ path: String) {
    for index in segments.indices where segments[index].path == path {
      segments[index].isDoubtful = true
    }
  }
}
