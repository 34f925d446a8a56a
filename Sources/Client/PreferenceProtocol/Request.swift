import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// A request of a client to the owner of a store.
public enum Request: Equatable, Sendable {
  /// The first message: the version of the protocol, a random number that identifies this client
  /// over all of its connections, the client's monotonic clock, the directories of the store as
  /// the client sees them, and whether it hears of every change, or only of those of domains that
  /// it has asked for. Answer: `welcome`, or `failed` and the end of the connection. An owner of
  /// other directories carries nothing out that follows.
  case hello(
    version: UInt32, client: UInt64, clock: Instant, StoreIdentity = StoreIdentity(numbers: []),
    hearsAll: Bool = true)
  /// Asks for a whole location. Answer: `snapshot`.
  case load(Location)
  /// Asks for several whole locations, as they are at one moment. Answer: `snapshots`.
  case loadAll([Location])
  /// Asks for the lists that a look-up needs. Answer: `lists`.
  case loadLists(ListLoad)
  /// Asks for one key in the first of several locations that has it, for short-lived clients, which
  /// need not load all of a location. Answer: `found`.
  case find(Key, [Location])
  /// Asks for the domains of a place. Answer: `domains`.
  case domains(Place)
  /// Asks when a location last changed. Answer: `time`, nil where the place does not have the
  /// domain.
  case modified(Location)
  /// Asks for a transaction, which the client numbers with `serial` (see `Origin`). The owner
  /// refuses it after the deadline (the client's monotonic clock), so that nothing takes effect
  /// that the client has given up. The source is who asks for it, for the history: a mount says it
  /// of its requests; of other clients only the way counts, and the owner knows the rest. Answer:
  /// `applied`.
  case apply(
    serial: UInt64, Author, deadline: Instant, Answering, [Intent], ChangeSource? = nil)
  /// Waits until every change is on the disk and, where `mounts` is true, every mount has settled.
  /// Answer: `done`.
  case synchronize(mounts: Bool)
  /// Says that this client is a mount which changes wait for, and which names it has claimed so
  /// far. No answer.
  case mount(Author, claims: [Key] = [])
  /// Claims a name for a mount (`NameClaims`). Answer: `done`, or `failed` with EEXIST.
  case claim(Key, Author)
  /// Releases a name that the mount has claimed. Answer: `done`.
  case release(Key, Author)
  /// Says that no change need wait for a mount of this client any longer; or, of another client's
  /// mount, that the last mount of this one goes on for it (`MountCoordinator.removeMount`). No
  /// answer.
  case unmount(Author)
  /// Says that the mount has settled for the changes up to a version. No answer.
  case settle(Settlement, through: UInt64, Author)
  /// Waits until the location's list contains every earlier change; nil means until the lists of
  /// all locations do. Answer: `done`.
  case save(Location?)
  /// Asks for a report about the store as a whole. Answer: `report`.
  case report(OwnerReport)
  /// Asks whether the owner answers. Answer: `done`, at once.
  case ping

  /// When a change is answered, with regard to the mounts that must settle for it.
  public enum Answering: UInt8, Sendable {
    /// As soon as the change is made.
    case atOnce = 0
    /// When every mount has settled for the change, its entries included.
    case whenSettled = 1
    /// As soon as the change is made. The answer says whether every mount but the author's has
    /// settled its attributes; if not, the message `settled` follows when they have.
    case inTwoSteps = 2
  }

  /// The version of the protocol. It grows with a change that an earlier version cannot ignore.
  public static let version: UInt32 = 11

  /// The oldest version that this one understands. An owner refuses older clients, and a client
  /// older owners.
  public static let oldest: UInt32 = 11

  /// How many bytes the largest request has that an owner accepts: enough for several of the
  /// largest values, and less than what may wait for a client that does not read.
  public static let largest = 48 << 20
}

