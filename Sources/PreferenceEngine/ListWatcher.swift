import PreferenceModel
import PreferenceStore
import SystemCalls

/// Sees which lists somebody else changed, through inotify; directories on file systems that do not
/// tell (NFS, SMB, FUSE), and all of them where the user has no inotify instance left, are looked at
/// every 2 s. It also sees when files of the state directory go. A directory that is not there yet is found when
/// it comes, because the nearest one above it is watched. Lists that are symbolic links are watched
/// where they lie, but not on another machine or in a file system in user space, which may not answer.
///
/// Threads: the writer's alone.
struct ListWatcher {
  private let layout: StoreLayout
  private let watch: DirectoryWatch?
  /// What a directory is: of a place, or where a link's list lies.
  private var places: [String: Place] = [:]
  private var linked: [String: [String: Location]] = [:]
  /// Directories of places that are watched.
  private var watched: Set<String> = []
  /// Paths whose coming brings a directory, or the list of a link, that is not there yet.
  private var awaited: Set<String> = []
  private var polled: [Place] = []
  private var nextPoll: Instant?

  /// Milliseconds between two looks at a file system that tells nothing.
  private static let pollInterval: Int64 = 2000

  /// - Parameter report: gets a sentence where changes are seen late.
  init(_ layout: StoreLayout, report: (String) -> Void) {
    self.layout = layout
    do {
      watch = try DirectoryWatch()
    } catch {
      watch = nil
      report("changes by other programs are seen every 2 s only: \(error)")
    }
  }

  /// For poll(2); -1 where there is nothing to wait for.
  var number: CInt { watch?.number ?? -1 }

  /// Whether files of the state directory may have gone since `changes` was asked before.
  private(set) var isStateInDoubt = false

  /// When `changes` must be asked although nothing can be read.
  var deadline: Instant? { nextPoll }

  /// Watches what is there. Done again by `changes` when directories come or go. A directory that
  /// cannot be watched is looked at every 2 s.
  mutating func begin(report: (String) -> Void) {
    (places, linked, polled, watched, awaited) = ([:], [:], [], [], [])
    for (place, path) in layout.listDirectories {
      places[path] = place
      guard let watch else {
        polled.append(place)
        continue
      }
      do throws(SystemError) {
        try begin(path, place, watch)
      } catch {
        report("changes in \(path) are seen every 2 s only: \(error)")
        polled.append(place)
      }
    }
    watchState()
    nextPoll = polled.isEmpty ? nil : Instant.now.advanced(milliseconds: Self.pollInterval)
  }

  private mutating func begin(
    _ path: String, _ place: Place, _ watch: DirectoryWatch
  ) throws(SystemError) {
    if try !watch.add(path) {
      try wait(for: path, watch)
      // It may have come meanwhile.
      guard try watch.add(path) else { return }
    }
    watched.insert(path)
    try followLinks(in: path, place, watch)
    if Self.isSilent(path) { polled.append(place) }
  }

  /// Watches the state directory, which was made anew.
  func watchState() { _ = try? watch?.add(layout.stateDirectory) }

  /// Watches the nearest directory above for the part of the path that is missing in it.
  private mutating func wait(for path: String, _ watch: DirectoryWatch) throws(SystemError) {
    var missing = path
    while try !watch.add(Files.parent(of: missing)) { missing = Files.parent(of: missing) }
    awaited.insert(missing)
  }

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
      let parent = Files.parent(of: real)
      guard try watch.add(parent) else { continue }
      linked[parent, default: [:]][String(real.dropFirst(parent.count + 1))] = location
    }
  }

  /// Whether changes by other machines, or below, are not told here.
  private static func isSilent(_ path: String) -> Bool {
    guard let kind = Files.fileSystemKind(path) else { return false }
    return [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546].contains(kind)
  }

  /// The locations whose lists may be others now; never waits.
  mutating func changes(
    known: () -> [Location], report: (String) -> Void
  ) -> Set<Location> {
    var changed: Set<Location> = []
    var before: Set<String>?
    isStateInDoubt = watch == nil
    for event in watch?.events() ?? [] {
      if event.directory == layout.stateDirectory { isStateInDoubt = true }
      guard let name = event.name else {
        // A directory went or came, or events were lost: everything is looked at.
        before = []
        continue
      }
      let path = event.directory == "/" ? "/\(name)" : "\(event.directory)/\(name)"
      if awaited.contains(path) { before = before ?? watched }
      if let location = linked[event.directory]?[name] { changed.insert(location) }
      guard let place = places[event.directory],
        let location = layout.location(ofFile: name, in: place)
      else { continue }
      let isLink = Files.linkTarget(path) != nil
      if isLink { before = before ?? watched }
      if isLink || !event.isCreation || !Self.isBegun(path) { changed.insert(location) }
    }
    if let poll = nextPoll, poll <= .now {
      changed.formUnion(known().filter { polled.contains($0.place) })
      nextPoll = Instant.now.advanced(milliseconds: Self.pollInterval)
    }
    if let before {
      begin(report: report)
      changed.formUnion(known())
      for path in watched.subtracting(before) { changed.formUnion(lists(in: path)) }
    }
    return changed
  }

  /// Whether a file that has just been made is one that is about to be written: it is looked at when
  /// its writer closes it. One with another name (link(2)) is whole.
  private static func isBegun(_ path: String) -> Bool {
    guard let status = try? Files.status(path) else { return false }
    return status.st_nlink == 1
  }

  /// The locations that have a list in the directory.
  private func lists(in path: String) -> [Location] {
    guard let place = places[path], let names = try? Files.names(in: path) else { return [] }
    return names.compactMap { layout.location(ofFile: $0, in: place) }
  }
}
