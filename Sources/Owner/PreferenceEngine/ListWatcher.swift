import Glibc
import PreferenceModel
import PreferenceSchemas
import PreferenceStore
import StoreAccess
import SystemCalls

/// Finds the lists that other programs have changed, through inotify(7).
///
/// It polls every 2 s the loaded lists, and the names of all lists, of directories on file systems
/// that report no changes (NFS, SMB, FUSE); of all directories where the user has no inotify
/// instance left. For a directory that does not exist yet, it watches the nearest existing one
/// above it. The target of a list that is a symbolic link is watched too, and every link on the way
/// to a directory, unless it lies on another machine or in a file system in user space, which may
/// not answer. It also sees when files of the state directory are removed, when something is
/// mounted over a directory (pam_mount, ecryptfs), and when configuration profiles, the
/// certificates of their signers, fragments or vendors' lists may have changed, and when schemas of
/// GSettings have been compiled, which is the last step where they are installed.
///
/// Threads: the writer's alone; no lock.
struct ListWatcher {
  /// What is watched and polled. It is found anew when directories come or go (`begin`).
  private struct Directories {
    /// The directories of places. Two places have the same one where the directory of the machine's
    /// lists is used as a store of its own.
    var places: [String: [Place]] = [:]
    /// The locations of lists that are symbolic links, by the paths of their targets.
    var linked: [String: Set<Location>] = [:]
    /// The targets of profiles, certificates and fragments that are symbolic links.
    var linkedAdditions: Set<String> = []
    /// The directories of fragments, and those of vendors' lists.
    var fragments: Set<String> = []
    /// The directories of preference interfaces, beside schemas.
    var bundles: Set<String> = []
    /// Directories of places that are watched.
    var watched: Set<String> = []
    /// The directories above those that are watched for their own removal.
    var above: Set<String> = []
    /// Paths that do not exist yet: when one appears, the directories are watched anew.
    var awaited: Set<String> = []
    /// Whether fragments or vendors' lists are polled, because their directories cannot be watched.
    var pollsAdditions = false
    /// Places whose lists are polled.
    var polled: [Place] = []

    var polls: Bool { pollsAdditions || !polled.isEmpty }

    /// Has the lists of a place polled, which may have several directories.
    mutating func poll(_ place: Place) { if !polled.contains(place) { polled.append(place) } }
  }

  private let layout: StoreLayout
  private let watch: DirectoryWatch?
  /// The table of mounts, of which poll(2) says when it has changed (proc(5)).
  private let mounts: SharedDescriptor?
  private var haveMountsChanged = false
  /// Device and inode of the state directory and of those of places when they were last watched.
  private var seen: [String: [UInt64]] = [:]
  /// Whether the directories have been watched anew in the last `changes`.
  private(set) var hasBegun = false
  /// What is watched and polled.
  private var directories = Directories()
  /// The places that are watched beside those of the search list: managed lists of other users.
  private var others: Set<Place> = []
  /// The lists that polled places had at the last look.
  private var listed: [Place: Set<Location>] = [:]
  private var nextPoll: Instant?
  /// Files that were made and not closed since, and when they are looked at. What link(2) has given
  /// a name, after O_TMPFILE, is never closed under it.
  private var unclosed: (paths: Set<String>, until: Instant)?

  /// Milliseconds between two looks at lists that are polled.
  private static let pollInterval: Int64 = 2000

  /// - Parameter report: is called with a sentence where changes will be seen late.
  init(_ layout: StoreLayout, report: (LogLine) -> Void) {
    self.layout = layout
    do {
      watch = try DirectoryWatch()
    } catch {
      watch = nil
      report("changes by other programs are seen every 2 s only: \(error)")
    }
    mounts = try? SharedDescriptor(Descriptor(opening: "/proc/self/mountinfo", O_RDONLY))
  }

  /// The descriptor to wait for with poll(2); -1 where there is no inotify instance.
  var number: CInt { watch?.number ?? -1 }

  /// A descriptor of which poll(2) says (POLLPRI) that a file system was mounted or unmounted; -1:
  /// there is none.
  var mountsNumber: CInt { mounts?.value.number ?? -1 }

  /// Notes that the table of mounts has changed.
  mutating func noteMounts() { haveMountsChanged = true }

