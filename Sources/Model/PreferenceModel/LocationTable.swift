/// What is kept of many locations. That of one domain lies side by side, because a look-up asks
/// several places of a domain: all of them together cost one hash.
@usableFromInline package struct LocationTable<Contents> {
  @usableFromInline struct Entry {
    @usableFromInline let place: Place
    @usableFromInline var contents: Contents

    @inlinable init(_ place: Place, _ contents: Contents) {
      (self.place, self.contents) = (place, contents)
    }
  }

  /// What a search has found.
  @usableFromInline package enum Finding<Found> {
    /// Nothing is kept of this location, and none before it has what is searched for.
    case unknown(Location)
    case nothing
    case found(Found, Location)
  }

  @usableFromInline var rows: [DomainName: [Entry]] = [:]

  /// An empty table.
  @inlinable package init() {}

  /// The contents of a location; nil if there are none. A change in place copies nothing.
  @inlinable package subscript(location: Location) -> Contents? {
    get {
      guard let row = rows[location.domain], let index = Self.index(of: location.place, in: row)
      else { return nil }
      return row[index].contents
    }
    _modify {
      var contents = take(location)
      defer { put(contents, location) }
      yield &contents
    }
  }

  /// Calls the body with the contents of a location, without a copy; nil if there are none.
  @inlinable package func read<Result, Failure: Error>(
    _ location: Location, _ body: (borrowing Contents) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let row = rows[location.domain], let index = Self.index(of: location.place, in: row)
    else { return nil }
    return try body(row[index].contents)
  }

  /// Returns what the body finds in the first of the locations in which it finds something. Cost: a
  /// hash for each run of locations of one domain, and a call of the body for each location.
  @inlinable package func findFirst<Found, Failure: Error>(
    in locations: [Location], _ body: (Location, borrowing Contents) throws(Failure) -> Found?
  ) throws(Failure) -> Finding<Found> {
    var row: [Entry] = []
    var domain: DomainName?
    for location in locations {
      if location.domain != domain {
        (row, domain) = (rows[location.domain] ?? [], location.domain)
      }
      guard let index = Self.index(of: location.place, in: row) else { return .unknown(location) }
      if let found = try body(location, row[index].contents) { return .found(found, location) }
    }
    return .nothing
  }

  /// Whether the domain has contents in each of the places. Cost: one hash.
  @inlinable package func has(_ domain: DomainName, in places: [Place]) -> Bool {
    guard let row = rows[domain] else { return places.isEmpty }
    // The places of a search list are mostly side by side: each is looked for behind the last one.
    var next = 0
    return places.allSatisfy { place in
      guard let index = Self.index(of: place, in: row, from: next) else { return false }
      next = index + 1
      return true
    }
  }

  /// All locations, in no order. Cost: O(locations), without a copy of any contents.
  package var locations: [Location] {
    rows.flatMap { domain, row in row.map { Location($0.place, domain) } }
  }

  /// Calls the body with all contents, or those of one place, in no order. Cost: O(domains), without
  /// a copy of any contents.
  @inlinable package func forEach(
    in place: Place? = nil, _ body: (Location, borrowing Contents) -> Void
  ) {
    for (domain, row) in rows {
      for index in row.indices where place == nil || row[index].place == place {
        body(Location(row[index].place, domain), row[index].contents)
      }
    }
  }

  /// Where the place is in the row. It looks at one after the other, those from `start` on first: a
  /// domain has few places.
  @inlinable static func index(of place: Place, in row: [Entry], from start: Int = 0) -> Int? {
    var index = start
    for _ in 0..<row.count {
      if index == row.count { index = 0 }
      if row[index].place == place { return index }
      index += 1
    }
    return nil
  }

  @inlinable func index(of location: Location) -> Int? {
    rows[location.domain].flatMap { Self.index(of: location.place, in: $0) }
  }

  /// Moves the contents out, so that changing them copies nothing. `put` must follow.
  @inlinable package mutating func take(_ location: Location) -> Contents? {
    // Nothing may hold the row while it changes: that would copy it.
    guard let index = index(of: location) else { return nil }
    return rows[location.domain]?.remove(at: index).contents
  }

  /// Puts back what was taken out; nil if there are no contents any more.
  @inlinable package mutating func put(_ contents: consuming Contents?, _ location: Location) {
    if let contents {
      rows[location.domain, default: []].append(Entry(location.place, contents))
    } else if rows[location.domain]?.isEmpty == true {
      rows[location.domain] = nil
    }
  }
}

extension LocationTable: Sendable where Contents: Sendable {}
extension LocationTable.Entry: Sendable where Contents: Sendable {}
extension LocationTable.Finding: Sendable where Contents: Sendable, Found: Sendable {}
