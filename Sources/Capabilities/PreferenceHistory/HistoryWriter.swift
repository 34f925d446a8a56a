import Glibc
import PreferenceModel
import SystemCalls

/// Appends to the history of a store.
///
/// Half-broken states: a write that fails is taken back with ftruncate(2), and the records can be
/// written again. What a crash leaves of a record at the end of a file is no record, and the next
/// owner begins a new file. A file of a later version is left alone: nothing is written beside it.
///
/// Threads: one at a time.
public struct HistoryWriter: Sendable {
  let directory: HistoryDirectory
  /// The file that records are appended to; nil before the first record.
  private var file: SharedDescriptor?
  private var size = 0
  /// When the file's first record was written.
  private var begun = Timestamp(nanoseconds: 0)
  /// The numbers of the sources that the file has.
  private var sources: [ChangeSource: UInt32] = [:]
  private var isSynchronized = true
  /// The number of the last change.
  public private(set) var lastNumber: UInt64 = 0
  /// The latest time of a change in the newest files; a change of the journal that is later is not
  /// in the history yet.
  public private(set) var lastTime = Timestamp(nanoseconds: .min)

  /// Bytes, and nanoseconds, after which a new file is begun.
  private static let (fileSize, fileTime) = (1 << 20, Int64(86_400) * 1_000_000_000)

  /// Prepares to append to the directory, which need not exist. Reads the newest file that has a
  /// change, and goes on in it if it is not damaged. A file that cannot be read is left behind.
  /// Throws `.notSupported` if a file is of a later version.
  public init(_ directory: HistoryDirectory) throws(SystemError) {
    self.directory = directory
    let numbers = try directory.numbers()
    for number in numbers.reversed() {
      guard let contents = try Self.read(directory.file(number)) else {
        // How many changes it has is not known. It has fewer than this.
        lastNumber = max(lastNumber, number + 1 << 20)
        continue
      }
      for case (_, .change(let record)) in contents.entries {
        lastNumber = max(lastNumber, record.number)
        lastTime = max(lastTime, record.time)
      }
      if number == numbers.last { resume(contents, directory.file(number)) }
      if lastTime.nanoseconds != .min { return }
    }
  }

  /// Reads a file; nil where that fails.
  private static func read(_ path: String) throws(SystemError) -> HistoryFile.Contents? {
    do throws(SystemError) {
      return try HistoryFile.read(path)
    } catch {
      if error.errno == .notSupported { throw error }
      return nil
    }
  }

  /// Goes on in a file, if it can be opened.
  private mutating func resume(_ contents: HistoryFile.Contents, _ path: String) {
    guard !contents.isDamaged, contents.size >= HistoryFile.headerSize,
      let opened = try? Descriptor(opening: path, O_WRONLY | O_APPEND)
    else { return }
    (file, size) = (SharedDescriptor(opened), contents.size)
    begun = contents.records.first?.time ?? .now
    for (id, source) in contents.sources { sources[source] = id }
  }

  /// Appends changes, and numbers them, with one write(2). They survive the end of every process
  /// when this returns. After an error nothing was appended.
  /// - Parameter gap: why changes before these are missing; nil if none are.
  /// - Returns: whether a new file was begun.
  public mutating func append(
    _ records: [HistoryRecord], after gap: String? = nil
  ) throws(SystemError) -> Bool {
    guard !records.isEmpty || gap != nil else { return false }
    let isNew = try begin(records.first?.time ?? .now)
    guard let file else { return false }
    var (bytes, number, known) = ([UInt8](), lastNumber, sources)
    if let gap { HistoryFile.append(gap: gap, before: number + 1, to: &bytes) }
    for var record in records {
      record.first = number + 1
      number += UInt64(clamping: max(record.count, 1))
      record.number = number
      HistoryFile.append(record, &known, to: &bytes)
    }
    do {
      try file.value.write(bytes)
    } catch {
      do { try file.value.truncate(to: size) } catch { self.file = nil }
      throw error
    }
    (lastNumber, sources, isSynchronized) = (number, known, false)
    for record in records { lastTime = max(lastTime, record.time) }
    size += bytes.count
    return isNew
  }

