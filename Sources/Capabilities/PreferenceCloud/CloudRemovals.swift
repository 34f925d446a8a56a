import PreferenceModel
import PropertyList
import SystemCalls

/// What the owner of a store notes when the user removes a whole domain of the cloud: keys of one
/// location beside the records of the cloud. Without the note, one that begins later could not
/// tell a domain that was removed from a list that was lost, whose keys it brings back.
public enum CloudRemovals {
  /// The location of the notes.
  public static let location = Location(.cloudRecords, CloudSettings.domain)
  private static let start = "Removed."

  /// The key of the note about a domain.
  public static func key(of domain: DomainName) -> Key { Key(start + domain.string) }

  /// The domain of a note; nil for other keys.
  public static func domain(of key: Key) -> DomainName? {
    key.string.hasPrefix(start) ? DomainName(String(key.string.dropFirst(start.count))) : nil
  }

  /// The notes about the domains that the items remove from the cloud.
  public static func notes(_ items: [Changeset.Item], at time: Timestamp) -> [Changeset.Item] {
    items.filter { $0.location.place == .cloud && $0.edit == .removeDomain }.map { item in
      let time = Value.date(AbsoluteTime(time))
      return Changeset.Item(location, .set(key(of: item.location.domain), time, .canonical))
    }
  }
}
