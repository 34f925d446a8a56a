import PropertyList
import SystemCalls

/// The text that was written for a value. It is kept beside the value, so that a file reads back
/// the bytes that were written to it.
public enum WrittenText: Hashable, Sendable {
  /// The value was set without a text. A text that was written for the same value before is kept;
  /// any other text is dropped.
  case unknown
  /// The canonical text of the value was written.
  case canonical
  /// These bytes were written; they denote the value.
  case exact([UInt8])
}

/// One change of one domain in one place.
public enum Edit: Equatable, Sendable {
  /// Sets the key to the value.
  case set(Key, Value, WrittenText)
  /// Changes what is kept beside the key's value.
  case describe(Key, Description)
  /// Removes the key.
  case remove(Key)
  /// Changes a part of the key's string or data. Changes nothing where the value does not accept
  /// the splice, e.g. because its length is not the splice's base.
  case splice(Key, Splice)
  /// Makes the domain exist, if only as an empty list.
  case createDomain
  /// Removes the domain with all its keys.
  case removeDomain
}

extension Edit {
  /// The key that the edit changes; nil for edits of a whole domain.
  public var key: Key? {
    switch self {
    case .set(let key, _, _), .describe(let key, _), .remove(let key), .splice(let key, _): key
    case .createDomain, .removeDomain: nil
    }
  }
}

/// A change as a value. Journal records, notices to observers and transactions all are changesets.
/// Its edits take effect together, or none does.
public struct Changeset: Equatable, Sendable {
  /// An edit and the location that it applies to.
  public struct Item: Equatable, Sendable {
    /// The location that the edit applies to.
    public let location: Location
    /// The change of the location.
    public let edit: Edit
    /// What the location had before. It is set in changes that have taken effect, and `.nothing` in
    /// others. The journal does not record it, messages say only whether there was something, and
    /// `==` compares no more than that.
    public var before: Before

    /// Creates an edit of a location.
    public init(_ location: Location, _ edit: Edit, before: Before = .nothing) {
      self.location = location
      self.edit = edit
      self.before = before
    }

    /// Creates an edit that has taken effect.
    /// - Parameters:
    ///   - old: what the location had for the edit's key before; nil means nothing.
    ///   - domain: the location before. It is asked for only if the edit removes it.
    public init(
      _ location: Location, _ edit: Edit, replacing old: StoredValue?,
      of domain: @autoclosure () -> LocationSnapshot? = nil
    ) {
      self.init(location, edit, before: Before(edit, old, domain()))
    }

    /// Whether the location had the edit's key before; or, of a domain that is made, its list.
    public var hadKey: Bool {
      switch before {
      case .something, .value: true
      case .nothing, .domain: false
      }
    }

    public static func == (left: Item, right: Item) -> Bool {
      left.location == right.location && left.edit == right.edit && left.hadKey == right.hadKey
    }
  }

  /// What a location had before an edit.
  public indirect enum Before: Sendable {
    /// It did not have the key; or the change has not taken effect.
    case nothing
    /// It had the key, with a value that is not known here; or the list of a domain that another
    /// program has written.
    case something
    /// The value of the key.
    case value(StoredValue)
    /// The domain that was removed, with its keys. Cost: a copy of a snapshot is a few references.
    case domain(LocationSnapshot)

    /// - Parameters: see `Item.init(_:_:replacing:of:)`.
    init(_ edit: Edit, _ old: StoredValue?, _ domain: @autoclosure () -> LocationSnapshot?) {
      switch edit {
      case .removeDomain: self = domain().map { .domain($0) } ?? .nothing
      // Who holds a long text that was spliced has its next splice copy it.
      case .splice where old != nil && old?.wholeValue == nil: self = .something
      default: self = old.map { .value($0) } ?? .nothing
      }
    }

    /// The same, without the value.
    public var withoutValue: Before {
      switch self {
      case .something, .value: .something
      case .nothing, .domain: .nothing
      }
    }
  }

  /// The edits in order; of several edits of one key the last one wins.
  public var items: [Item]
  /// Lists that became unreadable, or readable again: cached copies of them are invalid. Notices
  /// carry it; the journal does not record it.
  public var invalidated: Set<Location> = []
  /// When the change happened. It becomes the modification time of the keys.
  public var time: Timestamp
  /// The number of the change. It is larger than that of every earlier change, also under earlier
  /// owners; 0 where the changeset has not taken effect.
  public var version: UInt64 = 0

  /// Creates a changeset of these edits.
  public init(_ items: [Item] = [], time: Timestamp = Timestamp(nanoseconds: 0)) {
    self.items = items
    self.time = time
  }

  /// Creates a changeset which says that the location's list became unreadable, or readable again.
  public init(invalidating location: Location) {
    self.init(time: .now)
    invalidated = [location]
  }

  /// Whether the changeset changes nothing and invalidates nothing.
  public var isEmpty: Bool { items.isEmpty && invalidated.isEmpty }

  /// Whether the domain is changed or invalidated, in any place.
  public func concerns(_ domain: DomainName) -> Bool { concerns { $0.domain == domain } }

  /// Whether a location that is changed or invalidated is one of those meant. Each notice asks it.
  public func concerns(_ isMeant: (Location) -> Bool) -> Bool {
    items.contains { isMeant($0.location) } || invalidated.contains(where: isMeant)
  }

  /// The locations that are changed or invalidated.
  public var locations: Set<Location> { Set(items.map(\.location)).union(invalidated) }
}

/// Identifies a request of a client. A client repeats a request that it got no answer to; by the
/// origin, an owner carries the request out only once.
public struct Origin: Hashable, Sendable {
  /// The client: a random number.
  public let client: UInt64
  /// The number of the request among the client's. Ordered requests are counted apart from the
  /// others.
  public let serial: UInt64

  /// Identifies the client's request with that number.
  public init(client: UInt64, serial: UInt64) {
    (self.client, self.serial) = (client, serial)
  }

  /// The bit of a serial that marks an ordered request. A client sends its ordered requests in the
  /// order of their serials, also over several connections and owners. So one that arrives after a
  /// request with a larger serial is a repetition: it was carried out or refused before.
  public static let ordered: UInt64 = 1 << 63

  /// Whether the request is an ordered one.
  public var isOrdered: Bool { serial & Self.ordered != 0 }

  /// The bit of a serial that marks a request which its process may leave to a successor: a mount
  /// whose driver is replaced.
  public static let inheritable: UInt64 = 1 << 62

  /// Identifies a change that a mount makes for a request of the kernel.
  /// - Parameters:
  ///   - request: the number of the request. Its lower 42 bits count.
  ///   - change: 0 for the change that the request asks for; of others, e.g. of a text that is
  ///     decided before, the number among those of the request, from 1. Its lower 20 bits count: a
  ///     request makes a change for each key of a domain at most.
  public init(client: UInt64, request: UInt64, change: UInt64) {
    let number = request << 20 & (Self.inheritable - 1)
    self.init(client: client, serial: Self.inheritable | number | change & 0xF_FFFF)
  }

  /// Whether a successor of the process may repeat the request.
  public var isInheritable: Bool { serial & Self.inheritable != 0 && !isOrdered }
}
