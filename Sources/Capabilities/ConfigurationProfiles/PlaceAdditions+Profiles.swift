import PreferenceModel
import PropertyList
import SystemCalls

// What profiles add to the settings of their place.

extension PlaceAdditions {
  /// Adds a value that a profile sets. It replaces a forced value of an earlier profile.
  mutating func add(
    _ setting: Profile.Setting, _ profile: Profile, _ modified: Timestamp
  ) {
    switch setting.kind {
    case .forced:
      values[setting.domain, default: [:]][setting.key] = StoredValue(
        setting.value,
        Metadata(text: nil, modified: modified, setter: .profile(profile.identifier)))
    case .once(let time):
      let parts = [
        profile.identifier, profile.uuid, setting.domain.string, setting.key.string,
      ]
      once.append(
        OnceSetting(
          identity: parts.joined(separator: " "), time: time,
          location: Location(setting.isHost ? .host : .user, setting.domain), key: setting.key,
          value: setting.value))
    }
  }

  /// Adds the arrays of a profile to those of earlier ones, and sets the output key to all of them.
  /// - Parameter joined: the elements so far, by output key.
  mutating func join(
    _ union: Profile.Union, _ profile: Profile, _ modified: Timestamp,
    _ joined: inout [Key: [Value]]
  ) {
    var elements = joined[union.output] ?? []
    // As bytes: a value has no hash.
    var known = Set(union.removesDuplicates ? elements.map(Document.binary) : [])
    for setting in profile.settings
    where setting.kind == .forced && setting.domain == union.domain
      && union.inputs.contains(setting.key)
    {
      guard case .array(let values) = setting.value else { continue }
      for value in values
      where !union.removesDuplicates || known.insert(Document.binary(value)).inserted {
        elements.append(value)
      }
    }
    joined[union.output] = elements
    values[union.domain, default: [:]][union.output] = StoredValue(
      .array(elements),
      Metadata(text: nil, modified: modified, setter: .profile(profile.identifier)))
  }
}
