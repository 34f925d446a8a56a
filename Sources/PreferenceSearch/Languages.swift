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
/// table, however many languages there are. A language whose files do not answer within a second
/// has no values for the rest of that life.
///
/// Threads: any. A call waits at most a second for each language that it reads first. One lock,
/// held for a look; files are read by a thread of `threads`.
final class Languages: Sendable {
  /// The key that lists the languages.
  static let key: Key = "AppleLanguages"

  /// The values of several languages in one table, with the language that each is from.
  final class Table: Sendable {
    /// The languages that have values, the one that wins first.
    let languages: [String]
    private let entries: [Key: (value: StoredValue, language: String)]

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

    /// The keys of all languages.
    var keys: [Key] { Array(entries.keys) }
  }

  private struct State {
    /// The tables of the domains that were asked for.
    var tables: [DomainName: Table] = [:]
    /// The values of the languages that were read.
    var values: [String: ValueDictionary] = [:]
  }

  private let state = Mutex(State())
  private let threads = BlockingThreads(name: "prefs-language", most: 4)
  /// Milliseconds that a look-up waits for the data of a language.
  private static let patience: Int64 = 1000

  /// The table of a domain. Throws what `languages` throws.
  /// - Parameters:
  ///   - isFresh: whether a known table still counts, because changes are heard of.
  ///   - languages: looks up the domain's `AppleLanguages`.
  func table(
    of domain: DomainName, isFresh: Bool, _ languages: () throws(EngineError) -> Value?
  ) throws(EngineError) -> Table {
    if isFresh, let known = state.withLock({ $0.tables[domain] }) { return known }
    var names: [String] = []
    if case .array(let items)? = try languages() {
      names = items.compactMap { if case .string(let name) = $0 { name } else { nil } }
    }
    // More languages than this are a mistake, and each costs a look at the disk.
    let table = Table(names.prefix(64).map { ($0, values(of: $0)) })
    state.withLock { state in
      if state.tables.count > 4096 { state.tables = [:] }
      state.tables[domain] = table
    }
    return table
  }

  /// The values of one language; empty if there is no data of it.
  func values(of language: String) -> ValueDictionary {
    if let known = state.withLock({ $0.values[language] }) { return known }
    let answer = Monitor<ValueDictionary?>(nil)
    let isTaken = threads.run {
      let values = LanguageValues.read(language)
      answer.change { $0 = values }
    }
    guard isTaken else { return [:] }
    let deadline = Instant.now.advanced(milliseconds: Self.patience)
    let values = answer.wait(until: deadline) { $0 } ?? [:]
    state.withLock { $0.values[language] = values }
    return values
  }

  /// Forgets which languages domains have. The values of languages stay.
  func forget() { state.withLock { $0.tables = [:] } }
}
