import CFUSE
import CLinux
import Glibc
import PreferenceTree
import Synchronization
import SystemCalls

/// Makes inotify events on the mount for changes that did not come through it. FUSE gives watchers
/// no event for such a change, but an operation on the mount does, so a thread of the driver
/// performs one. The driver recognises the requests of that thread and changes nothing for them.
///
/// A changed key is opened for writing, gets space that it has already (fallocate(2): IN_MODIFY),
/// and is closed (IN_CLOSE_WRITE). A name that appeared is created (IN_CREATE), and one that is
/// gone is removed (IN_DELETE, and for a key's file IN_DELETE_SELF). Content is never written,
/// because that would race with a user's write. Nor is the modification time set, but where the
/// file may not be opened for writing: the kernel stores the size of a SETATTR reply even if the
/// file was changed again after the reply was sent, and a reader would get a text that is cut, or
/// has NULs at its end (fs/fuse/dir.c, fuse_do_setattr).
///
/// A mount point that no longer shows this mount (after a lazy unmount, or with another mount over
/// it) is never touched: every operation is relative to a directory on this mount's device.
///
/// Threads: `perform` runs on the invalidator's thread, and waits for the loop to answer its
/// requests; `purpose` runs on the loop's. Locks: `state`, for one look; no request is made
/// under it.
final class Announcer: Sendable {
  private struct State {
    var mountPoint = ""
    var device: dev_t?
    var thread: pid_t = 0
    var current: Announcement?
    /// The thread of a predecessor that was announcing when its process ended, and until when its
    /// last request may come.
    var interrupted: (thread: pid_t, until: Instant)?
  }

  private let state = Mutex(State())

  /// Records where the mount is, and its device; called once, right after mounting.
  /// - Returns: the mount; nil if proc(5) does not list it. stat(2) is no alternative: it would ask
  ///   the driver, which does not answer yet.
  func setMountPoint(_ path: String) -> MountInformation.Mount? {
    let mount = MountInformation.mount(at: path)
    state.withLock { ($0.mountPoint, $0.device) = (path, mount?.device) }
    return mount
  }

  /// Goes on for a predecessor.
  /// - Parameter interrupted: the thread that was announcing when the predecessor ended; 0 if there
  ///   is none.
  func adopt(_ facts: MountFacts, interrupted thread: pid_t) {
    let until = Instant.now.advanced(milliseconds: 2000)
    state.withLock { state in
      (state.mountPoint, state.device) = (facts.path, dev_t(facts.device))
      if thread != 0 { state.interrupted = (thread, until) }
    }
  }

  /// Whether the thread was a predecessor's, which was announcing when its process ended. It is
  /// gone, but its last request may still come.
  func wasInterrupted(_ thread: pid_t) -> Bool {
    state.withLock { state in
      guard let interrupted = state.interrupted else { return false }
      if interrupted.until < .now { state.interrupted = nil }
      return interrupted.thread == thread
    }
  }

  /// Returns the announcement that a request of the thread is a part of; nil for any other thread.
  func purpose(of thread: pid_t) -> Announcement? {
    state.withLock { $0.thread == thread ? $0.current : nil }
  }

  /// Performs the operations that give watchers the event. Blocks until the loop has answered them.
  /// Does nothing if the mount or the domain is gone.
  /// - Parameter note: called with the thread's number before its first request, and with 0 after
  ///   the last one.
  func perform(
    _ announcement: Announcement, _ session: SessionPointer, note: (pid_t) -> Void
  ) {
    let (mountPoint, device) = state.withLock { ($0.mountPoint, $0.device) }
    do throws(SystemError) {
      // The look-ups on the way to the directory are not yet a part of the announcement.
      let place = try Descriptor(
        opening: mountPoint + "/" + announcement.directory, prefsfs_o_path | O_DIRECTORY)
      // While the connection lives, no other mount has the number of the device.
      guard try place.status().st_dev == device,
        KernelConnection(device: fuse_session_fd(session.raw)).isAlive
      else { return }
      state.withLock { ($0.current, $0.thread) = (announcement, prefsfs_thread_id()) }
      note(prefsfs_thread_id())
      defer {
        state.withLock { $0.current = nil }
        note(0)
      }
      announce(announcement, in: place.number, session)
    } catch {
      // The mount or the domain is gone, and its watchers with it.
    }
  }

  private func announce(
    _ announcement: Announcement, in place: CInt, _ session: SessionPointer
  ) {
    let name = announcement.name
    switch (announcement.kind, announcement.isDomain) {
    case (.created, true): mkdirat(place, name, 0o700)
    case (.removed, true): remove(announcement, in: place, AT_REMOVEDIR, session)
    case (.created, _): close(openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
    case (.removed, _): remove(announcement, in: place, 0, session)
    case (.changed(let time), _):
      let file = openat(place, name, O_WRONLY | O_CLOEXEC)
      if file >= 0 {
        _ = prefsfs_reserve(file, 1)
        close(file)
      } else {
        // A file that may not be opened for writing. UTIME_OMIT for the access time: with both
        // times the event would be IN_ATTRIB.
        var times = [timespec(tv_sec: 0, tv_nsec: Int(prefsfs_utime_omit)), time.timespec]
        utimensat(place, name, &times, 0)
      }
    }
  }

  /// Unlinks a name that is gone already. A program that has looked it up meanwhile has made the
  /// kernel cache that it is missing; then there is no event until that is dropped.
  private func remove(
    _ announcement: Announcement, in place: CInt, _ flags: CInt, _ session: SessionPointer
  ) {
    let name = announcement.name
    for _ in 0..<10 {
      if unlinkat(place, name, flags) == 0 || errno != ENOENT { return }
      guard let parent = announcement.parent else { return }
      fuse_lowlevel_notify_inval_entry(session.raw, parent.rawValue, name, name.utf8.count)
    }
  }

  private func close(_ number: CInt) { if number >= 0 { _ = Glibc.close(number) } }
}
