import Glibc
import PreferenceModel
import StoreAccess
import SystemCalls

/// What a mount shows and changes: a store, as this process has it.
public struct MountedStore: Sendable {
  /// The search list over the store's places.
  let engine: any Engine
  /// What the control directory `.prefs` shows.
  let control: any ControlService
  /// Waits for the disk and for other mounts.
  let services: any DurabilityService & MountCoordinator
  /// Reads lists on other threads, so that the loop need not wait for one.
  let lists: ListReader
  /// Numbers changes, so that a successor of the driver can repeat one; nil if nobody does.
  let changes: (any RepeatableChanges)?
  /// The defaults that the mount has registered; nil if there is no place for them.
  let registered: (any RegisteredDefaults)?
  /// A path on the file system that statfs(2) of the mount reports.
  let volume: String

  /// Creates a store to be mounted from its parts.
  /// - Parameters:
  ///   - engine: the search list over the store's places.
  ///   - control: what the control directory `.prefs` shows.
  ///   - services: waits for the disk and for other mounts.
  ///   - lists: reads lists on other threads.
  ///   - changes: numbers changes, so that a successor of the driver can repeat one.
  ///   - registered: the defaults that the mount has registered.
  ///   - volume: the directory of the user's lists.
  public init(
    engine: any Engine, control: any ControlService,
    services: any DurabilityService & MountCoordinator, lists: ListReader,
    changes: (any RepeatableChanges)? = nil, registered: (any RegisteredDefaults)? = nil,
    volume: String
  ) {
    (self.engine, self.control, self.services) = (engine, control, services)
    (self.lists, self.volume) = (lists, volume)
    (self.changes, self.registered) = (changes, registered)
  }

  /// Returns when every change that was made before is on the disk, with the answer to fsync(2).
  func synchronized() -> Answer {
    do {
      try services.makeDurable()
      return .done
    } catch {
      if case .system(let errno) = error.reason { return .error(errno) }
      return .error(.inputOutput)
    }
  }

  /// The size of the file system of the lists; zeros where its directory is not there yet. Cost:
  /// statvfs(3), which may wait for a disk for ever.
  var space: statvfs { Self.shown(try? Files.space(volume)) }

  /// What statfs(2) shows of a file system, and of one that does not answer.
  static func shown(_ found: statvfs?) -> statvfs {
    var shown = statvfs()
    let blockSize = found?.f_frsize ?? 4096
    (shown.f_bsize, shown.f_frsize, shown.f_namemax) = (blockSize, blockSize, 255)
    shown.f_blocks = found?.f_blocks ?? 0
    (shown.f_bfree, shown.f_bavail) = (found?.f_bfree ?? 0, found?.f_bavail ?? 0)
    return shown
  }
}