extension Request {
  /// Encodes the request as a frame.
  /// - Parameter number: the number that its answer will carry; 0 if there is none.
  public func frame(_ number: UInt64) -> [UInt8] {
    switch self {
    case .hello(let version, let client, let clock, let identity, let hearsAll):
      Frame.bytes(1, number) {
        $0.append(version)
        $0.append(client)
        $0.append(clock.nanoseconds)
        // Added without a new version: an owner that does not know them ignores them.
        $0.append(identity)
        $0.append(hearsAll ? 0 : 1 as UInt8)
      }
    case .load(let location): Frame.bytes(2, number) { $0.append(location) }
    case .loadAll(let locations):
      Frame.bytes(13, number) { $0.append(locations) }
    case .domains(let place): Frame.bytes(3, number) { $0.append(place.rawValue) }
    case .modified(let location): Frame.bytes(4, number) { $0.append(location) }
    case .apply(let serial, let author, let deadline, let answering, let intents, let source):
      Frame.bytes(5, number) {
        $0.append(serial)
        $0.append(author.number)
        $0.append(deadline.nanoseconds)
        $0.append(answering.rawValue)
        let plain = intents.filter { $0 != .judged }
        $0.append(UInt32(plain.count))
        for intent in plain { $0.append(intent) }
        $0.append(source ?? ChangeSource(.unknown))
        // How many intents precede `.judged`: schemas judge the others. The largest number: schemas
        // judge none.
        $0.append(intents.firstIndex(of: .judged).map { UInt32($0) } ?? .max)
        if let because = source?.because, !because.isEmpty { $0.append(counted: because.utf8) }
      }
    case .synchronize(let mounts): Frame.bytes(6, number) { $0.append(mounts ? 1 : 0 as UInt8) }
    case .mount(let author, let claims):
      Frame.bytes(7, number) {
        $0.append(author.number)
        // Added without a new version: an owner that does not know it ignores it.
        $0.append(UInt32(claims.count))
        for name in claims { $0.append(name.string) }
      }
    case .claim(let name, let author): Frame.bytes(20, number) { $0.append(name, author) }
    case .release(let name, let author): Frame.bytes(21, number) { $0.append(name, author) }
    case .settle(let settlement, let version, let author):
      Frame.bytes(8, number) {
        $0.append(settlement.rawValue)
        $0.append(version)
        $0.append(author.number)
      }
    case .ping: Frame.bytes(10, number) { _ in }
    case .unmount(let author): Frame.bytes(17, number) { $0.append(author.number) }
    case .report(let report): Frame.bytes(14, number) { $0.append(report) }
    case .save(let location):
      Frame.bytes(12, number) {
        $0.append(location == nil ? 0 : 1 as UInt8)
        if let location { $0.append(location) }
      }
    case .loadLists(let load):
      Frame.bytes(19, number) {
        $0.append(load.locations)
        $0.append(load.changing)
        $0.append(load.evenIfAbsent ? 1 : 0 as UInt8)
      }
    case .find(let key, let locations):
      Frame.bytes(11, number) {
        $0.append(key.string)
        $0.append(locations)
      }
    }
  }

  /// Decodes the request of a frame.
  public init(_ frame: Frame) throws(ProtocolError) {
    do {
      var reader = ByteReader(frame.payload)
      self = try reader.request(frame.kind)
    } catch {
      throw ProtocolError("received a request (kind \(frame.kind)) that cannot be decoded")
    }
  }
}

extension ByteWriter {
  fileprivate mutating func append(_ name: Key, _ author: Author) {
    append(name.string)
    append(author.number)
  }

  fileprivate mutating func append(_ report: OwnerReport) {
    switch report {
    case .status: append(1 as UInt8)
    case .profiles: append(2 as UInt8)
    case .history: append(4 as UInt8)
    case .fragments: append(6 as UInt8)
    case .effects: append(7 as UInt8)
    case .forget(let domain, let key):
      append(5 as UInt8)
      append(domain.string)
      append(key == nil ? 0 : 1 as UInt8)
      append(key?.string ?? "")
    case .check(let bytes):
      append(3 as UInt8)
      append(counted: bytes)
    }
  }

  /// Appends what an intent of a key begins with.
  private mutating func append(_ kind: UInt8, _ key: Key, _ domain: DomainName) {
    append(kind)
    append(key.string)
    append(domain.string)
  }

  fileprivate mutating func append(_ intent: Intent) {
    switch intent {
    case .set(let key, let domain, let value, let text):
      append(1, key, domain)
      append(text)
      append(counted: Document.binary(value))
    case .describe(let key, let domain, let description):
      append(2, key, domain)
      append(description)
    case .remove(let key, let domain): append(3, key, domain)
    case .createDomain(let domain):
      append(4 as UInt8)
      append(domain.string)
    case .removeDomain(let domain):
      append(5 as UInt8)
      append(domain.string)
    case .renameDomain(let old, let new):
      append(6 as UInt8)
      append(old.string)
      append(new.string)
    case .at(let place, let intent):
      append(14 as UInt8)
      append(place.rawValue)
      append(intent)
    case .edit(let location, let edit):
      append(7 as UInt8)
      append(location)
      append(edit)
    case .replace(let location, let values):
      append(8 as UInt8)
      append(location)
      append(counted: Document.binary(.dictionary(values)))
    case .splice(let key, let domain, let splice):
      append(10, key, domain)
      append(splice)
    case .expectUnchanged(let key, let location, let time):
      append(11 as UInt8)
      append(key.string)
      append(location)
      append(Description(modified: time))
    case .setOwn(let key, let domain, let value, let text):
      append(12, key, domain)
      append(text)
      append(counted: Document.binary(value))
    // Not an intent of its own in a message: see `apply`.
    case .judged: break
    case .removeOwn(let key, let domain): append(13, key, domain)
    case .expect(let key, let location, let value):
      append(9 as UInt8)
      append(key.string)
      append(location)
      append(counted: value.map(Document.binary) ?? [])
    }
  }
}

