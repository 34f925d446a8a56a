import PreferenceCloud
import PropertyList

/// The bytes of the file that one host has in the directory: `magic`, and then frames, to which the
/// host appends. A frame is its length (4 bytes, the lowest first), and a sealed property list.
///
/// A frame is sealed for its file and its number, so it can be opened at no other place. What cannot
/// be opened is skipped if something follows that can: it is another program's, or of another key.
/// What cannot be opened at the end has not arrived as a whole, and is looked at again.
enum HostFile {
  static let magic = Array("prefscl1".utf8)
  /// Bytes that a sealed frame may have, about which many a frame of a file that is written as a
  /// whole has, and that a file may have.
  static let (largestFrame, usualFrame, largestFile) = (4 << 20, 1 << 20, 64 << 20)

  /// A key's record, and what decides between records.
  struct Record: Equatable, Sendable {
    /// The server's name of the key.
    let name: [UInt8]
    let stamp: Stamp
    let isRemoval: Bool
    /// The record as the server would have it. Those of later versions are passed on as they are.
    let bytes: [UInt8]

    /// Whether it wins over the other one, on every host.
    func wins(over other: Record) -> Bool {
      if other.stamp != stamp { return other.stamp < stamp }
      return other.bytes.lexicographicallyPrecedes(bytes)
    }

    /// Bytes of a file that it needs, about.
    var size: Int { name.count + bytes.count + 96 }
  }

  /// What is appended in one step: the records of one change, or the mark of a `prefs-cloud` that
  /// begins.
  struct Frame: Equatable, Sendable {
    var records: [Record] = []
    /// Random bytes, by which the next `prefs-cloud` knows that it goes on with its own file.
    var session: [UInt8]?
    /// The last bytes of the sealed frame. They are different for each frame.
    var mark: [UInt8] = []
  }

  /// How far a file was read.
  struct Position: Equatable, Sendable {
    /// Bytes up to the end of the last frame that could be opened.
    var offset = 0
    /// The number of the next frame.
    var number = 0
  }

  // MARK: - Coding

  /// The frame as bytes of a file, and its mark; nil where it could not be sealed, or is too large.
  static func bytes(
    of frame: Frame, _ file: String, _ number: Int, _ sealer: any ValueSealer
  ) -> (bytes: [UInt8], mark: [UInt8])? {
    var root: ValueDictionary = ["records": .array(frame.records.map(\.value))]
    root["session"] = frame.session.map { .data($0) }
    let content = Document.binary(.dictionary(root))
    guard let sealed = sealer.seal(content, context: context(file, number)),
      sealed.count <= largestFrame
    else { return nil }
    let length = withUnsafeBytes(of: UInt32(sealed.count).littleEndian) { Array($0) }
    return (length + sealed, mark(sealed))
  }

  /// A whole file, and the marks of its frames; nil where it could not be sealed.
  static func bytes(
    of frames: [Frame], _ file: String, _ sealer: any ValueSealer
  ) -> (bytes: [UInt8], marks: [[UInt8]])? {
    var (all, marks) = (magic, [[UInt8]]())
    for (number, frame) in frames.enumerated() {
      guard let (bytes, mark) = bytes(of: frame, file, number, sealer) else { return nil }
      all += bytes
      marks.append(mark)
    }
    return (all, marks)
  }

  /// The frames that have the records, each of about `usualFrame` bytes.
  static func frames(of records: [Record]) -> [Frame] {
    var frames: [Frame] = []
    var room = 0
    for record in records {
      if room < record.size {
        frames.append(Frame())
        room = usualFrame
      }
      frames[frames.count - 1].records.append(record)
      room -= record.size
    }
    return frames
  }

  /// Reads the frames of a file that are behind the position, and moves it.
  /// - Parameter bytes: the bytes of the file from the position on.
  /// - Returns: the frames, and how many could not be opened.
  static func read(
    _ bytes: [UInt8], from position: inout Position, _ file: String, _ sealer: any ValueSealer
  ) -> (frames: [Frame], refused: Int) {
    let start = position.offset
    var (at, number, refused) = (0, position.number, 0)
    var frames: [Frame] = []
    if start == 0 {
      guard bytes.starts(with: magic) else { return ([], bytes.count < magic.count ? 0 : 1) }
      at = magic.count
      position.offset = at
    }
    while bytes.count - at > 4 {
      let length = (0..<4).reduce(0) { $0 | Int(bytes[at + $1]) << (8 * $1) }
      guard (1...largestFrame).contains(length), bytes.count - at - 4 >= length else { break }
      let sealed = Array(bytes[(at + 4)..<(at + 4 + length)])
      at += 4 + length
      if let frame = open(sealed, context(file, number), sealer) {
        frames.append(frame)
        position = Position(offset: start + at, number: number + 1)
      } else {
        refused += 1
      }
      number += 1
    }
    return (frames, refused)
  }

  private static func context(_ file: String, _ number: Int) -> [UInt8] {
    Array("\(file) \(number)".utf8)
  }

  private static func mark(_ sealed: [UInt8]) -> [UInt8] { Array(sealed.suffix(16)) }

  private static func open(
    _ sealed: [UInt8], _ context: [UInt8], _ sealer: any ValueSealer
  ) -> Frame? {
    guard let content = sealer.open(sealed, context: context),
      case .dictionary(let root)? = try? Document.read(content).value,
      case .array(let items)? = root["records"]
    else { return nil }
    var frame = Frame(records: items.compactMap { Record($0) }, mark: mark(sealed))
    if case .data(let session)? = root["session"] { frame.session = session }
    return frame
  }
}

extension HostFile.Record {
  /// The record of a key as a request of the session has it; nil for anything else.
  init?(name: [UInt8], bytes: [UInt8]) {
    guard let record = CloudRecord(bytes) else { return nil }
    self.init(
      name: name, stamp: record.stamp, isRemoval: record.value == nil, bytes: bytes)
  }

  /// Reads what `value` has made; nil for anything else.
  fileprivate init?(_ value: Value) {
    guard case .array(let parts) = value, parts.count == 4, case .data(let name) = parts[0],
      let stamp = Stamp(parts[1]), case .boolean(let isRemoval) = parts[2],
      case .data(let bytes) = parts[3], bytes.count <= CloudRecord.largest
    else { return nil }
    self.init(name: name, stamp: stamp, isRemoval: isRemoval, bytes: bytes)
  }

  fileprivate var value: Value {
    .array([.data(name), stamp.value, .boolean(isRemoval), .data(bytes)])
  }
}
