import CLinux
import Glibc
import SystemCalls

/// The driver's end of the channel to its guard.
///
/// A guard that ends is replaced: the driver starts another one and gives it the device, the saved
/// state and the mount's command line, at most every 50 ms.
///
/// Threads: the loop's alone.
public final class GuardLine {
  private var channel: GuardChannel?
  private let words: [String]
  private let log: (LogLine) -> Void
  /// The guards that this process has started and that may have ended.
  private var guards: [pid_t] = []
  private var device: CInt = -1
  private var state: CInt = -1
  private var connection: UInt32?
  /// Whether the end of this process is that of the mount.
  private var isServing = false
  private var isHandingOver = false
  private var nextStart = Instant.now

  /// Takes the channel that the guard has started this process with.
  /// - Parameter words: the mount's command line.
  public init(_ words: [String], log: @escaping (LogLine) -> Void) {
    (self.words, self.log) = (words, log)
    prefsfs_name_thread("prefsfs")
    _ = fcntl(Handover.channel, F_SETFD, FD_CLOEXEC)
    adopt(Handover.channel)
  }

  private func adopt(_ number: CInt) {
    channel = GuardChannel(Descriptor(owning: number))
    CrashReport.tell(number)
  }

  /// The descriptor to be polled; -1: there is no guard.
  var descriptor: CInt { channel?.descriptor.number ?? -1 }

  /// Gives the guard what a successor needs.
  /// - Parameter connection: the connection's number in fusectl, if it is known.
  func give(device: CInt, state: CInt, connection: UInt32?) {
    (self.device, self.state, self.connection) = (device, state, connection)
    channel?.send(.device, connection ?? 0, descriptor: device)
    channel?.send(.state, descriptor: state)
  }

  /// Notes what the guard has already.
  func keep(device: CInt, state: CInt, connection: UInt32?) {
    (self.device, self.state, self.connection) = (device, state, connection)
  }

  /// Tells the guard that the mount is served.
  public func reportReady() {
    channel?.send(.ready)
    isServing = true
  }

  /// Tells the guard that the mount is over, unless it goes on with a successor, or this process is
  /// a successor that could not begin.
  public func reportEnd(_ status: Int32) {
    if isServing { channel?.send(.ended, UInt32(bitPattern: status)) }
  }

  /// Tells the guard that this process ends for a successor.
  func reportHandover() {
    channel?.send(.handedOver)
    isServing = false
    isHandingOver = true
  }

  /// Sees to it that there is a guard when this process ends for a successor: another one, if the
  /// present one has ended meanwhile. Call it last.
  public func finishHandover() {
    guard isHandingOver else { return }
    if case .end? = channel?.receive() { channel = nil }
    if channel == nil {
      replace(isUrgent: true)
      channel?.send(.handedOver)
    }
  }

  /// Tells the guard that this driver goes on, and hands nothing over.
  func refuseHandover() { channel?.send(.ready) }

  /// Asks the guard to replace this driver by the program that is installed now.
  func askForUpgrade() { channel?.send(.upgrade) }

  /// Handles what the guard has sent, or its end.
  /// - Returns: whether it asks for a handover.
  func receive() -> Bool {
    switch channel?.receive() ?? .nothing {
    case .nothing: return false
    case .message(let message): return message.word == .handOver
    case .end:
      channel = nil
      replace()
      return false
    }
  }

  /// When `replace` must be called; nil if there is a guard.
  var deadline: Instant? { channel == nil && device >= 0 ? nextStart : nil }

  /// Starts a guard, if there is none and 50 ms have passed since the last try.
  /// - Parameter isUrgent: whether it does not matter when the last try was.
  func replace(isUrgent: Bool = false) {
    guard channel == nil, device >= 0, isUrgent || nextStart <= .now else { return }
    guards.removeAll { waitpid($0, nil, WNOHANG) != 0 }
    nextStart = Instant.now.advanced(milliseconds: 50)
    do throws(SystemError) {
      let (own, its) = try GuardChannel.pair()
      let end = Descriptor(owning: its)
      adopt(own)
      let guardian = try Handover.start(
        "/proc/self/exe", [Guard.Role.guardian.rawValue] + words,
        [
          "\(Handover.driverVariable)=\(getpid())",
          "\(Handover.connectionVariable)=\(connection.map { "\($0)" } ?? "")",
        ], channel: end.number, device: device, state: state)
      guards.append(guardian)
      log("the guard of the mount had ended; there is a new one")
    } catch {
      channel = nil
      log("no guard process was started; if the driver ends, so does the mount: \(error)")
    }
  }
}
