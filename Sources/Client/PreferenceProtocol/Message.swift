import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// A message from the owner of a store to a client: an answer, or a notice.
public enum Message: Equatable, Sendable {
  /// The answer to `hello`: the version of the last change, the directories that the owner serves,
  /// the version of its protocol, and in which number of a `SharedNumber` the owner keeps the
  /// version of the last change that this client is told of; 0 means of the last change. The
  /// descriptor comes with the message.
  case welcome(
    version: UInt64, isReadOnly: Bool, StoreIdentity, protocol: UInt32, number: UInt32 = 0)
  /// A location as it was after the change of that version.
  case snapshot(LocationSnapshot.Contents, version: UInt64)
  /// Several locations as they were after the change of that version, in the order in which they
  /// were asked for.
  case snapshots([LocationSnapshot.Contents], version: UInt64)
  /// What became of the locations that were asked for, in that order.
  case lists([LoadedList])
  /// A key's value, and which of the locations that were named has it; nil if none has it.
  case found(StoredValue?, index: UInt32)
  /// The domains of a place.
  case domains(Set<DomainName>)
  /// A time; nil where there is none.
  case time(Timestamp?)
  /// The edits of the transaction that changed something; no items where it changed nothing.
  /// `isSettled`: whether no mount has still to settle for the change as the request has asked.
  case applied(Changeset, isSettled: Bool)
  /// The mounts have settled for the changes of this client up to that version, as far as an
  /// `applied` said that they had not. It answers no request.
  case settled(through: UInt64)
  /// The change that the request of that number asks for is worked at: lists are being read for
  /// it. It may be made for 5 s from now, whatever its deadline is. It answers no request. An older
  /// client ignores it, and waits until the deadline.
  case working(on: UInt64)
  /// A report about the store as a whole, as `OwnerReport` says.
  case report(Value)
  /// The request has been carried out.
  case done
  /// The request was refused.
  case failed(EngineError)
  /// A change. In the order of versions, every change that takes effect is sent, except those that
  /// the client has not asked to hear of (`Request.hello`).
  case notice(Notice)

  /// What became of one of the locations of `Request.loadLists`.
  public enum LoadedList: Equatable, Sendable {
    /// The location as it was after the change of that version.
    case contents(LocationSnapshot.Contents, version: UInt64)
    /// No location that was asked for has a list.
    case missing
    /// The list cannot be read; when it last changed, if that is known.
    case failed(EngineError, modified: Timestamp?)
  }

  /// How many bytes the largest message has that a client accepts.
  public static let largest = 1 << 31 - 1
}

extension Message {
  /// Encodes the message as a frame.
  /// - Parameter number: the request that it answers; 0 if there is none.
  public func frame(_ number: UInt64) -> [UInt8] {
    switch self {
    case .welcome(let version, let isReadOnly, let identity, let spoken, let index):
      Frame.bytes(1, number) {
        $0.append(version)
        $0.append(isReadOnly ? 1 : 0 as UInt8)
        $0.append(identity)
        $0.append(spoken)
        // Added without a new version: a client that does not know it reads the first number.
        $0.append(index)
      }
    case .snapshot(let contents, let version):
      Frame.bytes(2, number) {
        $0.append(version)
        $0.append(contents)
        $0.append(changesOf: contents)
      }
    case .snapshots(let all, let version):
      Frame.bytes(10, number) {
        $0.append(version)
        $0.append(UInt32(all.count))
        for contents in all { $0.append(contents) }
        for contents in all { $0.append(changesOf: contents) }
      }
    case .lists(let lists):
      Frame.bytes(13, number) {
        $0.append(UInt32(lists.count))
        for list in lists { $0.append(list) }
        for case .contents(let contents, _) in lists { $0.append(changesOf: contents) }
      }
    case .domains(let domains):
      Frame.bytes(3, number) {
        $0.append(UInt32(domains.count))
        for domain in domains { $0.append(domain.string) }
      }
    case .time(let time): Frame.bytes(4, number) { $0.append(time) }
    case .applied(let changeset, let isSettled):
      Frame.bytes(5, number) {
        $0.append(numbered: changeset)
        $0.append(isSettled ? 1 : 0 as UInt8)
      }
    case .settled(let version): Frame.bytes(12, number) { $0.append(version) }
    case .working(let request): Frame.bytes(14, number) { $0.append(request) }
    case .report(let value):
      Frame.bytes(11, number) { $0.append(counted: Document.binary(value)) }
    case .done: Frame.bytes(6, number) { _ in }
    case .failed(let error): Frame.bytes(7, number) { $0.append(error) }
    case .notice(let notice): Frame.bytes(8, number) { $0.append(notice) }
    case .found(let stored, let index):
      Frame.bytes(9, number) {
        $0.append(index)
        $0.append(stored == nil ? 0 : 1 as UInt8)
        if let stored { $0.append(stored) }
        $0.append(stored?.metadata.changed)
      }
    }
  }

