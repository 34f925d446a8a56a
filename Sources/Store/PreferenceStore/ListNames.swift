import PreferenceModel
import StoreAccess
import SystemCalls

/// The names in the directories of places. One listing of each directory says of any number of
/// locations which of them have no list, where a look at each would be a stat(2) for each place.
///
/// Promises: a location that is lacking had no list at a moment after `init` was called. A list
/// that comes later is heard of as any other one.
///
/// Threads: any, for `init` waits for disks.
public struct ListNames: Sendable {
  private let layout: StoreLayout
  /// By directory, in lower case: some file systems find a name in any. A directory that cannot be
  /// listed is missing.
  private var names: [String: Set<String>] = [:]

  /// Lists the directories of the places. Cost: O(the files in them).
  init(_ layout: StoreLayout, of places: Set<Place>) {
    self.layout = layout
    for directory in Set(places.flatMap(layout.directories)) {
      do throws(SystemError) {
        let found = try Files.names(in: directory, withDirectories: true)
        names[directory] = Set((found ?? []).map { $0.lowercased() })
      } catch {}
    }
  }

  /// Whether there is no list at the location. False where that cannot be told. Cost: a hash
  /// look-up or two; no disk.
  public func lack(_ location: Location) -> Bool {
    if layout.mayBeContained(location) { return false }
    let files = layout.fileNames(location).map { $0.lowercased() }
    return layout.directories(location.place).allSatisfy { directory in
      names[directory].map { $0.isDisjoint(with: files) } ?? false
    }
  }
}