  /// Device and inode of the state directory and of those of places, as they are now under their
  /// names.
  private var identities: [String: [UInt64]] {
    var found: [String: [UInt64]] = [:]
    for path in Array(directories.places.keys) + [layout.stateDirectory] {
      found[path] = Self.identity(path)
    }
    return found
  }

  /// Device and inode of a directory; nil where there is none.
  private static func identity(_ path: String) -> [UInt64]? {
    guard let status = try? Files.status(path) else { return nil }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }

  /// Whether files of the state directory may have been removed before the last `changes`.
  private(set) var isStateInDoubt = false

  /// Whether profiles, the certificates of their signers, fragments or vendors' lists may have
  /// changed.
  private var areAdditionsInDoubt = false

  /// Returns whether additions of places may have changed since this was last called, as far as
  /// `changes` and `begin` have seen; then forgets it.
  mutating func removeDoubtOfAdditions() -> Bool {
    defer { areAdditionsInDoubt = false }
    return areAdditionsInDoubt
  }

  /// Whether schemas of GSettings, or preference interfaces, may have changed.
  private var areSettingsInDoubt = false
  /// Device and inode of the directories of schemas of GSettings when they were last watched; nil
  /// if they have not been watched.
  private var settings: [String: [UInt64]]?

  /// Returns whether schemas of GSettings may have changed since this was last called, as far as
  /// `changes` and `begin` have seen; then forgets it.
  mutating func removeDoubtOfSettings() -> Bool {
    defer { areSettingsInDoubt = false }
    return areSettingsInDoubt
  }

  /// When `changes` must be called although the descriptor is not readable; nil means never.
  var deadline: Instant? { [nextPoll, unclosed?.until].compactMap { $0 }.min() }

  /// Watches the directories that exist. `changes` does it again when directories come or go. A
  /// directory that cannot be watched is polled.
  /// - Parameter others: the managed places whose lists are watched too, beside those of the search
  ///   list, which may be among them; nil means those of the last call.
  mutating func begin(_ others: [Place]? = nil, report: (LogLine) -> Void) {
    if let others { self.others = Set(others.filter { !$0.isForced }) }
    directories = Directories()
    areAdditionsInDoubt = true
    for (place, path) in layout.listDirectories + self.others.map({ ($0, layout.directory($0)) }) {
      include(place, path, report)
    }
    watchState()
    (seen, hasBegun) = (identities, true)
    if let watch {
      watchSigners(watch)
      for path in layout.vendorDirectories { watchVendors(path, watch) }
      watchSettings(watch)
      for path in layout.schemaDirectories { watchBundles(in: path, watch) }
    }
    nextPoll = !directories.polls ? nil : Instant.now.advanced(milliseconds: Self.pollInterval)
    listed = listed.filter { directories.polled.contains($0.key) }
    for place in directories.polled where listed[place] == nil {
      _ = listsThatCameOrWent(in: place)
    }
  }

  /// Watches further managed places, as far as they are not watched. Their additions must be looked
  /// at afterwards. Cost: that of their directories, however many are watched.
  /// - Returns: whether there are any.
  @discardableResult
  mutating func add(_ places: Set<Place>, report: (LogLine) -> Void) -> Bool {
    let before = others.count
    for place in places where !place.isForced && others.insert(place).inserted {
      let path = layout.directory(place)
      include(place, path, report)
      seen[path] = Self.identity(path)
      if directories.polled.last == place { _ = listsThatCameOrWent(in: place) }
    }
    if directories.polls, nextPoll == nil {
      nextPoll = Instant.now.advanced(milliseconds: Self.pollInterval)
    }
    return others.count != before
  }

  /// Watches a directory of lists, or polls it.
  private mutating func include(_ place: Place, _ path: String, _ report: (LogLine) -> Void) {
    directories.places[path, default: []].append(place)
    guard let watch else { return directories.poll(place) }
    do throws(SystemError) {
      try begin(path, place, watch)
    } catch {
      report("changes in \(path) are seen every 2 s only: \(error)")
      directories.poll(place)
    }
  }

