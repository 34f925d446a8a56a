import Glibc
import PreferenceModel
import SystemCalls

/// The journal: the changes that were acknowledged and may not be in the lists yet.
///
/// `PreferenceStore.docc/JournalFormat.md` has the layout of the files, what each broken state
/// leads to, and the order in which they are made, emptied and removed.
///
/// Threads: none of its own, and no lock. The store calls every method and property under its lock
/// `state`. `Fresh`, and the functions that read files (`read`, `numbers`), need no lock. The
/// store calls fdatasync(2) itself, on the paths of `unsynchronizedPaths` and without its lock.
final class Journal {
  /// One file of the journal.
  private struct Segment: Sendable {
    var path: String
    var size: Int
    var lastSequence: UInt64
    var isSynchronized: Bool
    /// Whether an fdatasync(2) of the file failed: the kernel may have dropped pages that it could
    /// not write, and does not report that a second time.
    var isDoubtful = false
    /// The file that had the name when this process made or found it.
    var file: FileNumber?

    /// Whether the name still means that file.
    var isInPlace: Bool { file != nil && file == FileNumber(path) }
  }

  /// Which file it is (st_dev and st_ino).
  private struct FileNumber: Equatable, Sendable {
    let device: dev_t
    let inode: ino_t

    init?(_ path: String) {
      guard let status = try? Files.linkStatus(path) else { return nil }
      (device, inode) = (status.st_dev, status.st_ino)
    }
  }

  private let directory: String
  private var segments: [Segment]
  /// The file that records are appended to: the last segment. nil before the first record, because
  /// a store must be readable while its disk is full.
  private var active: SharedDescriptor?
  /// The number of the newest file, also of one that is only reserved.
  private var number: Int
  /// Files whose records were copied to other files, each with its copy; nil if it needs none.
  private var obsolete: [(path: String, copy: String?)] = []
  /// The memory for records, which is used again.
  private var buffer = ByteWriter()
  /// Bytes of all files.
  var byteCount: Int { segments.reduce(0) { $0 + $1.size } }
  /// The number of the last record.
  private(set) var lastSequence: UInt64

  static let magic = Array("PREFJRNL".utf8)
  private static let version: UInt32 = 5
  /// The versions that can be read: one reader reads them all.
  static let knownVersions: ClosedRange<UInt8> = 1...5
  static let headerSize = 16
  static let prefix = "journal."
  private static let largestNumber = 1 << 48
  /// Bytes after which the next rewrite of a list begins a new file, so that this one can be
  /// removed.
  private static let segmentSize = 1 << 20
  /// Bytes after which the next record begins a new file.
  private static let largestSegment = 64 << 20

  /// A record and its number, as they were read.
  struct Entry {
    let sequence: UInt64
    let record: JournalRecord
  }

  /// What the files of a directory hold.
  struct Replay {
    /// The records of all files, in the order of their numbers, each once.
    var entries: [Entry] = []
    /// The number of the last record of each file that could be read, by the file's number; 0 if it
    /// has none.
    var ends: [Int: UInt64] = [:]
  }

  private static var header: [UInt8] {
    var writer = ByteWriter()
    for byte in magic { writer.append(byte) }
    writer.append(version)
    writer.append(0 as UInt32)
    return writer.bytes
  }

