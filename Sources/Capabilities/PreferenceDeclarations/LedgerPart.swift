import PreferenceModel
import PropertyList

/// The keys of a ledger that concern some declarations, as they are in the store: an apply costs
/// what it declares, and not what is declared besides.
///
/// Promises: a change of the ledger (`changes`) expects every key that was read, absent ones too.
/// Two declarations that name the same domain both change the key of that domain, or the document
/// that the other one has read; so neither is made without knowing of the other. A document that
/// somebody has put into the ledger by hand is not known of before it is declared.
struct LedgerPart {
  /// The keys that there are, with their values.
  private(set) var values: ValueDictionary = [:]
  /// The keys that were read.
  private var keys: Set<Key> = []
  /// The domains that the part is about; nil if it is the whole ledger.
  private var domains: Set<DomainName>?

  /// Reads the documents of the names, and what there is of their domains and of the others: what
  /// was there before, and the documents that declare something of them. Where an earlier version
  /// has written the ledger it is read as a whole, and the next change writes it in the present
  /// form. Cost: a look-up for each name and domain.
  init(
    of names: Set<String>, _ others: Set<DomainName>, at location: Location,
    in places: some StoredPlaces
  ) throws(EngineError) {
    for key in [Ledger.beforeKey, Ledger.textsKey] {
      guard try places.find(key, at: location) != nil else { continue }
      values = try places.values(at: location)
      keys = Set(values.keys)
      return
    }
    var domains = others
    var near: Set<String> = []
    func read(_ key: Key) throws(EngineError) -> Value? {
      guard keys.insert(key).inserted else { return values[key] }
      let value = try places.find(key, at: location)?.value
      values[key] = value
      return value
    }
    for key in Ledger.commonKeys { _ = try read(key) }
    for name in names {
      let document = try read(Key(name))?.dictionary ?? [:]
      domains.formUnion(document.keys.map { DomainName(named: $0.string) })
      let deadlines = values[Ledger.deadlinesKey]?.dictionary
      domains.formUnion(
        Deadline(deadlines?[Key(name)])?.former?.document.keys.map { DomainName($0.string) } ?? [])
      for ending in Ledger.Text.endings { _ = try read(Ledger.textKey(name + ending)) }
    }
    for domain in domains { near.formUnion(Ledger.names(in: try read(Ledger.key(of: domain)))) }
    for name in near { _ = try read(Key(name)) }
    self.domains = domains
  }

  /// The intents that make the ledger the given one, and those that expect it to be as it was read.
  func changes(
    to ledger: Ledger, at location: Location
  ) -> (expected: [Intent], edits: [Intent], isEmptied: Bool) {
    let after = ledger.values(of: domains)
    let all = keys.union(after.keys).sorted()
    let edits = all.filter { values[$0] != after[$0] }.map { key in
      let edit: Edit = after[key].map { .set(key, $0, .canonical) } ?? .remove(key)
      return Intent.edit(location, edit)
    }
    return (
      all.map { .expect($0, location, values[$0]) }, edits, after.isEmpty && !values.isEmpty
    )
  }
}
