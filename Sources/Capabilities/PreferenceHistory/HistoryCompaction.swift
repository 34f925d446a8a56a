import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

extension HistoryRecord {
  /// Nanoseconds in which many changes of a key by a program become one.
  private static let window: Int64 = 600 * 1_000_000_000
  /// How many changes of a key by a program in that time are kept as they are.
  static let most = 8

  /// Changes with an equal row may become one.
  private struct Row: Hashable {
    let key: RecordedKey
    /// By whom, where that matters.
    var via = ChangeSource.Via.unknown
    var program = ""
    var because = ""
    let window: Int64
  }

  private func row(byDay: Bool) -> Row? {
    guard items.count == 1, let item = items.first else { return nil }
    if byDay {
      return Row(key: item.recordedKey, window: time.beginningOfDay.nanoseconds)
    }
    return Row(
      key: item.recordedKey, via: source.via, program: source.program,
      because: source.because,
      window: time.nanoseconds / Self.window)
  }

  /// Makes more than eight changes of one key by one program within ten minutes one, at the place
  /// of the last of them, as long as nobody else has changed the key in between. Changes of several
  /// keys stay as they are.
  /// - Parameter byDay: whether all changes of one key in a day become one, whoever made them; it
  ///   then says who made the last one.
  package static func compacted(
    _ records: [HistoryRecord], byDay: Bool = false
  ) -> [HistoryRecord] {
    let most = byDay ? 1 : most
    var rows: [Row: [Int]] = [:]
    var last: [RecordedKey: Row] = [:]
    var all = records.map(Optional.some)
    func end(_ row: Row) {
      guard let members = rows.removeValue(forKey: row), members.count > most,
        let newest = members.last
      else { return }
      let merged = members.compactMap { all[$0] }
      for index in members { all[index] = nil }
      all[newest] = merged.dropFirst().reduce(merged[0]) { $0.merged(with: $1) }
    }
    for (index, record) in records.enumerated() {
      let row = record.row(byDay: byDay)
      for item in record.items {
        if let known = last[item.recordedKey], known != row { end(known) }
        last[item.recordedKey] = row
      }
      if let row { rows[row, default: []].append(index) }
    }
    for row in rows.keys { end(row) }
    return all.compactMap { $0 }
  }
}

extension HistoryFile.Contents {
  /// The changes of the file.
  var records: [HistoryRecord] {
    entries.compactMap { _, entry in if case .change(let record) = entry { record } else { nil } }
  }
}

extension HistoryRecord {
  /// The record without the values of the domain's keys, or of one key.
  fileprivate func forgetting(_ domain: DomainName, _ key: Key?) -> HistoryRecord {
    let items = items.map { item in
      guard item.location.domain == domain, key.map({ $0 == item.key }) ?? true else { return item }
      let without = { (value: RecordedValue) in value == .none ? value : .notKept }
      return Item(item.location, item.key, from: without(item.before), to: without(item.after))
    }
    var record = HistoryRecord(items, time: time, source: source, count: count)
    (record.number, record.first) = (number, first)
    return record
  }
}

extension HistoryWriter {
  /// Rewrites a file in one step, with fewer records: see `HistoryRecord.compacted`. A file
  /// with damage stays as it is.
  func compact(_ number: UInt64, byDay: Bool = false) throws(SystemError) {
    let path = directory.file(number)
    var contents = try HistoryFile.read(path)
    let records = contents.records
    let kept = HistoryRecord.compacted(records, byDay: byDay)
    guard !contents.isDamaged, byDay || kept.count < records.count else { return }
    contents.isByDay = contents.isByDay || byDay
    try rewrite(path, contents, with: kept)
  }

  /// Days after which a key has one change a day.
  private static let recentDays: Int64 = 30

  /// Leaves one change a day of each key in the files that are old enough and have more. The last
  /// file has just been closed.
  func compactOld(_ now: Timestamp) throws(SystemError) {
    let numbers = try directory.numbers()
    let newest = try numbers.last.flatMap { number throws(SystemError) in
      try Files.linkStatus(directory.file(number))
    }
    let present = Self.present(now, newest: newest.map { Timestamp($0.st_mtim) })
    for number in numbers.dropLast() {
      let path = directory.file(number)
      guard let status = try Files.linkStatus(path) else { continue }
      let age = present.nanoseconds(after: Timestamp(status.st_mtim))
      // The files that follow are younger.
      guard age > Self.recentDays * HistoryMoment.day else { return }
      if try HistoryFile.isByDay(path) { continue }
      // A file of a later version, or one that cannot be read, stays as it is.
      do throws(SystemError) { try compact(number, byDay: true) } catch { continue }
    }
  }

  /// Removes the values of a domain's keys, or of one key, from all files, durably. The present
  /// file is closed.
  /// - Returns: how many records had one.
  public mutating func forget(_ domain: DomainName, _ key: Key?) throws(SystemError) -> Int {
    try close()
    try directory.removeLeftovers()
    var count = 0
    for number in try directory.numbers() {
      let path = directory.file(number)
      let contents = try HistoryFile.read(path)
      var found = 0
      let records = contents.records.map { record in
        let forgotten = record.forgetting(domain, key)
        if forgotten != record { found += 1 }
        return forgotten
      }
      // What is damaged may have a value, too; a gap takes its place.
      if found > 0 || contents.isDamaged { try rewrite(path, contents, with: records) }
      count += found
    }
    return count
  }

  /// Writes a file anew, in one step, with other records.
  private func rewrite(
    _ path: String, _ contents: HistoryFile.Contents, with records: [HistoryRecord]
  ) throws(SystemError) {
    var gaps = contents.entries.compactMap { number, entry in
      if case .gap(let reason) = entry { (number: number, reason: reason) } else { nil }
    }[...]
    var bytes = HistoryFile.header(isByDay: contents.isByDay)
    var known: [ChangeSource: UInt32] = [:]
    for record in records {
      while let gap = gaps.first, gap.number <= record.number {
        HistoryFile.append(gap: gap.reason, before: gap.number, to: &bytes)
        gaps.removeFirst()
      }
      HistoryFile.append(record, &known, to: &bytes)
    }
    for gap in gaps { HistoryFile.append(gap: gap.reason, before: gap.number, to: &bytes) }
    if contents.isDamaged {
      let next = (contents.entries.last?.number ?? 0) + 1
      HistoryFile.append(gap: "the end of a file was damaged", before: next, to: &bytes)
    }
    try replace(path, with: bytes)
  }

  /// Replaces a file in one step: a loss of power leaves the old one or the new one. It keeps its
  /// modification time, by which files are removed.
  private func replace(_ path: String, with bytes: [UInt8]) throws(SystemError) {
    try Files.replaceDurably(path, with: bytes, by: path + HistoryDirectory.temporary) {
      new throws(SystemError) in
      if let old = try Files.linkStatus(path) { try new.setModified(Timestamp(old.st_mtim)) }
    }
  }
}