  /// Encodes the message as the answer to a request. One that is larger than the client accepts
  /// becomes the failure that says so.
  public func answer(_ number: UInt64, largest: Int = Message.largest) -> [UInt8] {
    let frame = frame(number)
    guard frame.count > largest else { return frame }
    let error = EngineError(
      .system(.fileTooLarge),
      "the answer has \(frame.count) bytes; one program sends another \(largest) at most")
    return Message.failed(error).frame(number)
  }

  /// The kinds that `init` knows.
  private static let kinds: ClosedRange<UInt8> = 1...14

  /// Whether a frame is one that this version does not know and that answers no request.
  public static func mayIgnore(_ frame: Frame) -> Bool {
    frame.number == 0 && !kinds.contains(frame.kind)
  }

  /// Decodes the message of a frame.
  public init(_ frame: Frame) throws(ProtocolError) {
    do {
      var reader = ByteReader(frame.payload)
      self = try reader.message(frame.kind)
    } catch {
      throw ProtocolError("received a message (kind \(frame.kind)) that cannot be decoded")
    }
  }
}

extension ByteWriter {
  fileprivate mutating func append(_ contents: LocationSnapshot.Contents) {
    append(contents.exists ? 1 : 0 as UInt8)
    append(contents.modified.nanoseconds)
    append(contents.listModified.nanoseconds)
    append(counted: contents.list.binary)
    append(contents.metadata) { $0.append($1) }
    append(contents.changes) { writer, stored in
      writer.append(stored == nil ? 0 : 1 as UInt8)
      if let stored { writer.append(stored) }
    }
    append(contents.additions) { $0.append($1) }
  }

  /// Appends when values were last changed, if that is not their modification time: those of the
  /// list, and those that were set since. It stands at the end of a message, where versions that do
  /// not know it ignore it.
  fileprivate mutating func append(changesOf contents: LocationSnapshot.Contents) {
    var (listed, set): ([Key: Timestamp], [Key: Timestamp]) = ([:], [:])
    for (key, metadata) in contents.metadata {
      if let changed = metadata.changed { listed[key] = changed }
    }
    for (key, stored) in contents.changes {
      if let changed = stored?.metadata.changed { set[key] = changed }
    }
    for times in [listed, set] { append(times) { $0.append($1.nanoseconds) } }
  }

  private mutating func append<Item>(
    _ items: [Key: Item], _ body: (inout ByteWriter, Item) -> Void
  ) {
    append(UInt32(items.count))
    for (key, item) in items {
      append(key.string)
      body(&self, item)
    }
  }

  private mutating func append(_ metadata: Metadata) {
    append(metadata.text.map { .exact($0) } ?? WrittenText.canonical)
    append(Description(mode: metadata.mode, modified: metadata.modified))
    append(metadata.setter?.coded ?? "")
  }

  fileprivate mutating func append(_ stored: StoredValue) {
    var metadata = stored.metadata
    metadata.text = stored.text
    append(metadata)
    append(counted: Document.binary(stored.value))
  }

  fileprivate mutating func append(_ list: Message.LoadedList) {
    switch list {
    case .contents(let contents, let version):
      append(0 as UInt8)
      append(contents)
      append(version)
    case .missing: append(1 as UInt8)
    case .failed(let error, let modified):
      append(2 as UInt8)
      append(modified)
      append(error)
    }
  }

  /// Appends a time, which may be nil.
  fileprivate mutating func append(_ time: Timestamp?) {
    append(time == nil ? 0 : 1 as UInt8)
    append(time?.nanoseconds ?? 0)
  }

  mutating func append(_ identity: StoreIdentity) {
    append(UInt32(identity.numbers.count))
    for number in identity.numbers { append(number) }
  }

  mutating func append(_ locations: some Collection<Location>) {
    append(UInt32(locations.count))
    for location in locations { append(location) }
  }

  /// Appends a change that has taken effect: with its number, and with what it says of each key.
  fileprivate mutating func append(numbered changeset: Changeset) {
    append(changeset.version)
    append(changeset)
    for item in changeset.items { append(item.hadKey ? 1 : 0 as UInt8) }
    append(changeset.invalidated)
  }

