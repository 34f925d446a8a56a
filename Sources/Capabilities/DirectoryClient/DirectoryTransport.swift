import Glibc
import PreferenceCloud
import SystemCalls

/// Carries the requests of a session to a directory that some other program synchronises, where
/// each host has a file (`CloudDirectory`). It answers them itself, as a server would.
///
/// A change of the directory is seen at once where inotify(7) tells of it, otherwise when the
/// session asks whether the server is there: each 10 to 15 s.
///
/// Threads: one. Each call may wait for the file system.
public final class DirectoryTransport: CloudTransport {
  private var directory: CloudDirectory
  private let path: String
  /// nil where the user has too many of them.
  private let changes = try? DirectoryWatch()
  private let settling: UInt32
  private var isWatching = false
  /// What has happened and was not returned yet.
  private var happened: [CloudSession.Input] = []

  /// Creates a transport to the directory. Nothing is read yet.
  /// - Parameters:
  ///   - coding: the coding of the session.
  ///   - identity: what tells the values of this cloud from those of others.
  ///   - state: what the host knows. Its revisions go on.
  ///   - file: which file is this host's.
  ///   - newHost: draws a new name of this host.
  ///   - save: saves which file is this host's, before that is written.
  ///   - settling: milliseconds in which a program that writes a file takes its next step.
  public init(
    _ path: String, _ coding: EtcdCoding, _ sealer: any ValueSealer, identity: String,
    _ state: CloudState, file: HostFileIdentity, newHost: @escaping () -> String,
    save: @escaping (HostFileIdentity) -> Void, settling: UInt32 = 10,
    log: @escaping (LogLine) -> Void
  ) {
    var known: [[UInt8]: (stamp: Stamp, revision: Int64)] = [:]
    for (key, record) in state.known {
      known[coding.name(key)] = (record.record.stamp, record.revision)
    }
    let server = DirectoryServer(
      prefix: coding.prefix, identity: identity, revision: state.revision, known: known)
    directory = CloudDirectory(
      path, server, sealer, file, newHost: newHost, save: save, log: log)
    (self.path, self.settling) = (path, settling)
  }

  /// Reads the directory, and carries the request out.
  public func call(_ url: String, _ body: [UInt8], token: String?, patience: Int) {
    do throws(SystemError) {
      try directory.look()
      let now = Timestamp.now.nanoseconds / 1_000_000
      let answer: [UInt8]
      switch directory.server.handle(url, body, now: now) {
      case .answer(let bytes): answer = bytes
      case .append(let records):
        try directory.append(records)
        answer = directory.server.pushed
      case .refused: return happened.append(.failed("a directory has no answer to this request"))
      }
      happened.append(.answered(status: 200, body: answer, date: now))
    } catch {
      happened.append(.failed("\(error)"))
    }
  }

  /// Tells of changes from now on.
  public func watch(_ url: String, _ body: [UInt8], token: String?) {
    directory.server.watch(body)
    isWatching = true
    // What lies between a look and this is found by the next question.
    _ = try? changes?.add(path)
  }

  /// Stops telling of changes.
  public func endWatch() {
    directory.server.endWatch()
    isWatching = false
  }

  /// Forgets what has happened, and stops telling of changes.
  public func disconnect() {
    endWatch()
    happened = []
  }

  /// Waits for a change of the directory, too.
  public func wait(until deadline: Instant?, or descriptors: [CInt]) -> [CloudSession.Input] {
    if happened.isEmpty { poll(until: deadline, descriptors) }
    defer { happened = [] }
    return happened + directory.server.removeLines().map { .watched($0) }
  }

  private func poll(until deadline: Instant?, _ descriptors: [CInt]) {
    var entries = ([changes?.number ?? -1] + descriptors).map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let limit = deadline.map { CInt(clamping: max(0, $0.milliseconds(after: .now))) } ?? -1
    _ = Glibc.poll(&entries, nfds_t(entries.count), limit)
    guard entries[0].revents != 0 else { return }
    Instant.sleep(milliseconds: settling)
    _ = changes?.events()
    guard isWatching else { return }
    do throws(SystemError) { try directory.look() } catch {
      happened.append(.watchEnded("\(error)"))
    }
  }
}
