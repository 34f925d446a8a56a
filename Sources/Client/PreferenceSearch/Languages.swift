import Glibc
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The languages of the search list, which are asked after all lists and before the registered
/// defaults. A domain's languages are those of its key `AppleLanguages`, in order; that key is read
/// without languages.
///
/// Promises: a language's data is read at the first look-up that no earlier place answers, never at
/// the start, and once in the life of the process. A key that no language has costs one look into a
/// table, however many languages there are. A look-up does without a language whose files do not
/// answer in time; once they have answered, later look-ups have its values (`whenLate`).
///
/// Threads: any. A call waits 1 s at most, for all languages that it reads first. One lock,
/// held for a look; files are read by a thread of `threads`.
final class Languages: Sendable {
  /// The key that lists the languages.
  static let key: Key = "AppleLanguages"

  /// The values of several languages in one table, with the language that each is from.
  final class Table: Sendable {
    /// The languages that have values, the one that wins first.
    let languages: [String]
    private let entries: [Key: (value: StoredValue, language: String)]

    /// No language.
    static let none = Table([])

    fileprivate init(_ all: [(language: String, values: ValueDictionary)]) {
      languages = all.filter { !$0.values.isEmpty }.map(\.language)
      var entries: [Key: (value: StoredValue, language: String)] = [:]
      let metadata = Metadata(text: nil, modified: Timestamp(nanoseconds: 0))
      for (language, values) in all.reversed() {
        for (key, value) in values { entries[key] = (StoredValue(value, metadata), language) }
      }
      self.entries = entries
    }

    /// The key's value in the first language that has it; nil if none does.
    func find(_ key: Key) -> Resolution? {
      entries[key].map { Resolution($0.value, location: Location(.language($0.language), .global)) }
    }

    var keys: [Key] { Array(entries.keys) }
  }

  private struct State {
    /// The tables of the domains that were asked for.
    var tables: [DomainName: Table] = [:]
    /// How often they have been forgotten.
    var changes = 0
    /// The values of languages that have been read.
    var values: [String: ValueDictionary] = [:]
    /// The languages that are being read.
    var reading: Set<String> = []
    var late: (@Sendable () -> Void)?
  }

  private let state = Monitor(State())
  private let threads = BlockingThreads(name: "prefs-language", most: 8)
  /// Milliseconds that a look-up waits for all languages of a domain.
  private static let patience: Int64 = 1000

  /// Sets the body that is called, by any thread, when languages that a look-up did not wait for
  /// have been read.
  func whenLate(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.late = body } }

  /// The table of a domain.
  /// - Parameter languages: looks the domain's `AppleLanguages` up.
  func table(
    of domain: DomainName, isFresh: Bool, _ languages: () throws(EngineError) -> Value?
  ) throws(EngineError) -> Table {
    let (known, changes) = state.withLock { ($0.tables[domain], $0.changes) }
    if isFresh, let known { return known }
    let names = try languages()?.strings ?? []
    // More languages than this are a mistake, and each costs a look at the disk.
    let all = Array(names.prefix(64))
    let table = Table(zip(all, values(of: all)).map { ($0, $1) })
    state.withLock { state in
      if state.tables.count > 4096 { state.tables = [:] }
      // A change since the look-up began may concern these languages.
      if state.changes == changes { state.tables[domain] = table }
    }
    return table
  }

  /// The values of a language; empty if there is no data of it.
  func values(of language: String) -> ValueDictionary { values(of: [language])[0] }

  /// The values of languages. Those that are not read in time are empty for now.
  private func values(of languages: [String]) -> [ValueDictionary] {
    for language in languages { read(language) }
    let deadline = Instant.now.advanced(milliseconds: Self.patience)
    let all = state.wait(until: deadline) { state -> [ValueDictionary]? in
      let found = languages.compactMap { state.values[$0] }
      return found.count == languages.count ? found : nil
    }
    return all ?? state.withLock { state in languages.map { state.values[$0] ?? [:] } }
  }

  /// Has a language read that has not been read.
  private func read(_ language: String) {
    let isNew = state.withLock { state in
      state.values[language] == nil && state.reading.insert(language).inserted
    }
    guard isNew else { return }
    let start = Instant.now
    let isTaken = threads.run { [self] in
      let values = LanguageValues.read(language)
      let late = state.change { state in
        state.values[language] = values
        state.reading.remove(language)
        return state.late
      }
      guard Instant.now.nanoseconds(after: start) > Self.patience * 1_000_000 else { return }
      forget()
      late?()
    }
    if !isTaken { state.withLock { _ = $0.reading.remove(language) } }
  }

  /// Forgets which languages domains have.
  func forget() {
    state.withLock { state in
      state.tables = [:]
      state.changes += 1
    }
  }
}