  fileprivate mutating func append(_ notice: Notice) {
    append(notice.author?.number ?? 0)
    append(notice.origin?.client ?? 0)
    append(notice.origin?.serial ?? 0)
    append(numbered: notice.changeset)
    append(UInt32(notice.events.count))
    for event in notice.events {
      append(event.domain.string)
      append(event.key.string)
      append(event.kind.rawValue)
    }
  }

  fileprivate mutating func append(_ error: EngineError) {
    let (number, errno) = error.reason.numbers
    append(number)
    append(errno)
    append(error.domain == nil ? 0 : 1 as UInt8)
    append(error.domain?.string ?? "")
    append(error.key == nil ? 0 : 1 as UInt8)
    append(error.key?.string ?? "")
    append(error.sentence)
  }
}

extension ByteReader {
  fileprivate mutating func message(_ kind: UInt8) throws -> Message {
    switch kind {
    case 1:
      let (version, isReadOnly) = (try number(UInt64.self), try number(UInt8.self) == 1)
      let (identity, spoken) = (try identity(), try number(UInt32.self))
      return .welcome(
        version: version, isReadOnly: isReadOnly, identity, protocol: spoken,
        number: isAtEnd ? 0 : try number())
    case 2:
      let version = try number(UInt64.self)
      return .snapshot(try withChanges(of: [try contents()])[0], version: version)
    case 3:
      let domains = try array { try $0.domain() }
      return .domains(Set(domains))
    case 4:
      let (isThere, time) = (try number(UInt8.self) == 1, try timestamp())
      return .time(isThere ? time : nil)
    case 5:
      let changeset = try numberedChangeset()
      return .applied(changeset, isSettled: try number(UInt8.self) == 1)
    case 12: return .settled(through: try number())
    case 14: return .working(on: try number())
    case 6: return .done
    case 11: return .report(try value())
    case 7: return .failed(try error())
    case 8: return .notice(try notice())
    case 10:
      let version = try number(UInt64.self)
      return .snapshots(try withChanges(of: try array { try $0.contents() }), version: version)
    case 13: return .lists(try withChanges(of: try array { try $0.loadedList() }))
    case 9:
      let index = try number(UInt32.self)
      let stored = try number(UInt8.self) == 0 ? nil : try stored()
      let hasTime = try isAtEnd ? false : number(UInt8.self) == 1
      let time = hasTime ? try timestamp() : nil
      return .found(stored.map { $0.changed(at: time) }, index: index)
    default: throw Unknown()
    }
  }

  private mutating func loadedList() throws -> Message.LoadedList {
    switch try number(UInt8.self) {
    case 0: return .contents(try contents(), version: try number())
    case 1: return .missing
    case 2:
      let (isThere, time) = (try number(UInt8.self) == 1, try timestamp())
      return .failed(try error(), modified: isThere ? time : nil)
    default: throw Unknown()
    }
  }

  private mutating func numberedChangeset() throws -> Changeset {
    let version = try number(UInt64.self)
    var changeset = try changeset()
    changeset.version = version
    for index in changeset.items.indices {
      changeset.items[index].before = try number(UInt8.self) == 1 ? .something : .nothing
    }
    changeset.invalidated = Set(try locations())
    return changeset
  }

  mutating func identity() throws -> StoreIdentity {
    StoreIdentity(numbers: try array { try $0.number() })
  }

  mutating func locations() throws -> [Location] { try array { try $0.location() } }

  /// Decodes a number of items, and the items.
  mutating func array<Item>(_ body: (inout ByteReader) throws -> Item) throws -> [Item] {
    let count = try number(UInt32.self)
    var items: [Item] = []
    for _ in 0..<count { items.append(try body(&self)) }
    return items
  }

  private mutating func contents() throws -> LocationSnapshot.Contents {
    var contents = LocationSnapshot.Contents()
    contents.exists = try number(UInt8.self) == 1
    contents.modified = try timestamp()
    contents.listModified = try timestamp()
    guard let list = try ListValues(binary: Array(try counted())) else { throw Unknown() }
    contents.list = list
    contents.metadata = try items { try $0.metadata() }
    contents.changes = try items { reader in
      try reader.number(UInt8.self) == 0 ? nil : try reader.stored()
    }
    contents.additions = try items { try $0.stored() }
    return contents
  }

  /// Adds when values were last changed. An earlier version does not say it.
  private mutating func withChanges(
    of all: [LocationSnapshot.Contents]
  ) throws -> [LocationSnapshot.Contents] {
    var all = all
    for index in all.indices where !isAtEnd { try addChanges(to: &all[index]) }
    return all
  }

