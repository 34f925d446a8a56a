import CLinux
import Glibc
import SystemCalls

/// The process that a mount begins with: it starts the driver, holds what a successor of the driver
/// needs, and starts the successor when the driver ends without having ended the mount.
///
/// Promises:
/// - The connection to the kernel lives as long as the guard or the driver has its device. When the
///   driver ends, however that happens, a successor goes on with it within milliseconds; requests
///   wait meanwhile, and none fails.
/// - When three successors in a row end before they serve the mount, the guard ends the connection
///   and unmounts: every request to an open file then fails with ENOTCONN, but nothing hangs. So it
///   does after ten crashes, or a hundred times SIGKILL, within 10 s. A successor that does not
///   serve the mount within 60 s is ended.
/// - SIGTERM, SIGINT and SIGHUP are passed on to the driver, which ends the mount. SIGUSR2 replaces
///   the driver, and then the guard, by the program that is installed now, if that can take over.
/// - It reads nothing that others wrote, but the numbers of messages from its driver.
///
/// If the guard ends first, the driver starts another one and gives it everything (`GuardLine`).
///
/// Threads: one. When the guard gives up, a thread `prefs-dead` looks at the mount point, and the
/// guard waits a second for it at most.
public final class Guard {
  private let words: [String]
  private let log: (LogLine) -> Void
  private let becameReady: () -> Void
  /// The path at which this program is installed, also if its file was replaced since: for
  /// upgrades.
  private let installed: String
  /// This program, also after its file was replaced.
  private static let own = "/proc/self/exe"

  private let signals: Descriptor
  private var channel: GuardChannel?
  private var connection = Connection()
  /// What a successor must know; nil if no driver has given it yet.
  private var state: SharedDescriptor?
  private var driver = DriverProcess()
  private var hasBeenReady = false
  private var endStatus: UInt32?
  /// A signal that asks for the end of the mount, for a driver that was not ready for it.
  private var endSignal: Int32?
  private var isUpgrading = false
  /// Whether the driver runs the newly installed version and has served nothing yet.
  private var triesUpgrade = false
  private var endings = Endings()

  /// The connection to the kernel.
  private struct Connection {
    var device: SharedDescriptor?
    /// The file of fusectl that ends it; nil if it cannot be opened.
    var abort: SharedDescriptor?
    /// Its number in fusectl, which is the minor number of the mount's device.
    var number: UInt32?
  }

  /// The present driver.
  private struct DriverProcess {
    var number: pid_t = 0
    /// Whether this process has started it.
    var isChild = true
    /// Whether it serves the mount.
    var isReady = false
    var hasHandedOver = false
    /// Whether it was ended because it did not serve the mount.
    var hasHung = false
    /// When it is ended if it does not serve the mount by then; nil means never.
    var patienceEnd: Instant?
  }

  /// How predecessors of the driver have ended.
  private struct Endings {
    /// Those whose end was not explained yet.
    var unexplained: [pid_t] = []
    /// How many successors in a row have ended before they served the mount.
    var failures = 0
    var crashes: [Instant] = []
    var kills: [Instant] = []
  }

  /// Creates the guard of a mount.
  /// - Parameters:
  ///   - words: the mount's command line, which drivers get.
  ///   - becameReady: called once, when the mount is served for the first time.
  public init(
    _ words: [String], log: @escaping (LogLine) -> Void, becameReady: @escaping () -> Void
  ) throws(SystemError) {
    (self.words, self.log, self.becameReady) = (words, log, becameReady)
    signals = try Self.blockSignals()
    installed = Files.linkTarget(Self.own).map(ProcessFacts.withoutMark) ?? Self.own
    prefsfs_name_thread("prefs-guard")
  }

