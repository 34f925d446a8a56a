import PreferenceModel
import PreferenceStore
import SystemCalls

/// Sees which lists somebody else changed, through inotify; directories on file systems that do not
/// tell (NFS, SMB, FUSE) are looked at every 2 s. A directory that is not there yet is found when
/// it comes, because the nearest one above it is watched. Lists that are symbolic links are watched
/// where they lie.
///
/// Threads: the writer's alone.
struct ListWatcher {
  private let layout: StoreLayout
  private let watch: DirectoryWatch
  /// What a directory is: of a place, or where a link's list lies.
  private var places: [String: Place] = [:]
  private var linked: [String: [String: Location]] = [:]
  private var isComplete = false
  private var polled: [Place] = []
  private var nextPoll: Instant?

  /// Milliseconds between two looks at a file system that tells nothing.
  private static let pollInterval: Int64 = 2000

  init(_ layout: StoreLayout) throws(SystemError) {
    self.layout = layout
    watch = try DirectoryWatch()
  }

  /// For poll(2).
  var number: CInt { watch.number }

  /// When `changes` must be asked although nothing can be read.
  var deadline: Instant? { nextPoll }

  /// Watches what is there. Done again by `changes` when directories come or go.
  mutating func begin() throws(SystemError) {
    (places, linked, polled, isComplete) = ([:], [:], [], true)
    for (place, path) in layout.listDirectories {
      places[path] = place
      if try watch.add(path) {
        try followLinks(in: path, place)
        if Self.isSilent(path) { polled.append(place) }
      } else {
        isComplete = false
        try watchAbove(path)
      }
    }
    nextPoll = polled.isEmpty ? nil : Instant.now.advanced(milliseconds: Self.pollInterval)
  }

  private func watchAbove(_ path: String) throws(SystemError) {
    var above = Files.parent(of: path)
    while try !watch.add(above), above != "/", above != "." { above = Files.parent(of: above) }
  }

  private mutating func followLinks(in directory: String, _ place: Place) throws(SystemError) {
    for name in try Files.names(in: directory) ?? [] {
      guard let location = layout.location(ofFile: name, in: place),
        Files.linkTarget("\(directory)/\(name)") != nil,
        let real = Files.realPath("\(directory)/\(name)")
      else { continue }
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
  mutating func changes(known: () -> [Location]) throws(SystemError) -> Set<Location> {
    var changed: Set<Location> = []
    var mustBegin = false
    for event in watch.events() {
      guard let name = event.name else {
        mustBegin = true
        continue
      }
      if let place = places[event.directory] {
        if let location = layout.location(ofFile: name, in: place) {
          changed.insert(location)
          if Files.linkTarget("\(event.directory)/\(name)") != nil { mustBegin = true }
        }
      }
      if let location = linked[event.directory]?[name] { changed.insert(location) }
      if !isComplete { mustBegin = true }
    }
    if let poll = nextPoll, poll <= .now {
      changed.formUnion(known().filter { polled.contains($0.place) })
      nextPoll = Instant.now.advanced(milliseconds: Self.pollInterval)
    }
    if mustBegin {
      let before = isComplete
      try begin()
      // What happened while directories were not watched is looked for.
      if !before || !isComplete { changed.formUnion(known()) }
    }
    return changed
  }
}