  /// The numbers of the journal files in a directory, ascending. Numbers beyond 2^48 are left out:
  /// no journal reaches them, so this program did not make those files.
  static func numbers(in directory: String) throws(SystemError) -> [Int] {
    (try Files.names(in: directory) ?? []).compactMap { name in
      guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)) else {
        return nil
      }
      return (1...largestNumber).contains(number) ? number : nil
    }.sorted()
  }

  /// A journal that goes on after what was read from its files. It makes no file before the first
  /// record. Each file is released on its own, when its last record is.
  init(directory: String, after replay: Replay) throws(SystemError) {
    self.directory = directory
    let numbers = try Self.numbers(in: directory)
    lastSequence = replay.entries.last?.sequence ?? 0
    let last = lastSequence
    segments = numbers.map { number in
      let path = "\(directory)/\(Self.prefix)\(number)"
      let size = (try? Files.linkStatus(path)).map { Int(clamping: $0.st_size) } ?? 0
      return Segment(
        path: path, size: size, lastSequence: replay.ends[number] ?? last, isSynchronized: false,
        file: FileNumber(path))
    }
    number = numbers.last ?? 0
  }

  /// A journal in the place of one whose newest file is gone. Its records are numbered on from the
  /// old one's. Older files that are still there stay its files: they are released as before.
  init(directory: String, after lost: borrowing Journal) throws(SystemError) {
    self.directory = directory
    lastSequence = lost.lastSequence
    segments = lost.segments.filter(\.isInPlace)
    number = max(lost.number, try Self.numbers(in: directory).last ?? 0)
  }

  /// Removes the files that this journal has made, where it does not take the place of the lost
  /// journal after all: the next one would use the same numbers for its records.
  func discard(since lost: borrowing Journal) {
    let kept = Set(lost.segments.map(\.path))
    for segment in segments where !kept.contains(segment.path) {
      do { try Files.remove(segment.path) } catch {}
    }
  }

  /// Whether the file that records are appended to still has its name. Cost: a stat(2).
  var isInPlace: Bool {
    active == nil || segments.last?.isInPlace != false
  }

  /// A new file that has only its header. Making one needs no lock.
  struct Fresh {
    let path: String
    fileprivate let number: Int
    fileprivate let descriptor: SharedDescriptor

    /// Makes the file. Its name is durable when this returns (fsync(2) of the directory).
    init(_ directory: String, _ number: Int) throws(SystemError) {
      self.number = number
      path = "\(directory)/\(prefix)\(number)"
      descriptor = SharedDescriptor(
        try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND))
      do throws(SystemError) {
        try descriptor.value.write(header)
        try Files.synchronizeDirectory(directory)
      } catch {
        do { try Files.remove(path) } catch {}
        throw error
      }
    }

    /// Writes records to a file that is not the journal's yet, and makes them durable.
    func write(_ bytes: [UInt8]) throws(SystemError) {
      try descriptor.value.write(bytes)
      try descriptor.value.synchronize()
    }
  }

  private func append(_ path: String) {
    segments.append(
      Segment(
        path: path, size: Self.headerSize, lastSequence: lastSequence, isSynchronized: true,
        file: FileNumber(path)))
  }

  /// Appends a record. When this returns, the record survives the end of every process. After an
  /// error (a full disk) the journal is as it was. Where write(2) returns after the deadline, the
  /// record is taken back and the error is ETIMEDOUT. If the file cannot be cut off again (EIO),
  /// the next owner may find the record in it; later ones go to a new file.
  /// - Returns: the record's number.
  func append(
    _ record: JournalRecord, until deadline: Instant? = nil
  ) throws(SystemError) -> UInt64 {
    let isFull = (segments.last?.size ?? 0) > Self.largestSegment
    if active == nil || isFull { begin(try Fresh(directory, number + 1)) }
    guard let active else { throw SystemError("write", directory, .inputOutput) }
    let last = segments.count - 1
    // Taken out, because each access to a property of an object is checked.
    var writer = ByteWriter()
    swap(&writer, &buffer)
    defer {
      writer.removeAll()
      buffer = writer
    }
    writer.append(0 as UInt64)
    writer.append(lastSequence + 1)
    record.encode(into: &writer)
    writer.overwrite(at: 0, with: UInt32(clamping: writer.count - 16))
    let sum = writer.withBytes { Checksum.crc32c(UnsafeRawBufferPointer(rebasing: $0[8...])) }
    writer.overwrite(at: 4, with: sum)
    do throws(SystemError) {
      try writer.withBytes { bytes throws(SystemError) in try active.value.write(bytes) }
      if let deadline, deadline <= .now {
        throw SystemError("write", segments[last].path, .timedOut)
      }
    } catch {
      do throws(SystemError) {
        try active.value.truncate(to: segments[last].size)
      } catch {
        // What is in the file now stays in it: the next record gets another file, and number.
        lastSequence += 1
        segments[last].lastSequence = lastSequence
        self.active = nil
      }
      throw error
    }
    lastSequence += 1
    assert(segments[last].lastSequence < lastSequence, "the numbers of records grow")
    segments[last].size += writer.count
    segments[last].lastSequence = lastSequence
    segments[last].isSynchronized = false
    return lastSequence
  }

  /// Reserves the number of a new file, where the present one has grown beyond 1 MiB; nil if it has
  /// not.
  func reserveSegment() -> Int? {
    guard active != nil, let size = segments.last?.size, size > Self.segmentSize else { return nil }
    number += 1
    return number
  }

  /// The number of the last record that is not in the present file.
  var endOfClosedFiles: UInt64 {
    (active == nil ? segments[...] : segments.dropLast()).map(\.lastSequence).max() ?? 0
  }

  /// Makes the new file the one that records are appended to.
  func begin(_ fresh: Fresh) {
    number = max(number, fresh.number)
    active = fresh.descriptor
    append(fresh.path)
  }

  /// Releases the records up to the number, which nobody needs any more.
  ///
  /// Where that leaves the present file alone and without a needed record, the file is emptied down
  /// to its header. It is never emptied while older files exist: after a crash their records would
  /// be replayed without those that followed them.
  /// - Returns: the files that hold no needed record. The caller removes them in this order, and
  ///   calls `forget` for each.
  func release(through sequence: UInt64) throws(SystemError) -> [String] {
    let closed = active == nil ? segments[...] : segments.dropLast()
    let released = closed.prefix { $0.lastSequence <= sequence }.map(\.path)
    guard released.isEmpty, segments.count == 1, obsolete.isEmpty, let active else {
      return removableCopied + released
    }
    if sequence >= lastSequence, segments[0].size > Self.headerSize {
      try active.value.truncate(to: Self.headerSize)
      segments[0].size = Self.headerSize
      segments[0].isSynchronized = false
    }
    return []
  }

  /// The copied files whose copies are durable, or gone. Until then such a file may be the only one
  /// that a loss of power leaves.
  private var removableCopied: [String] {
    let doubtful = Set(segments.filter { !$0.isSynchronized }.map(\.path))
    return obsolete.filter { $0.copy.map { !doubtful.contains($0) } ?? true }.map(\.path)
  }

  /// Forgets a file that has been removed.
  func forget(_ path: String) {
    segments.removeAll { $0.path == path }
    obsolete.removeAll { $0.path == path }
  }

  /// The files whose contents are not durable yet. The records of a file whose fdatasync(2) failed
  /// are first copied to a new file, which takes its place; the old file stays until `release`
  /// gives it to be removed.
  func unsynchronizedPaths() throws(SystemError) -> [String] {
    for index in segments.indices where segments[index].isDoubtful {
      number += 1
      let fresh = try Fresh(directory, number)
      do {
        let bytes = try Files.contents(segments[index].path, limit: 1 << 32) ?? []
        try fresh.descriptor.value.write(Array(bytes.dropFirst(Self.headerSize)))
      } catch {
        obsolete.append((fresh.path, nil))
        throw error
      }
      let old = segments[index].path
      for other in obsolete.indices where obsolete[other].copy == old {
        obsolete[other].copy = fresh.path
      }
      obsolete.append((old, fresh.path))
      segments[index].path = fresh.path
      segments[index].file = FileNumber(fresh.path)
      segments[index].isDoubtful = false
      // A file that could not be cut off stays closed.
      if index == segments.count - 1, active != nil { active = fresh.descriptor }
    }
    return segments.filter { !$0.isSynchronized }.map(\.path)
  }

  /// Notes that the files are durable up to the record of that number.
  func noteSynchronized(_ paths: [String], through sequence: UInt64) {
    for index in segments.indices
    where paths.contains(segments[index].path) && segments[index].lastSequence <= sequence {
      segments[index].isSynchronized = true
    }
  }

  /// Notes that fdatasync(2) of the file failed.
  func noteFailure(_ path: String) {
    for index in segments.indices where segments[index].path == path {
      segments[index].isDoubtful = true
    }
  }
}