  private static func blockSignals() throws(SystemError) -> Descriptor {
    var set = sigset_t()
    sigemptyset(&set)
    for number in [SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD] { sigaddset(&set, number) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let number = signalfd(-1, &set, CInt(SFD_CLOEXEC) | CInt(SFD_NONBLOCK))
    if number < 0 { throw SystemError("signalfd", "") }
    return Descriptor(owning: number)
  }

  /// Starts the driver, and returns the exit status of the mount when it is over.
  public func run() throws(SystemError) -> Int32 {
    try start(Self.own, [Role.driver.rawValue])
    return serveMount()
  }

  /// Goes on for a driver that has lost its guard, or for the guard that this process was before an
  /// upgrade: with the descriptors of `Handover`.
  public func goOn() -> Int32 {
    channel = GuardChannel(Descriptor(owning: Handover.channel))
    connection.device = SharedDescriptor(Descriptor(owning: Handover.device))
    state = SharedDescriptor(Descriptor(owning: Handover.state))
    for number in Handover.channel...Handover.state { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    driver.number = getenv(Handover.driverVariable).flatMap { pid_t(String(cString: $0)) } ?? 0
    unsetenv(Handover.driverVariable)
    driver.isChild = waitpid(driver.number, nil, WNOHANG) == 0
    (driver.isReady, hasBeenReady) = (true, true)
    openAbort(getenv(Handover.connectionVariable).flatMap { UInt32(String(cString: $0)) })
    return serveMount()
  }

  /// What a process of a mount is, if it was started by another one: the first word of its command
  /// line. The words of the mount follow it.
  public enum Role: String {
    /// A guard that goes on for another one.
    case guardian = "--guard"
    /// The first driver of the mount.
    case driver = "--driver"
    /// A driver that goes on for another one.
    case successor = "--successor"
  }

  /// Whether the mount runs in the background: log lines go to the system's log once it is served.
  public static var isInBackground: Bool { getenv(Handover.backgroundVariable) != nil }

  /// Has the mount run in the background. Call it before the driver is started.
  public static func beginInBackground() { setenv(Handover.backgroundVariable, "1", 1) }

  // MARK: - The loop

  private func serveMount() -> Int32 {
    while true {
      var entries = [
        pollfd(fd: signals.number, events: Int16(POLLIN), revents: 0),
        pollfd(fd: channel?.descriptor.number ?? -1, events: Int16(POLLIN), revents: 0),
      ]
      let timeout = driver.patienceEnd.map { CInt(clamping: $0.milliseconds(after: .now)) } ?? -1
      _ = poll(&entries, 2, timeout)
      endHungDriver()
      if entries[0].revents != 0 { handleSignals() }
      if entries[1].revents != 0, let status = receive() { return status }
    }
  }

  /// Milliseconds after which a successor that does not serve the mount counts as hung. It may wait
  /// 5 s for an owner of the store, and then restores every node of its predecessor.
  private static let patience: Int64 = 60_000

  private func endHungDriver() {
    guard let end = driver.patienceEnd, end <= .now else { return }
    log("the driver (process \(driver.number)) does not answer the kernel; it is replaced")
    kill(driver.number, SIGKILL)
    // Its end counts as a failure.
    (driver.patienceEnd, driver.hasHung) = (nil, true)
  }

  private func handleSignals() {
    var information = signalfd_siginfo()
    while read(signals.number, &information, MemoryLayout.size(ofValue: information)) > 0 {
      switch Int32(bitPattern: information.ssi_signo) {
      case SIGCHLD: explain()
      case SIGUSR2: beginUpgrade()
      case let signal:
        endSignal = signal
        if driver.number > 0, driver.isReady || !hasBeenReady { kill(driver.number, signal) }
      }
    }
  }

  /// - Returns: the exit status of a mount that is over.
  private func receive() -> Int32? {
    switch channel?.receive() ?? .end {
    case .nothing: return nil
    case .end: return driverIsGone(signal: nil)
    case .message(let message):
      switch message.word {
      case .device:
        connection.device = SharedDescriptor(Descriptor(owning: message.descriptor))
        openAbort(message.number)
      case .state: state = SharedDescriptor(Descriptor(owning: message.descriptor))
      case .ready: becomeReady()
      case .ended: endStatus = message.number
      case .handedOver: driver.hasHandedOver = true
      case .crashing: return driverIsGone(signal: Int32(clamping: message.number))
      case .upgrade: beginUpgrade()
      case .handOver: break
      }
      return nil
    }
  }

  private func becomeReady() {
    (driver.isReady, driver.patienceEnd, endings.failures) = (true, nil, 0)
    isUpgrading = false
    if let endSignal { kill(driver.number, endSignal) }
    if !hasBeenReady {
      becameReady()
      ServiceManager.reportReady()
    }
    hasBeenReady = true
    if triesUpgrade {
      triesUpgrade = false
      replaceItself()
    }
  }

  // MARK: - Drivers

  private func start(
    _ program: String, _ mark: [String], _ ending: PredecessorEnding = .unknown
  ) throws(SystemError) {
    let (own, its) = try GuardChannel.pair()
    let channel = GuardChannel(Descriptor(owning: own))
    let end = Descriptor(owning: its)
    let number = try Handover.start(
      program, mark + words, ["\(Handover.endingVariable)=\(ending.word)"], channel: end.number,
      device: connection.device?.value.number, state: state?.value.number)
    self.channel = channel
    driver = DriverProcess(number: number)
    if hasBeenReady { driver.patienceEnd = Instant.now.advanced(milliseconds: Self.patience) }
  }

  /// - Parameter signal: of a driver that crashes; nil if it has ended.
  /// - Returns: the exit status of a mount that is over.
  private func driverIsGone(signal: Int32?) -> Int32? {
    channel = nil
    if let endStatus {
      return driver.isChild ? Child.wait(driver.number) : Int32(clamping: endStatus)
    }
    guard connection.device != nil, state != nil else {
      return driver.isChild ? Child.wait(driver.number) : 1
    }
    endings.unexplained.append(driver.number)
    let signal = signal ?? (driver.isChild ? Self.signalEnding(driver.number) : 0)
    // Its SIGCHLD may have been handled before.
    explain()
    if driver.hasHandedOver, isUpgrading {
      (isUpgrading, triesUpgrade) = (false, true)
      return succeed(installed, .upgraded)
    }
    (isUpgrading, triesUpgrade) = (false, false)
    if driver.hasHung || !driver.isReady && signal != SIGKILL { endings.failures += 1 }
    if signal == SIGKILL { endings.kills.append(.now) }
    if signal != SIGKILL, signal != 0 { endings.crashes.append(.now) }
    return succeed(Self.own, signal == 0 ? .unknown : .signal(signal))
  }

  private func succeed(_ program: String, _ ending: PredecessorEnding) -> Int32? {
    let start = Instant.now.advanced(milliseconds: -10_000)
    endings.crashes.removeAll { $0 < start }
    endings.kills.removeAll { $0 < start }
    guard endings.failures < 3, endings.crashes.count < 10, endings.kills.count < 100 else {
      return giveUp("it keeps ending")
    }
    let end = Instant.now.advanced(milliseconds: 10_000)
    while true {
      do throws(SystemError) {
        try self.start(program, [Role.successor.rawValue], ending)
        return nil
      } catch {
        // There may be memory again in a moment.
        guard .now < end else { return giveUp("\(error)") }
        Instant.sleep(milliseconds: 50)
      }
    }
  }

  /// Ends the connection to the kernel, and unmounts: else the mount point would go on showing what
  /// the kernel has cached.
  private func giveUp(_ reason: String) -> Int32 {
    log("the driver cannot be replaced (\(reason)); the mount ends")
    let number = connection.number.map { gnu_dev_makedev(0, $0) }
    // Looked up before the connection is ended, because the number may be another mount's
    // afterwards.
    let point = number.flatMap {
      KernelConnection(device: connection.device?.value.number ?? -1).mountPoint($0)
    }
    try? connection.abort?.value.write(Array("1".utf8))
    if let number, let point { _ = KernelConnection.unmount(point, number) }
    return 1
  }

  /// Opens the file that ends the connection, while it is this connection's: once a connection is
  /// gone, a later one may have its number. Where fusectl is not mounted, root mounts it for the
  /// guard alone.
  private func openAbort(_ number: UInt32?) {
    guard let number else { return }
    connection.number = number
    setenv(Handover.connectionVariable, "\(number)", 1)
    let path = "\(Self.connections)/\(number)/abort"
    let known = open(path, O_WRONLY | O_CLOEXEC)
    let file = known >= 0 ? known : prefsfs_open_in_mount("fusectl", Self.connections, path)
    connection.abort = file >= 0 ? SharedDescriptor(Descriptor(owning: file)) : nil
  }

  private static let connections = "/sys/fs/fuse/connections"

  // MARK: - How drivers ended

  /// Returns the signal that a process is ending by; 0 where it is not known, or there is none. A
  /// driver whose invalidator waits in the kernel for an answer ends only when its successor has
  /// given it, but proc(5) has the signal before (field 52 of `stat`).
  private static func signalEnding(_ process: pid_t) -> Int32 {
    let bytes = try? Files.contents("/proc/\(process)/stat", limit: 4096)
    // The name, in parentheses, may have blanks; field 3 follows it.
    let fields = String(decoding: bytes ?? [], as: UTF8.self).split(separator: ")").last?
      .split(whereSeparator: \.isWhitespace)
    guard let fields, fields.count > 49, let status = Int32(fields[49]) else { return 0 }
    return status & 0x7F
  }

  /// Logs how predecessors have ended that have.
  private func explain() {
    for process in endings.unexplained {
      var status: Int32 = 0
      guard waitpid(process, &status, WNOHANG) == process else { continue }
      endings.unexplained.removeAll { $0 == process }
      let (signal, hasCore) = (status & 0x7F, status & 0x80 != 0)
      guard signal != 0 else { continue }
      log(
        LogLine(
          "the driver (process \(process)) was ended by signal \(signal)"
            + "\(hasCore ? ", with a core dump" : ""); the mount goes on"))
    }
  }

  // MARK: - Upgrades

  /// Asks the driver to hand over to the program that is installed now, if that can take over.
  private func beginUpgrade() {
    guard driver.isReady, !isUpgrading, state != nil else {
      return log("not upgraded: the driver is starting; try again")
    }
    let words = [Handover.takesStateWord, "\(SavedState.format)"]
    guard (try? Child.runApart(installed, words, milliseconds: 5000))?.status == 0
    else {
      return log("not upgraded: \(installed) cannot take over from this version, which continues")
    }
    isUpgrading = true
    channel?.send(.handOver)
  }

  /// Becomes the guard of the installed program. The driver goes on meanwhile.
  private func replaceItself() {
    guard let channel, let device = connection.device, let state else { return }
    let words = [CommandLine.arguments[0], Role.guardian.rawValue] + words
    setenv(Handover.driverVariable, "\(driver.number)", 1)
    let ends = [channel.descriptor.number, device.value.number, state.value.number]
    // The driver starts another guard if this fails.
    Child.replaceItself(by: installed, words, descriptors: ends)
  }
}