  private mutating func begin(
    _ path: String, _ place: Place, _ watch: DirectoryWatch
  ) throws(SystemError) {
    awaitLinks(on: path, watch)
    if try !watch.add(path, withModes: true) {
      try wait(for: path, watch)
      // The directory may have been made meanwhile.
      guard try watch.add(path, withModes: true) else { return }
    }
    watchAbove(path, watch)
    if place.isManaged { followAdditionLinks(in: path, ".mobileconfig", watch) }
    if place.isOfGroup { followAdditionLinks(in: path, ".plist", watch) }
    if place.hasAdditions { watchFragments(in: path, place, watch) }
    directories.watched.insert(path)
    try followLinks(in: path, place, watch)
    if Files.isSilent(path) { directories.poll(place) }
  }

  /// Watches the certificates of those who may sign profiles, and waits for another directory or
  /// link in the place of theirs.
  private mutating func watchSigners(_ watch: DirectoryWatch) {
    let path = layout.signersDirectory
    awaitLinks(on: path, watch)
    try? wait(for: path, watch)
    guard (try? watch.add(path, withModes: true)) == true else { return }
    followAdditionLinks(in: path, "", watch)
  }

  /// Watches a directory of vendors' lists, or waits for it.
  private mutating func watchVendors(_ path: String, _ watch: DirectoryWatch) {
    awaitLinks(on: path, watch)
    do throws(SystemError) {
      guard try watch.add(path, withModes: true) else { return try wait(for: path, watch) }
    } catch {
      directories.pollsAdditions = true
      return
    }
    if Files.isSilent(path) { directories.pollsAdditions = true }
    directories.fragments.insert(path)
    followAdditionLinks(in: path, ".plist", watch)
    watchFragments(in: path, .vendor, watch)
  }

  /// Watches the directories of schemas of GSettings, or waits for them.
  private mutating func watchSettings(_ watch: DirectoryWatch) {
    var found: [String: [UInt64]] = [:]
    for path in layout.settingsDirectories {
      awaitLinks(on: path, watch)
      if (try? watch.add(path)) != true { try? wait(for: path, watch) }
      found[path] = Self.identity(path)
    }
    if let settings, settings != found { areSettingsInDoubt = true }
    settings = found
  }

  /// Watches the preference interfaces in a directory of schemas.
  private mutating func watchBundles(in directory: String, _ watch: DirectoryWatch) {
    for name in (try? Files.names(in: directory, withDirectories: true)) ?? []
    where name.hasSuffix(SettingsBundles.suffix) {
      let path = "\(directory)/\(name)"
      if (try? watch.add(path)) == true { directories.bundles.insert(path) }
    }
  }

  /// Watches the directories of fragments that lie in a directory.
  private mutating func watchFragments(
    in directory: String, _ place: Place, _ watch: DirectoryWatch
  ) {
    for name in (try? Files.names(in: directory, withDirectories: true)) ?? []
    where layout.domain(ofFragments: name, in: place) != nil {
      let path = "\(directory)/\(name)"
      awaitLinks(on: path, watch)
      guard (try? watch.add(path, withModes: true)) == true else {
        if Files.isDirectory(path) { directories.pollsAdditions = true }
        continue
      }
      directories.fragments.insert(path)
      followAdditionLinks(in: path, ".plist", watch)
    }
  }

  /// Watches the state directory; called again when it was made anew.
  func watchState() { _ = try? watch?.add(layout.stateDirectory) }

  /// Watches the directories above one for their own removal or renaming: another directory may be
  /// under the path then. What else happens in them wakes nobody.
  private mutating func watchAbove(_ path: String, _ watch: DirectoryWatch) {
    var above = Files.parent(of: path)
    // None of them hangs: the way to what is watched already leads through them.
    while above != "/", above != ".", directories.above.insert(above).inserted {
      watch.addItself(above)
      above = Files.parent(of: above)
    }
  }

  /// Watches the nearest directory above the path that exists, for the next part of the path.
  private mutating func wait(for path: String, _ watch: DirectoryWatch) throws(SystemError) {
    var missing = path
    while try !watch.add(Files.parent(of: missing)) { missing = Files.parent(of: missing) }
    directories.awaited.insert(missing)
  }