  private mutating func withChanges(
    of lists: [Message.LoadedList]
  ) throws -> [Message.LoadedList] {
    var all: [Message.LoadedList] = []
    for list in lists {
      guard case .contents(var contents, let version) = list, !isAtEnd else {
        all.append(list)
        continue
      }
      try addChanges(to: &contents)
      all.append(.contents(contents, version: version))
    }
    return all
  }

  private mutating func addChanges(to contents: inout LocationSnapshot.Contents) throws {
    let listed: [Key: Timestamp] = try items { try $0.timestamp() }
    let set: [Key: Timestamp] = try items { try $0.timestamp() }
    for (key, time) in listed { contents.metadata[key]?.changed = time }
    for (key, time) in set {
      guard let stored = contents.changes[key] ?? nil else { continue }
      contents.changes.updateValue(stored.changed(at: time), forKey: key)
    }
  }

  private mutating func items<Item>(
    _ body: (inout ByteReader) throws -> Item
  ) throws -> [Key: Item] {
    let count = try number(UInt32.self)
    var items: [Key: Item] = [:]
    for _ in 0..<count {
      let key = try key()
      items.updateValue(try body(&self), forKey: key)
    }
    return items
  }

  private mutating func metadata() throws -> Metadata {
    let (text, kept, setter) = (try writtenText(), try description(), try string())
    var metadata = Metadata(
      text: nil, modified: kept.modified ?? Timestamp(nanoseconds: 0), mode: kept.mode,
      setter: Setter(coded: setter))
    if case .exact(let bytes) = text { metadata.text = bytes }
    return metadata
  }

  private mutating func stored() throws -> StoredValue {
    let metadata = try metadata()
    return StoredValue(try value(), metadata)
  }

  private mutating func notice() throws -> Notice {
    let author = try number(UInt64.self)
    let origin = Origin(client: try number(), serial: try number())
    let changeset = try numberedChangeset()
    let events = try array { reader -> KeyEvent in
      let (domain, key) = (try reader.domain(), try reader.key())
      guard let kind = KeyEvent.Kind(rawValue: try reader.number()) else { throw Unknown() }
      return KeyEvent(domain, key, kind)
    }
    return Notice(
      changeset: changeset, events: events, author: author == 0 ? nil : Author(number: author),
      origin: origin.client == 0 ? nil : origin)
  }

  private mutating func error() throws -> EngineError {
    guard
      let reason = EngineError.Reason(number: try number(), errno: try number(Int32.self))
    else { throw Unknown() }
    let (hasDomain, domain) = (try number(UInt8.self) == 1, try domain())
    let (hasKey, key) = (try number(UInt8.self) == 1, try key())
    return EngineError(
      reason, domain: hasDomain ? domain : nil, key: hasKey ? key : nil, try string())
  }
}

extension EngineError.Reason {
  /// The reasons without an errno. A reason's index is its number in messages.
  private static let plain: [EngineError.Reason] = [
    .forced, .argument, .heldElsewhere, .noSuchKey, .noSuchDomain, .domainExists, .domainNotEmpty,
    .invalidDomain, .unreadable, .readOnly, .owned, .ownerGone, .changedMeanwhile,
    .unfit,
  ]

  fileprivate var numbers: (number: UInt8, errno: Int32) {
    if case .system(let errno) = self { return (255, errno.rawValue) }
    return (UInt8(Self.plain.firstIndex(of: self) ?? 254), 0)
  }

  fileprivate init?(number: UInt8, errno: Int32) {
    if number == 255 {
      self = .system(Errno(rawValue: errno))
    } else if Self.plain.indices.contains(Int(number)) {
      self = Self.plain[Int(number)]
    } else {
      return nil
    }
  }
}

extension StoredValue {
  /// The same value, last changed at that time; nil means at its modification time.
  fileprivate func changed(at time: Timestamp?) -> StoredValue {
    guard let time else { return self }
    var kept = self.metadata
    kept.changed = time
    return with(kept)
  }
}

extension Setter {
  /// Before the path of a file; an identifier does not begin with it.
  private static let file: Character = "\0"
  /// Before the path of a group's file. An older program takes that for the name of a profile.
  private static let group: Character = "\u{1}"

  /// The setter as a text that is not empty, unless the identifier is.
  fileprivate var coded: String {
    switch self {
    case .profile(let identifier): identifier
    case .file(let path): "\(Self.file)\(path)"
    case .group(let path): "\(Self.group)\(path)"
    }
  }

  /// Creates the setter of a text; nil for an empty one.
  fileprivate init?(coded text: String) {
    if text.isEmpty { return nil }
    let path = String(text.dropFirst())
    if text.first == Self.file {
      self = .file(path)
    } else {
      self = text.first == Self.group ? .group(path) : .profile(text)
    }
  }
}
