import CLinux
import Glibc
import SystemCalls

/// The connection between a driver and its guard: a pair of sockets that keep messages apart
/// (SOCK_SEQPACKET). A message is a word, a number and, for some words, a descriptor.
final class GuardChannel {
  enum Word: UInt32 {
    // From the driver.
    /// The device of the connection to the kernel is with the message; the number is that of the
    /// connection in fusectl.
    case device = 1
    /// The memory in which the driver saves its state is with the message.
    case state
    /// The driver serves the mount, or goes on serving it where it was asked to hand over.
    case ready
    /// The mount is over; the number is the driver's exit status.
    case ended
    /// The driver has ended for a successor.
    case handedOver
    /// The driver crashes; the number is the signal. It may go on for a while: the kernel writes a
    /// core dump before it closes the channel.
    case crashing
    /// Asks the guard for an upgrade.
    case upgrade
    // From the guard.
    /// Asks the driver to end for a successor.
    case handOver
  }

  struct Message {
    var word: Word
    var number: UInt32
    /// The received descriptor, which the receiver owns; negative if there is none.
    var descriptor: CInt
  }

  enum Received {
    case message(Message)
    /// There is no message at the moment.
    case nothing
    /// The other end is gone.
    case end
  }

  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// Creates the two ends.
  static func pair() throws(SystemError) -> (CInt, CInt) {
    var ends: [CInt] = [-1, -1]
    if prefsfs_packet_pair(&ends) != 0 { throw SystemError("socketpair", "") }
    return (ends[0], ends[1])
  }

  /// Sends a message; does nothing if the other end is gone.
  func send(_ word: Word, _ number: UInt32 = 0, descriptor sent: CInt? = nil) {
    var bytes = [word.rawValue, number]
    if let sent {
      _ = prefsfs_send_descriptor(descriptor.number, &bytes, 8, sent)
    } else {
      _ = Glibc.send(descriptor.number, &bytes, 8, CInt(MSG_NOSIGNAL))
    }
  }

  /// Receives a message. It does not wait.
  func receive() -> Received {
    var bytes: [UInt32] = [0, 0]
    var received: CInt = -1
    let count = prefsfs_receive(descriptor.number, &bytes, 8, &received)
    if count == 0 || count < 0 && errno == ECONNRESET { return .end }
    guard count == 8, let word = Word(rawValue: bytes[0]) else {
      if received >= 0 { close(received) }
      return .nothing
    }
    return .message(Message(word: word, number: bytes[1], descriptor: received))
  }
}

/// The descriptors and variables with which a guard starts a driver, and a driver a guard.
enum Handover {
  /// The channel; then, where a mount is handed over, its device and the saved state.
  static let (channel, device, state): (CInt, CInt, CInt) = (3, 4, 5)
  /// The process of the driver, for a guard that a driver has started.
  static let driverVariable = "PREFSFS_DRIVER_PROCESS"
  /// The number of the connection in fusectl.
  static let connectionVariable = "PREFSFS_CONNECTION"
  /// How the predecessor ended: see `PredecessorEnding`.
  static let endingVariable = "PREFSFS_PREDECESSOR_ENDING"
  /// Set where log lines go to the system's log.
  static let backgroundVariable = "PREFSFS_IN_BACKGROUND"
  /// The word that asks a program whether it takes over from a driver of that version; its exit
  /// status is 0 if it does.
  static let takesStateWord = "--takes-state"

  /// Starts a program with these descriptors in their places.
  static func start(
    _ program: String, _ words: [String], _ variables: [String], channel: CInt, device: CInt?,
    state: CInt?
  ) throws(SystemError) -> pid_t {
    var variables = variables
    if getenv(backgroundVariable) != nil { variables.append("\(backgroundVariable)=1") }
    return try Child.start(
      program, [CommandLine.arguments[0]] + words, variables: variables,
      descriptors: [channel] + [device, state].compactMap { $0 })
  }
}
