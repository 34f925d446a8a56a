import Glibc
import PreferenceModel
import PreferenceProtocol
import StoreAccess
import SystemCalls

/// A new connection to an owner, which has answered hello.
struct Greeting {
  let socket: SharedSocket
  /// The version of the owner's last change when it answered.
  let version: UInt64
  /// Whether the owner refuses every change.
  let isReadOnly: Bool
  /// The version of the owner's last change of which it tells this client, in shared memory.
  let number: SharedNumber
  /// The bytes that came after the answer.
  let rest: FrameReader

  /// Connects and says hello, and sends the first request with that, so that the owner wakes up
  /// once. Returns nil if no process listens, if it does not answer before the deadline, or if it
  /// has other directories under the store's names. Throws the owner's refusal, and EPERM if the
  /// process belongs to a different user.
  /// - Parameters:
  ///   - first: the frame of the first request; empty if there is none.
  ///   - identity: the directories that this process sees.
  ///   - hearsAll: see `ClientManner`.
  init?(
    _ path: String, client: UInt64, first: [UInt8], _ identity: StoreIdentity, hearsAll: Bool,
    until deadline: Instant
  ) throws(EngineError) {
    let hello = Request.hello(
      version: Request.version, client: client, clock: .now, identity, hearsAll: hearsAll)
    let connected = try EngineError.wrapping { () throws(SystemError) in
      try Self.connect(path, hello.frame(1) + first)
    }
    guard let socket = connected else { return nil }
    var reader = FrameReader(largest: Message.largest)
    var file: SharedDescriptor?
    let start = Instant.now
    while true {
      switch socket.value.receive(into: &reader.bytes, &file) {
      case .ended: return nil
      case .later where Polling.looksAgain(since: start): break
      case .later: guard socket.value.wait(until: deadline) else { return nil }
      case .moved:
        guard let message = try Self.message(&reader) else { continue }
        let served: StoreIdentity
        (version, isReadOnly, number, served) = try Self.read(message, file, path)
        guard served.agrees(with: identity) else { return nil }
        (self.socket, rest) = (socket, reader)
        return
      }
    }
  }

  private static func connect(
    _ path: String, _ hello: [UInt8]
  ) throws(SystemError) -> SharedSocket? {
    guard let socket = try Socket.connected(to: path) else { return nil }
    guard socket.peer?.user == geteuid() else {
      throw SystemError("connect", path, .notPermitted)
    }
    return socket.send(hello[...]) == .moved(hello.count) ? SharedSocket(socket) : nil
  }

  private static func message(_ reader: inout FrameReader) throws(EngineError) -> Message? {
    do throws(ProtocolError) {
      return try reader.next().map { frame throws(ProtocolError) in try Message(frame) }
    } catch {
      throw EngineError(
        .system(.invalidArgument), "the process that listens there is not an owner: \(error)")
    }
  }

  private static func read(
    _ message: Message, _ file: SharedDescriptor?, _ path: String
  ) throws(EngineError) -> (UInt64, Bool, SharedNumber, StoreIdentity) {
    if case .failed(let error) = message { throw error }
    guard case .welcome(let version, let isReadOnly, let served, let spoken, let index) = message
    else {
      throw EngineError(
        .system(.invalidArgument), "\(path): the process that listens there is not an owner")
    }
    guard let file else {
      throw EngineError(
        .system(.tooManyOpen),
        "this process has no descriptor left for a connection (ulimit -n)")
    }
    guard spoken >= Request.oldest else {
      throw EngineError(
        .system(.invalidArgument),
        "prefsd speaks version \(spoken) of the messages, and this program no version before "
          + "\(Request.oldest); upgrade prefsd (prefsfs --upgrade)")
    }
    let number = try EngineError.wrapping { () throws(SystemError) in
      try SharedNumber(reading: file.value, at: Int(index))
    }
    return (version, isReadOnly, number, served)
  }
}
