import PreferenceModel
import Synchronization
import SystemCalls

// A directory of the user's lists that was there and is gone, or is not there yet: a home that is not
// mounted, more often than one whose lists somebody has removed.

extension Lists {
  /// Throws where the location's list lies in the user's directory of lists, and that directory was
  /// there and is gone, or is awaited. Nothing is made in its place, and what it had is not
  /// missing: reads and changes fail until it is there again. Cost: a stat(2) for a location of the
  /// user's.
  func requireHome(_ location: Location) throws(EngineError) {
    guard location.place == .user || location.place == .host, isHomeGone else { return }
    throw EngineError(
      .unreadable, domain: location.domain,
      "\(layout.userDirectory) is gone, or not there yet, perhaps with a file system; mount that, or "
        + "make the directory if it was removed on purpose")
  }

  /// The same for what this store makes below the home.
  func requireHome() throws(SystemError) {
    if isHomeGone { throw SystemError("open", layout.userDirectory, .noSuchFile) }
  }

  private var isHomeGone: Bool {
    if Files.isDirectory(layout.userDirectory) {
      hasHome.store(true, ordering: .relaxed)
      return false
    }
    return hasHome.load(ordering: .relaxed)
  }
}
