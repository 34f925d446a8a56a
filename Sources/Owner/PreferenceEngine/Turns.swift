import PreferenceModel
import PropertyList
import SystemCalls

/// Notices keys that two writers change in turns, more than ten times in ten seconds: two programs
/// that answer each other's changes for ever, perhaps on two machines. Each such key is named once.
///
/// It knows 1,024 keys at most, and forgets all of them at the next one; a change of more than 64
/// keys is no answer, and not looked at. Cost: a hash look-up for each key.
struct Turns {
  /// Who makes a change.
  struct Writer: Hashable {
    private let name: String
    private let number: UInt64

    /// The writer of a change. All processes of a command are one writer, because each makes one
    /// change.
    init(_ source: ChangeSource, by author: Author) {
      name = source.program.isEmpty ? "\(source.via)" : source.program
      if source.via == .command {
        number = 0
      } else {
        number = source.process > 0 ? UInt64(source.process) : author.number
      }
    }

    /// What the log calls it.
    var text: String { name.printable() }
  }

  /// A key that two writers change in turns.
  struct Quarrel: Equatable {
    let domain: DomainName
    let key: Key
    /// Both writers.
    let writers: [String]

    /// What the log says.
    var sentence: String {
      "\(domain) \(key): \(writers.joined(separator: " and ")) change it in turns, more than ten "
        + "times in 10 s; does each answer the other?"
    }

    /// What `status.json` says.
    var report: Value {
      [
        "domain": .string(domain.string), "key": .string(key.string),
        "writers": .array(writers.map { .string($0) }),
      ]
    }
  }

  private struct Subject: Hashable {
    let domain: DomainName
    let key: Key
  }

  private struct Entry {
    var last: Writer
    var other: Writer?
    /// When `last` and `other` took turns.
    var turns: [Instant] = []
  }

  private var entries: [Subject: Entry] = [:]
  /// The keys that were named, 100 at most.
  private(set) var quarrels: [Quarrel] = []
  private static let (mostKeys, mostItems, mostTurns, mostNamed) = (1024, 64, 10, 100)
  private static let span: Int64 = 10_000

  /// Notes a change.
  /// - Returns: the keys that are to be named.
  mutating func note(
    _ items: [Changeset.Item], by writer: Writer, at now: Instant
  ) -> [Quarrel] {
    guard items.count <= Self.mostItems else { return [] }
    return items.compactMap { item in
      guard item.location.place.isOwn, let key = item.edit.key else { return nil }
      if case .describe = item.edit { return nil }
      return note(Subject(domain: item.location.domain, key: key), by: writer, at: now)
    }
  }

  private mutating func note(_ subject: Subject, by writer: Writer, at now: Instant) -> Quarrel? {
    guard var entry = entries[subject] else {
      if entries.count >= Self.mostKeys { entries = [:] }
      entries[subject] = Entry(last: writer)
      return nil
    }
    if entry.last == writer { return nil }
    // A third writer begins anew.
    let known = entry.other == writer ? entry.turns : []
    let recent = known.drop { now.milliseconds(after: $0) > Self.span }
    entry = Entry(last: writer, other: entry.last, turns: recent + [now])
    entries[subject] = entry
    guard entry.turns.count > Self.mostTurns else { return nil }
    entries[subject] = nil
    let isNamed = quarrels.contains { $0.domain == subject.domain && $0.key == subject.key }
    guard quarrels.count < Self.mostNamed, !isNamed else { return nil }
    let writers = [entry.other, entry.last].compactMap { $0?.text }.sorted()
    quarrels.append(Quarrel(domain: subject.domain, key: subject.key, writers: writers))
    return quarrels.last
  }
}
