import PropertyList
import SystemCalls

/// What was written for a value, beside the value.
public enum WrittenText: Hashable, Sendable {
  /// The value came by a road without text: a text that was written for the same value before
  /// stays, any other goes.
  case unknown
  /// The canonical text.
  case canonical
  /// These bytes; they denote the value.
  case exact([UInt8])
}

/// One change of one domain in one place.
public enum Edit: Equatable, Sendable {
  /// The key gets the value.
  case set(Key, Value, WrittenText)
  /// What is kept beside the key's value changes.
  case describe(Key, Description)
  /// The key goes.
  case remove(Key)
  /// A part of the key's string or data changes; nothing where that has another length than the splice's base.
  case splice(Key, Splice)
  /// The domain exists, if only as an empty list.
  case createDomain
  /// The domain goes with all its keys.
  case removeDomain
}

extension Edit {
  /// The key that it is about; nil for edits of a whole domain.
  public var key: Key? {
    switch self {
    case .set(let key, _, _), .describe(let key, _), .remove(let key), .splice(let key, _): key
    case .createDomain, .removeDomain: nil
    }
  }
}

/// The change as a value: journal record, notice to observers and transaction are this one type.
/// All of it takes effect at once, or none.
public struct Changeset: Equatable, Sendable {
  /// An edit and where it applies.
  public struct Item: Equatable, Sendable {
    /// Which list.
    public let location: Location
    /// What happens to it.
    public let edit: Edit

    /// An edit of a location.
    public init(_ location: Location, _ edit: Edit) {
      self.location = location
      self.edit = edit
    }
  }

  /// The edits in order; a later one of the same key wins.
  public var items: [Item]
  /// Lists that cannot be read any more, or can again: whatever is known of what they hold, or do not hold,
  /// is no longer true. Part of notices only; it is not recorded.
  public var invalidated: Set<Location> = []
  /// When it happened; the new modification time of the keys.
  public var time: Timestamp
  /// The number of the change, larger than those before it, also of earlier owners; 0 where it has not
  /// taken effect.
  public var version: UInt64 = 0

  /// A changeset of these edits.
  public init(_ items: [Item] = [], time: Timestamp = Timestamp(nanoseconds: 0)) {
    self.items = items
    self.time = time
  }

  /// A changeset that says that the location's list cannot be read any more, or can again.
  public init(invalidating location: Location) {
    self.init(time: .now)
    invalidated = [location]
  }

  /// Whether there is nothing to do.
  public var isEmpty: Bool { items.isEmpty && invalidated.isEmpty }

  /// The lists that are touched.
  public var locations: Set<Location> { Set(items.map(\.location)).union(invalidated) }
}

/// A request that a client repeats where it got no answer, so that it is carried out once.
public struct Origin: Hashable, Sendable {
  /// Which client; a random number.
  public let client: UInt64
  /// Its requests, counted; ordered ones apart from the others.
  public let serial: UInt64

  /// The client's request of that number.
  public init(client: UInt64, serial: UInt64) {
    (self.client, self.serial) = (client, serial)
  }

  /// Of a serial: that the client sends such requests in the order of their serials, over connections and
  /// owners. One that comes after a later one was carried out, or refused, before.
  public static let ordered: UInt64 = 1 << 63

  /// Whether it is one of those.
  public var isOrdered: Bool { serial & Self.ordered != 0 }
}