  /// Begins a new file where there is none, or it is large or old enough.
  /// - Returns: whether it has begun one.
  private mutating func begin(_ time: Timestamp) throws(SystemError) -> Bool {
    if let file, (try? file.value.status().st_nlink) == 0 { self.file = nil }
    // A clock that was set back ends a file of the future too.
    let age = time.nanoseconds(after: begun)
    let isOver = size > Self.fileSize || age.magnitude > Self.fileTime.magnitude
    guard file == nil || isOver else { return false }
    try synchronize()
    let last = try directory.numbers().last ?? 0
    // Nothing depends on it: a file that cannot be rewritten stays as it is.
    do {
      try compact(last)
      try compactOld(time)
    } catch {}
    // The state directory itself is made anew by the store, with all that belongs to it.
    if Files.isDirectory(Files.parent(of: directory.path)) {
      try Files.makeDirectories(directory.path, mode: 0o700)
    }
    lastNumber = max(lastNumber, last)
    let fresh = SharedDescriptor(
      try Descriptor(
        opening: directory.file(lastNumber + 1), O_WRONLY | O_CREAT | O_EXCL | O_APPEND))
    do throws(SystemError) {
      try fresh.value.write(HistoryFile.header(isByDay: false))
      try Files.synchronizeDirectory(directory.path)
    } catch {
      do { try Files.remove(directory.file(lastNumber + 1)) } catch {}
      throw error
    }
    (file, size, begun, sources) = (fresh, HistoryFile.headerSize, time, [:])
    return true
  }

  /// Closes the file: the next change begins a new one.
  mutating func close() throws(SystemError) {
    try synchronize()
    file = nil
  }

  /// Makes what was appended survive a loss of power.
  public mutating func synchronize() throws(SystemError) {
    guard !isSynchronized, let file else { return }
    try file.value.synchronize()
    isSynchronized = true
  }

  /// The time from which the age of files is counted: now, but at most a day after the last change
  /// of the newest file that is closed. A clock that is wrong for a moment makes no file old.
  static func present(_ now: Timestamp, newest: Timestamp?) -> Timestamp {
    guard let newest else { return now }
    let (latest, isLater) = newest.nanoseconds.addingReportingOverflow(fileTime)
    return isLater ? now : min(now, Timestamp(nanoseconds: latest))
  }

  /// Removes the oldest files while the history has more bytes, or changes that are older
  /// (`present`). The file that is written to stays.
  /// - Parameters:
  ///   - bytes: the most bytes of all files.
  ///   - days: the most days since the last change of a file.
  public func prune(bytes: Int, days: Int, now: Timestamp) throws(SystemError) {
    var files: [(path: String, size: Int, changed: Timestamp)] = []
    for number in try directory.numbers() {
      let path = directory.file(number)
      guard let status = try Files.linkStatus(path) else { continue }
      files.append((path, Int(status.st_size), Timestamp(status.st_mtim)))
    }
    var total = files.reduce(0) { $0 + $1.size }
    let present = Self.present(now, newest: files.dropLast().last?.changed)
    let oldest = Int64(clamping: days).multipliedReportingOverflow(by: 86_400_000_000_000)
    for file in files.dropLast() {
      let isOld = !oldest.overflow && present.nanoseconds(after: file.changed) > oldest.partialValue
      guard total > bytes || isOld else { return }
      try Files.remove(file.path)
      total -= file.size
    }
  }

  /// Removes the whole history. Numbers go on from the last one.
  public mutating func removeAll() throws(SystemError) {
    file = nil
    for number in try directory.numbers() { try Files.remove(directory.file(number)) }
    try directory.removeLeftovers()
    if rmdir(directory.path) != 0, errno != ENOENT, errno != ENOTEMPTY {
      throw SystemError("rmdir", directory.path)
    }
  }
}
