import Glibc
import SystemCalls

/// The connection of a mount to the kernel, by a descriptor of its device (fuse(4)).
struct KernelConnection {
  /// A descriptor of `/dev/fuse`; negative if there is none.
  let device: CInt

  /// Whether the connection has not ended: by the end of the mount, or because it was aborted. The
  /// kernel ends it when the mount is gone, before it gives the number of the mount's device to
  /// another mount.
  var isAlive: Bool {
    guard device >= 0 else { return false }
    var entry = pollfd(fd: device, events: 0, revents: 0)
    return poll(&entry, 1, 0) >= 0 && entry.revents & Int16(POLLERR) == 0
  }

  /// The mount point, which changes when a directory above it is renamed; nil where the mount was
  /// taken off its directory.
  /// - Parameter number: the number of the mount's device (`st_dev`). While the connection lives,
  ///   no other mount has it; afterwards, one that answers has got it.
  func mountPoint(_ number: dev_t) -> String? {
    guard let found = MountInformation.mount(on: number) else { return nil }
    return isAlive || found.kind == "fuse.prefsfs" && Self.isDead(found.path) ? found.path : nil
  }

  /// Whether a mount whose connection has ended is at the path. Waits a second at most, because
  /// there may be a mount of another driver, which hangs.
  private static func isDead(_ path: String) -> Bool {
    let answer = Monitor<Bool?>(nil)
    let isAsked = BlockingThreads(name: "prefs-dead", most: 1).run {
      let isDead = MountInformation.isDead(path)
      answer.change { $0 = isDead }
    }
    return isAsked && answer.wait(until: Instant.now.advanced(milliseconds: 1000)) { $0 } == true
  }

  /// Takes the mount off its mount point at once. What has a file of it open keeps that.
  /// - Parameter point: what `mountPoint` has returned a moment ago.
  /// - Returns: whether it did. It does not where another mount lies on top of this one.
  static func unmount(_ point: String, _ number: dev_t) -> Bool {
    MountInformation.mount(at: point)?.device == number && Unmount.lazily(point)
  }
}
