import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// What a driver that goes on for another one starts with: the device of the connection to the
/// kernel, and the memory with the saved state, both from the guard.
public final class Predecessor {
  let log: SharedLog
  let device: CInt
  let facts: MountFacts

  /// Takes the descriptors that the guard has started this process with. Throws if they are not
  /// those of a mount, or the state is of a different version.
  public init() throws(DriverError) {
    for number in Handover.channel...Handover.state { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    device = Handover.device
    do throws(SystemError) {
      log = try SharedLog(adopting: Descriptor(owning: Handover.state))
    } catch {
      throw DriverError("the state of the driver before cannot be read: \(error)")
    }
    let format = log[SavedState.Number.format.rawValue]
    if format == 0 {
      throw DriverError("the last driver's state is incomplete: there was no memory for it")
    }
    guard format == SavedState.format,
      let facts = MountFacts(log.message)
    else { throw DriverError("the state of the driver before is of a different version") }
    self.facts = facts
    let counter: SavedState.Number = ending == .upgraded ? .upgrades : .crashes
    log[counter.rawValue] &+= 1
  }

  /// Whether a driver of this version takes over from one whose state has that version.
  public static func takesOver(fromFormat format: String) -> Bool {
    UInt64(format) == SavedState.format
  }

  /// The word of a command line that asks for `takesOver`.
  public static let question = Handover.takesStateWord

  /// The directory of the store's user lists.
  public var store: String { facts.store }

  /// The mount point, as it was at the time of the mount.
  public var mountPoint: String { facts.path }

  /// The number that identifies the mount in the store.
  public var client: UInt64 { log[SavedState.Number.client.rawValue] }

  /// How it ended.
  let ending = getenv(Handover.endingVariable).map { PredecessorEnding(String(cString: $0)) }

  /// What `status.json` says of the mount's drivers.
  public var ages: ValueDictionary {
    let mounted = Timestamp(nanoseconds: Int64(truncatingIfNeeded: number(.mounted)))
    return [
      "mounted since": .date(AbsoluteTime(mounted)),
      "driver since": .date(AbsoluteTime(Timestamp.now)),
      "driver replaced after a crash": .integer(WideInteger(number(.crashes))),
      "driver replaced by an upgrade": .integer(WideInteger(number(.upgrades))),
      "last replaced because": .string((ending ?? .unknown).description),
    ]
  }

  private func number(_ number: SavedState.Number) -> UInt64 { log[number.rawValue] }
}

/// How a driver ended that has a successor.
enum PredecessorEnding: Equatable, CustomStringConvertible {
  case upgraded
  case signal(Int32)
  case unknown

  init(_ word: String) {
    self = word == "upgrade" ? .upgraded : Int32(word).map { .signal($0) } ?? .unknown
  }

  /// The form in which a guard gives it to a driver.
  var word: String {
    switch self {
    case .upgraded: "upgrade"
    case .signal(let number): "\(number)"
    case .unknown: "unknown"
    }
  }

  var description: String {
    switch self {
    case .upgraded: "a new version was installed"
    case .signal(let number): "signal \(number) ended the driver before"
    case .unknown: "the driver before ended unexpectedly"
    }
  }
}

/// What does not change while a mount lives.
struct MountFacts: Equatable {
  /// The mount point at the time of the mount.
  var path: String
  /// `st_dev` of the files in the mount.
  var device: UInt64
  /// The directory of the store's user lists.
  var store: String
  /// The kernel's first message, FUSE_INIT; empty before it came.
  var opening: [UInt8] = []

  /// The number of the kernel's first message; 0 before it has come.
  var openingNumber: UInt64 {
    guard opening.count >= 16 else { return 0 }
    return opening.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self) }
  }

  init(path: String, device: UInt64, store: String) {
    (self.path, self.device, self.store) = (path, device, store)
  }

  /// Nil if the bytes are not those of `bytes`.
  init?(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes[...])
    do {
      (path, device, store) = (try reader.string(), try reader.number(), try reader.string())
      opening = Array(try reader.counted())
    } catch {
      return nil
    }
  }

  var bytes: [UInt8] {
    var writer = ByteWriter()
    writer.append(path)
    writer.append(device)
    writer.append(store)
    writer.append(counted: opening)
    return writer.bytes
  }
}
