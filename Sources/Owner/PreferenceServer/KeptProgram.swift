import PreferenceCloud
import PreferenceEffects
import PreferenceEngine
import PreferenceModel
import StoreAccess
import SystemCalls

/// A program that the owner of a store runs as long as something in the store asks for it.
struct KeptProgram: Sendable {
  /// What the log calls it.
  let name: String
  /// The name of the thread that looks after it.
  let thread: String
  let path: String
  let arguments: [String]
  /// Whether it ends soon after its standard input does, and may finish what it has begun; else it
  /// is killed.
  let endsByItself: Bool
  /// Whether a change may change what `isWanted` says.
  let isConcerned: @Sendable (Changeset) -> Bool
  /// Whether it is wanted. May wait for disks.
  let isWanted: @Sendable () throws(EngineError) -> Bool

  /// The program that carries the cloud's changes, while a cloud is configured. `isWanted` tells the
  /// places which keys belong in the cloud.
  static func cloud(_ places: LocalPlaces, _ layout: StoreLayout) -> KeptProgram {
    KeptProgram(
      name: "prefs-cloud", thread: "prefs-cloud",
      path: SiblingProgram.path("prefs-cloud", variable: "PREFSFS_CLOUD"),
      arguments: ["--owned", "--store", layout.userDirectory], endsByItself: false,
      isConcerned: { changeset in
        // Where the domain is locked, other settings count.
        changeset.concerns {
          $0.domain == CloudSettings.domain && $0.place != .cloudRecords
            || DomainLocks.locations.contains($0)
        }
      },
      isWanted: { () throws(EngineError) in
        let settings = try CloudSettings(of: places)
        var isWanted = settings.isConfigured && !places.isReadOnly
        if isWanted { isWanted = try isMeant(layout, places) }
        places.setCloudKeys(isWanted ? settings.keys : nil, local: settings.local)
        return isWanted
      })
  }

  /// Whether the settings of the cloud are for this store. The machine's are for the user's own
  /// store alone, and not for a backup that is mounted beside it.
  private static func isMeant(
    _ layout: StoreLayout, _ places: LocalPlaces
  ) throws(EngineError) -> Bool {
    if layout.isUsersOwn { return true }
    let own = [Place.host, .user].map { Location($0, CloudSettings.domain) }
    return try places.findFirst(CloudSettings.Name.endpoints.key, in: own) != nil
  }

  /// The program that carries out rules, while there is a rule that counts. A command that it has
  /// begun ends before it does.
  static func effects(_ places: LocalPlaces, _ layout: StoreLayout) -> KeptProgram {
    KeptProgram(
      name: "prefs effects", thread: "prefs-effects",
      path: SiblingProgram.path("defaults", variable: "PREFSFS_DEFAULTS"),
      arguments: ["effects", "--serve", "--store", layout.userDirectory], endsByItself: true,
      isConcerned: { EffectRules.areChanged(by: $0) },
      isWanted: { () throws(EngineError) in
        if places.isReadOnly { return false }
        return try EffectRules.read(places, layout).entries.contains { $0.rule != nil }
      })
  }
}