  /// Watches the targets of the directory's symbolic links.
  private mutating func followLinks(
    in directory: String, _ place: Place, _ watch: DirectoryWatch
  ) throws(SystemError) {
    for name in try Files.names(in: directory) ?? [] {
      guard let location = layout.location(ofFile: name, in: place),
        let target = Files.linkTarget("\(directory)/\(name)"),
        !MountInformation.mayHang(target.hasPrefix("/") ? target : "\(directory)/\(target)")
      else { continue }
      guard let real = Files.realPath("\(directory)/\(name)") else {
        try wait(for: target.hasPrefix("/") ? target : "\(directory)/\(target)", watch)
        continue
      }
      awaitLinks(on: "\(directory)/\(name)", skipping: 1, watch)
      guard try watch.add(Files.parent(of: real), withModes: true) else { continue }
      directories.linked[real, default: []].insert(location)
      watchAbove(Files.parent(of: real), watch)
    }
  }

  /// Watches the targets of the directory's files with that ending that are links.
  private mutating func followAdditionLinks(
    in directory: String, _ ending: String, _ watch: DirectoryWatch
  ) {
    for name in (try? Files.names(in: directory)) ?? [] where name.hasSuffix(ending) {
      let path = "\(directory)/\(name)"
      guard
        let target = Files.linkTarget(path).map({ $0.hasPrefix("/") ? $0 : "\(directory)/\($0)" }),
        !MountInformation.mayHang(target)
      else { continue }
      awaitLinks(on: path, skipping: 1, watch)
      guard let real = Files.realPath(path) else {
        try? wait(for: target, watch)
        continue
      }
      guard (try? watch.add(Files.parent(of: real))) == true else { continue }
      directories.linkedAdditions.insert(real)
    }
  }

  /// Has the directories watched anew when a link changes that a path leads through, as where a
  /// link `current` says which of several directories counts.
  /// - Parameter count: how many links from the first on have a watch already.
  private mutating func awaitLinks(
    on path: String, skipping count: Int = 0, _ watch: DirectoryWatch
  ) {
    for link in Files.links(on: path).dropFirst(count)
    where !MountInformation.mayHang(link) && (try? watch.add(Files.parent(of: link))) == true {
      directories.awaited.insert(link)
    }
  }

  /// The locations whose lists may have changed since the last call. It waits for no event.
  /// - Parameter known: the locations that are loaded.
  mutating func changes(
    known: () -> [Location], report: (LogLine) -> Void
  ) -> Set<Location> {
    var look = Look()
    (isStateInDoubt, hasBegun) = (watch == nil, false)
    if haveMountsChanged, identities != seen { (isStateInDoubt, look.before) = (true, []) }
    haveMountsChanged = false
    for event in watch?.events() ?? [] { note(event, in: &look) }
    if let poll = nextPoll, poll <= .now {
      look.changed.formUnion(known().filter { directories.polled.contains($0.place) })
      for place in directories.polled { look.changed.formUnion(listsThatCameOrWent(in: place)) }
      areAdditionsInDoubt = true
      nextPoll = Instant.now.advanced(milliseconds: Self.pollInterval)
    }
    lookAtUnclosed(&look)
    guard let before = look.before else { return look.changed }
    begin(report: report)
    look.changed.formUnion(known())
    for path in directories.watched.subtracting(before) {
      look.changed.formUnion(lists(in: path) ?? [])
    }
    return look.changed
  }

  /// What a look at the events has found.
  private struct Look {
    var changed: Set<Location> = []
    /// Where the directories are to be watched anew: those that were watched before, and whose
    /// lists need no look.
    var before: Set<String>?
  }

