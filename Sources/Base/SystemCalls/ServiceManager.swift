import CLinux
import Glibc

/// The service manager that has started this process, such as systemd (sd_notify(3)).
public enum ServiceManager {
  /// Tells the service manager that the service is ready (`Type=notify`). Does nothing where there
  /// is none, or it does not listen. It does not wait.
  public static func reportReady() {
    guard let pointer = getenv("NOTIFY_SOCKET") else { return }
    var path = Array(String(cString: pointer).utf8)
    // "@" stands for the NUL that begins the name of an abstract socket.
    if path.first == UInt8(ascii: "@") { path[0] = 0 }
    var address = sockaddr_un()
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let size = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
    let number = socket(
      AF_UNIX, CInt(SOCK_DGRAM.rawValue) | prefsfs_sock_cloexec | prefsfs_sock_nonblock, 0)
    guard number >= 0 else { return }
    let descriptor = Descriptor(owning: number)
    let message = Array("READY=1".utf8)
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = sendto(descriptor.number, message, message.count, CInt(MSG_NOSIGNAL), $0, size)
      }
    }
  }
}
