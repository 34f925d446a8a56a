import FUSEDriver
import Glibc
import PropertyList
import SystemCalls

/// Asks a mount for its state, on a thread of its own, because a mount whose driver is stopped does
/// not answer. Root asks as the mount's user: FUSE lets nobody else in, not even root.
final class StatusQuestion: Sendable {
  enum Answer: Sendable {
    case status([UInt8])
    case refused(ExitStatus, reason: String)
  }

  private let monitor = Monitor<Answer?>(nil)
  private let end = Instant.now.advanced(milliseconds: patience)
  /// Milliseconds that a mount has to answer.
  private static let patience: Int64 = 2000

  init(_ mount: MountInformation.Mount) {
    let monitor = monitor
    do throws(SystemError) {
      try WorkerThread(name: "prefs-status") {
        if geteuid() == 0, let user = mount.user, user != 0 {
          try? WorkerThread.become(user: user, group: mount.group ?? user)
        }
        let answer = Self.ask(mount.path)
        monitor.change { $0 = answer }
      }.detach()
    } catch {
      monitor.change { $0 = .refused(.failure, reason: "\(error)") }
    }
  }

  /// The answer. Waits for it until 2 s after the question.
  func answer() -> Answer {
    monitor.wait(until: end) { $0 }
      ?? .refused(
        .mountSilent, reason: "the mount has not answered for 2 s; is its driver stopped?")
  }

  private static func ask(_ path: String) -> Answer {
    do throws(SystemError) {
      return .status(try ExtendedAttributes.value(of: statusAttribute, path))
    } catch {
      switch error.errno {
      case .notConnected:
        return .refused(
          .mountDead,
          reason: "the processes of the mount have ended; mount again, or fusermount3 -u")
      case .permissionDenied, .notPermitted:
        return .refused(.mountForbidden, reason: "it is another user's mount; root may ask")
      case .timedOut:
        return .refused(
          .mountSilent, reason: "the owner of its store does not answer; is prefsd stopped?")
      default: return .refused(.failure, reason: "\(error)")
      }
    }
  }
}

/// What `--list` says of a mount.
struct MountLine {
  private let values: ValueDictionary

  init(_ mount: MountInformation.Mount, _ answer: StatusQuestion.Answer) {
    var values: ValueDictionary = ["mount point": .string(mount.path)]
    if let user = mount.user {
      values["user"] = .string(Account.numbered(user)?.name ?? "\(user)")
    }
    switch answer {
    case .status(let bytes):
      if case .dictionary(let status)? = try? Document.read(bytes, limits: .standard).value {
        for key in ["process", "owner", "store", "version"] as [Key] { values[key] = status[key] }
      }
      values["state"] = "fine"
    case .refused(let status, _):
      let states: [ExitStatus: String] = [
        .mountDead: "dead", .mountSilent: "silent", .mountForbidden: "forbidden",
      ]
      values["state"] = .string(states[status] ?? "failed")
    }
    self.values = values
  }

  /// The mount as an object of JSON, on one line.
  var json: String { Document.lineOfJSON(.dictionary(values), space: "") }

  /// The mount point, its user, its state, and the processes of driver and owner.
  var text: String {
    let word = { (key: Key) -> String in
      switch self.values[key] {
      case .string(let text)?: text.printable()
      case .integer(let number)?: "\(number)"
      default: "-"
      }
    }
    return [
      word("mount point"), word("user"), word("state"), "driver", word("process"), "owner",
      word("owner"),
    ].joined(separator: " ")
  }
}
