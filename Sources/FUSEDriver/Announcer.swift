import CFUSE
import CLinux
import Glibc
import PreferenceTree
import Synchronization
import SystemCalls

/// Gives watchers real events for changes that did not come through the mount (law 6): FUSE has
/// none for them, a thread that performs the operation on the mount does. The driver knows the
/// requests of that thread and changes nothing for them.
///
/// What is done: a changed key gets its new modification time (IN_MODIFY), and is opened for
/// writing and closed (IN_CLOSE_WRITE); a name that came is created (IN_CREATE), one that went is
/// removed (IN_DELETE). Content is never written: it would race with a user's write.
///
/// Threads: `perform` the notifier's, `purpose` the loop's. A mount point that is no
/// longer ours (a lazy unmount, another mount over it) is never touched: everything is done
/// relative to a directory of our own device.
final class Announcer: Sendable {
  private struct State {
    var mountPoint = ""
    var device: dev_t?
    var thread: pid_t = 0
    var current: Announcement?
  }

  private let state = Mutex(State())

  /// Where the mount is, and its device; set once, when it has just been mounted.
  /// - Returns: the mount; nil where proc(5) does not say. stat(2) would ask the driver, which does not
  ///   answer yet.
  func setMountPoint(_ path: String) -> MountInformation.Mount? {
    let mount = MountInformation.mount(at: path)
    state.withLock { ($0.mountPoint, $0.device) = (path, mount?.device) }
    return mount
  }

  /// The announcement that the request is a part of; nil for everybody else's requests.
  func purpose(of request: fuse_req_t?) -> Announcement? {
    guard let context = fuse_req_ctx(request) else { return nil }
    return state.withLock {
      $0.current != nil && $0.thread == context.pointee.pid ? $0.current : nil
    }
  }

  /// Whether a request of the thread is a part of an announcement.
  func isThread(_ thread: pid_t) -> Bool {
    state.withLock { $0.current != nil && $0.thread == thread }
  }

  func perform(_ announcement: Announcement) {
    let (mountPoint, device) = state.withLock { state in
      (state.current, state.thread) = (announcement, prefsfs_thread_id())
      return (state.mountPoint, state.device)
    }
    defer { state.withLock { $0.current = nil } }
    let directory =
      announcement.key == nil ? mountPoint : mountPoint + "/" + announcement.domain
    do throws(SystemError) {
      let place = try Descriptor(opening: directory, prefsfs_o_path | O_DIRECTORY)
      guard try place.status().st_dev == device else { return }
      announce(announcement, in: place.number)
    } catch {
      // The mount, or the domain, is gone: there is nobody to tell.
    }
  }

  private func announce(_ announcement: Announcement, in place: CInt) {
    let name = announcement.key ?? announcement.domain
    switch (announcement.kind, announcement.key) {
    case (.created, nil): mkdirat(place, name, 0o700)
    case (.removed, nil): unlinkat(place, name, AT_REMOVEDIR)
    case (.created, _): close(openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
    case (.removed, _): unlinkat(place, name, 0)
    case (.changed(let time), _):
      // UTIME_OMIT for the time of access: with both times the event would be IN_ATTRIB.
      var times = [timespec(tv_sec: 0, tv_nsec: Int(prefsfs_utime_omit)), time.timespec]
      utimensat(place, name, &times, 0)
      close(openat(place, name, O_WRONLY | O_CLOEXEC))
    }
  }

  private func close(_ number: CInt) { if number >= 0 { _ = Glibc.close(number) } }
}

extension Driver {
  /// Whether the request is the announcer's for just this name.
  private func announcement(
    _ request: fuse_req_t?, _ parent: NodeID, _ name: [UInt8]
  ) -> Announcement? {
    guard let purpose = announcer.purpose(of: request) else { return nil }
    let isHere = (parent == .root) == (purpose.key == nil)
    return isHere && (purpose.key ?? purpose.domain).utf8.elementsEqual(name) ? purpose : nil
  }

  /// A look-up: the announcer finds no name that is to be created, and one that is to be removed.
  func lookup(
    _ request: fuse_req_t?, _ parent: NodeID, _ name: [UInt8]
  ) throws(TreeError) -> Answer {
    switch announcement(request, parent, name)?.kind {
    case .created: return .missing(isRemembered: false)
    case .removed: return .entry(try tree.ghost(isDirectory: parent == .root, now: .now))
    case .changed, nil: break
    }
    switch try tree.lookup(parent, name, now: .now) {
    case .found(let entry): return .entry(entry)
    case .missing(let isRemembered): return .missing(isRemembered: isRemembered)
    }
  }

  /// The entry that the announcer gets for a name that it creates; nil for everybody else.
  func createdEntry(
    _ request: fuse_req_t?, _ parent: NodeID, _ name: [UInt8]
  ) throws(TreeError) -> Entry? {
    guard announcement(request, parent, name)?.kind == .created else { return nil }
    guard case .found(let entry) = try tree.lookup(parent, name, now: .now) else {
      throw .missing
    }
    return entry
  }

  /// Whether the announcer removes a name that is gone. One that is there again stays: the refusal
  /// keeps the kernel from forgetting it.
  func isGhost(
    _ request: fuse_req_t?, _ parent: NodeID, _ name: [UInt8]
  ) throws(TreeError) -> Bool {
    guard announcement(request, parent, name)?.kind == .removed else { return false }
    if case .found(let entry)? = try? tree.lookup(parent, name, now: .now) {
      tree.forget(entry.node, 1)
      throw .exists
    }
    return true
  }
}