extension ByteReader {
  fileprivate mutating func request(_ kind: UInt8) throws -> Request {
    switch kind {
    case 1:
      let (version, client) = (try number(UInt32.self), try number(UInt64.self))
      // Earlier versions, which are refused in words, send no clock.
      let clock = isAtEnd ? 0 : try number(Int64.self)
      let identity = isAtEnd ? StoreIdentity(numbers: []) : try identity()
      let hearsAll = try isAtEnd || number(UInt8.self) != 1
      return .hello(
        version: version, client: client, clock: Instant(nanoseconds: clock), identity,
        hearsAll: hearsAll)
    case 2: return .load(try location())
    case 3: return .domains(try place())
    case 4: return .modified(try location())
    case 5:
      let (serial, author) = (try number(UInt64.self), try author())
      let deadline = Instant(nanoseconds: try number())
      guard let answering = Request.Answering(rawValue: try number()) else { throw Unknown() }
      var intents = try array { try $0.intent() }
      var source: ChangeSource? = try changeSource()
      if source == ChangeSource(.unknown) { source = nil }
      let judged = try number(UInt32.self)
      if judged <= intents.count { intents.insert(.judged, at: Int(judged)) }
      if !isAtEnd {
        var known = source ?? ChangeSource(.unknown)
        known.because = String(decoding: try counted(), as: UTF8.self)
        source = known
      }
      return .apply(serial: serial, author, deadline: deadline, answering, intents, source)
    case 6: return .synchronize(mounts: try number(UInt8.self) == 1)
    case 7: return .mount(try author(), claims: isAtEnd ? [] : try array { try $0.key() })
    case 8:
      guard let settlement = Settlement(rawValue: try number()) else { throw Unknown() }
      return .settle(settlement, through: try number(), try author())
    case 10: return .ping
    case 11: return .find(try key(), try locations())
    case 12: return .save(try number(UInt8.self) == 0 ? nil : try location())
    case 13: return .loadAll(try locations())
    case 14: return .report(try report())
    case 17: return .unmount(try author())
    case 19:
      let (asked, changing) = (try locations(), try locations())
      return .loadLists(
        ListLoad(asked, changing: changing, evenIfAbsent: try number(UInt8.self) == 1))
    case 20: return .claim(try key(), try author())
    case 21: return .release(try key(), try author())
    default: throw Unknown()
    }
  }

  private mutating func report() throws -> OwnerReport {
    switch try number(UInt8.self) {
    case 1: return .status
    case 2: return .profiles
    case 3: return .check(Array(try counted()))
    case 4: return .history
    case 6: return .fragments
    case 7: return .effects
    case 5:
      let (domain, hasKey) = (try domain(), try number(UInt8.self) == 1)
      let key = try key()
      return .forget(domain, hasKey ? key : nil)
    default: throw Unknown()
    }
  }

  private mutating func place() throws -> Place {
    guard let place = Place(rawValue: try string()) else { throw Unknown() }
    return place
  }

  private mutating func author() throws -> Author { Author(number: try number()) }

  /// Decodes an intent. A value that becomes a part of a list may not be nested so deep that the
  /// list could not be read again.
  /// - Parameter isInPlace: whether it is a part of an intent that names the place (`Intent.at`).
  private mutating func intent(isInPlace: Bool = false) throws -> Intent {
    switch try number(UInt8.self) {
    case 1:
      let (key, domain, text) = (try key(), try domain(), try writtenText())
      return .set(key, domain, try value(limits: .list), text)
    case 2: return .describe(try key(), try domain(), try description())
    case 3: return .remove(try key(), try domain())
    case 4: return .createDomain(try domain())
    case 5: return .removeDomain(try domain())
    case 6: return .renameDomain(try domain(), to: try domain())
    case 7: return .edit(try location(), try edit(limits: .list))
    case 8:
      let location = try location()
      guard case .dictionary(let values) = try value(limits: .list) else { throw Unknown() }
      return .replace(location, values)
    case 9:
      let (key, location, bytes) = (try key(), try location(), Array(try counted()))
      return .expect(key, location, bytes.isEmpty ? nil : try Document.read(bytes).value)
    case 12:
      let (key, domain, text) = (try key(), try domain(), try writtenText())
      return .setOwn(key, domain, try value(limits: .list), text)
    case 13: return .removeOwn(try key(), try domain())
    case 14 where !isInPlace: return .at(try place(), try intent(isInPlace: true))
    case 10: return .splice(try key(), try domain(), try splice())
    case 11: return .expectUnchanged(try key(), try location(), since: try description().modified)
    default: throw Unknown()
    }
  }
}