  private mutating func note(_ event: DirectoryWatch.Event, in look: inout Look) {
    if event.directory == layout.stateDirectory { isStateInDoubt = true }
    guard let name = event.name else {
      // A directory was removed or moved, or events were lost: all loaded lists are looked at.
      (look.before, areSettingsInDoubt) = ([], true)
      return
    }
    let path = event.directory == "/" ? "/\(name)" : "\(event.directory)/\(name)"
    // It may be a link on the way to a directory whose name stays: all lists are looked at.
    if directories.awaited.contains(path) { look.before = [] }
    if let locations = directories.linked[path] {
      look.changed.formUnion(locations)
      // It may be a link itself now.
      if Files.linkTarget(path) != nil { look.before = look.before ?? directories.watched }
    }
    if directories.linkedAdditions.contains(path) { areAdditionsInDoubt = true }
    if name == MachineSchemas.compiled, settings?[event.directory] != nil {
      areSettingsInDoubt = true
    }
    if directories.bundles.contains(event.directory) { areSettingsInDoubt = true }
    if name.hasSuffix(SettingsBundles.suffix),
      directories.places[event.directory]?.contains(.schema) == true
    {
      (look.before, areSettingsInDoubt) = (look.before ?? directories.watched, true)
    }
    let locations = locations(ofFile: name, in: event.directory)
    let isAddition = isAddition(event.directory, name)
    guard isAddition || !locations.isEmpty else { return }
    // Only here: another path may lie on a file system that hangs.
    let isLink = Files.linkTarget(path) != nil
    let isComplete = isLink || !event.isCreation || !Self.isBegun(path)
    if isComplete {
      unclosed?.paths.remove(path)
    } else {
      let until = Instant.now.advanced(milliseconds: Self.writingPatience)
      unclosed = ((unclosed?.paths ?? []).union([path]), unclosed?.until ?? until)
    }
    if isAddition {
      // The directory of fragments is to be watched.
      if isLink || name.hasSuffix(".d") { look.before = look.before ?? directories.watched }
      if isComplete { areAdditionsInDoubt = true }
    }
    if locations.isEmpty { return }
    if isLink { look.before = look.before ?? directories.watched }
    if isComplete { look.changed.formUnion(locations) }
  }

  /// The locations that have the file of a directory as their list.
  private func locations(ofFile name: String, in directory: String) -> [Location] {
    (directories.places[directory] ?? []).compactMap { layout.location(ofFile: name, in: $0) }
  }

  /// Whether the file is a profile, the certificate of a signer, a fragment or a directory of
  /// fragments, a vendor's list, or a list or the directory of a group.
  private func isAddition(_ directory: String, _ name: String) -> Bool {
    if directory == layout.signersDirectory || directories.fragments.contains(directory) {
      return true
    }
    return (directories.places[directory] ?? []).contains { place in
      place.hasAdditions
        && (place.isManaged && name.hasSuffix(".mobileconfig")
          || place.isOfGroup && name.hasSuffix(".plist")
          || place == .managed && name.first == ManagedGroups.mark
          || layout.domain(ofFragments: name, in: place) != nil)
    }
  }

  /// Whether a file that has just been made is still to be written: it is looked at when its writer
  /// closes it, or a moment later. A file with a second name (link(2)) is complete.
  private static func isBegun(_ path: String) -> Bool {
    guard let status = try? Files.status(path) else { return false }
    return status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
  }

  /// Milliseconds after which a file that was made, and was not closed, counts as complete.
  private static let writingPatience: Int64 = 1000

  /// Looks at the files that were made a moment ago and not closed since, unless they are empty:
  /// then they are still to be written.
  private mutating func lookAtUnclosed(_ look: inout Look) {
    guard let (paths, until) = unclosed, until <= .now else { return }
    unclosed = nil
    for path in paths {
      guard let status = try? Files.status(path), status.st_size > 0 else { continue }
      let directory = Files.parent(of: path)
      let name = String(path.dropFirst(directory == "/" ? 1 : directory.count + 1))
      if isAddition(directory, name) { areAdditionsInDoubt = true }
      look.changed.formUnion(locations(ofFile: name, in: directory))
    }
  }

  /// The locations whose lists are new, or gone, since this was last called for the place; none
  /// where the directory cannot be read.
  private mutating func listsThatCameOrWent(in place: Place) -> Set<Location> {
    let own = layout.directory(place)
    guard var present = lists(in: own) else { return [] }
    for (path, places) in directories.places where path != own && places.contains(place) {
      present += lists(in: path) ?? []
    }
    let now = Set(present.filter { $0.place == place })
    defer { listed[place] = now }
    return now.symmetricDifference(listed[place] ?? [])
  }

  /// The locations that have a list in the directory; nil where it cannot be read.
  private func lists(in path: String) -> [Location]? {
    do throws(SystemError) {
      return (try Files.names(in: path) ?? []).flatMap { locations(ofFile: $0, in: path) }
    } catch {
      return nil
    }
  }
}
