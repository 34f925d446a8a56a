/// The rows in the order of their names, and those that the filter shows, the best ones first.
struct EntryTable: Sendable {
  /// All rows, by domain and key.
  private(set) var all: [Entry] = []
  /// The positions of those that are shown.
  private(set) var shown: [Int32] = []
  private(set) var query = Query("")
  /// What the filter searches, of all rows and of some that are gone.
  private var texts: [UInt8] = []
  /// The bytes of those that are gone.
  private var unused = 0
  /// The keys that have a mark by `mark` or `noteChanges`.
  private var given: [Entry.Marks: Set<EntryID>] = [:]

  var count: Int { shown.count }

  /// The row at a position of what is shown; nil if there is none.
  func row(_ position: Int) -> Entry? {
    shown.indices.contains(position) ? all[Int(shown[position])] : nil
  }

  /// The row of a key. Cost: a binary search.
  subscript(id: EntryID) -> Entry? {
    let index = index(of: id)
    return index < all.count && all[index].id == id ? all[index] : nil
  }

  /// Where a key is among those that are shown. Cost: O(what is shown).
  func position(of id: EntryID) -> Int? {
    let index = Int32(clamping: index(of: id))
    guard Int(index) < all.count, all[Int(index)].id == id else { return nil }
    return shown.firstIndex(of: index)
  }

  /// Where a key is, or would be, among all.
  private func index(of id: EntryID) -> Int {
    var (low, high) = (0, all.count)
    while low < high {
      let middle = (low + high) / 2
      if all[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Shows what fits a query. Cost: O(rows), or of what is shown if the query narrows the last one.
  mutating func filter(_ new: Query) {
    let isWithin = new.narrows(query)
    query = new
    show(isWithin ? shown.sorted() : Array(Int32(0)..<Int32(clamping: all.count)))
  }

  private mutating func show(_ candidates: [Int32]) {
    if query.isEmpty { return shown = candidates }
    var ranked = Array(repeating: [Int32](), count: Query.ranks)
    // In place: a copy of a row costs more than the search in it.
    all.withUnsafeBufferPointer { all in
      texts.withUnsafeBytes { texts in
        for index in candidates {
          let rank = query.rank(all[Int(index)].marks, all[Int(index)].text, texts)
          if let rank { ranked[rank].append(index) }
        }
      }
    }
    shown = ranked.flatMap { $0 }
  }

  /// Adds rows, replaces those of the same keys, and removes others. Cost: O(rows).
  mutating func merge(_ new: [Entry], removing gone: [EntryID] = []) {
    var added: [Entry] = []
    for var entry in new {
      let index = index(of: entry.id)
      for (mark, keys) in given where keys.contains(entry.id) { entry.set(mark, true) }
      entry.moveText(to: &texts)
      guard index < all.count, all[index].id == entry.id else {
        added.append(entry)
        continue
      }
      unused += Int(all[index].text.count)
      all[index] = entry
    }
    if !gone.isEmpty {
      let gone = Set(gone)
      for entry in all where gone.contains(entry.id) { unused += Int(entry.text.count) }
      all.removeAll { gone.contains($0.id) }
    }
    add(added)
    if unused > 1 << 20, unused > texts.count / 2 { compact() }
    show(Array(Int32(0)..<Int32(clamping: all.count)))
  }

  /// Has `merge` mark those of the rows as changed that are new, or have another value than before:
  /// one that inherits may be read again, and be the same.
  /// - Parameter isLoaded: whether all rows are there. If not, one that is missing may be as it was.
  mutating func noteChanges(in new: [Entry], isLoaded: Bool = true) {
    let changed = new.filter { entry in
      self[entry.id].map { $0.hash != entry.hash || $0.source != entry.source } ?? isLoaded
    }
    given[.changed, default: []].formUnion(changed.map(\.id))
  }

  /// Adds rows of new keys. Most come in order, and behind all others.
  private mutating func add(_ new: [Entry]) {
    var new = new
    if !zip(new, new.dropFirst()).allSatisfy({ $0.id < $1.id }) {
      let last = Dictionary(new.map { ($0.id, $0) }) { $1 }
      new = last.values.sorted { $0.id < $1.id }
    }
    let isBehind = zip(all.suffix(1), new).allSatisfy { $0.id < $1.id }
    all += new
    if !isBehind { all.sort { $0.id < $1.id } }
  }

  private mutating func compact() {
    var kept: [UInt8] = []
    for index in all.indices { all[index].copyText(from: texts, to: &kept) }
    (texts, unused) = (kept, 0)
  }

  /// Marks exactly these keys, also those that are added later. Cost: O(keys that gain or lose the
  /// mark), and what `filter` costs.
  mutating func mark(_ mark: Entry.Marks, _ keys: Set<EntryID>) {
    let old = given.updateValue(keys, forKey: mark) ?? []
    if old == keys { return }
    for id in old.symmetricDifference(keys) {
      let index = index(of: id)
      guard index < all.count, all[index].id == id else { continue }
      all[index].set(mark, keys.contains(id))
    }
    if !query.isEmpty { show(Array(Int32(0)..<Int32(clamping: all.count))) }
  }
}
