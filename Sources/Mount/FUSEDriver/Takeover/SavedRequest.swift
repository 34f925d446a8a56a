import PreferenceModel
import PreferenceTree
import SystemCalls

/// A request whose effects the saved trees have. Its answer follows from what they show.
struct SavedRequest: Equatable {
  let number: UInt64
  /// What it has found or made; 0 if nothing.
  private(set) var node: UInt64 = 0
  private(set) var handle: UInt64 = 0

  /// Bytes that it takes.
  static let size = 24

  /// A request that has only changed something; 0 if there is none.
  init(_ number: UInt64) { self.number = number }

  /// Nil for a request that is carried out again, because it has changed nothing, or its repetition
  /// has the same answer.
  init?(_ number: UInt64, _ answer: Answer) {
    self.number = number
    switch answer {
    case .done, .written: break
    case .entry(let entry), .made(let entry): node = entry.node.rawValue
    case .created(let entry, let handle):
      (node, self.handle) = (entry.node.rawValue, handle.rawValue)
    case .error, .changed, .missing, .attributes, .bytes, .directory, .link, .space, .attribute,
      .none:
      return nil
    }
  }

  init(_ reader: inout ByteReader) throws {
    (number, node, handle) = (try reader.number(), try reader.number(), try reader.number())
  }

  /// The answer; the look-up of an entry was counted before.
  func answer(_ forest: Forest, _ header: RequestHeader) throws(TreeError) -> Answer {
    if let count = header.writtenCount { return .written(count) }
    if node == 0 { return .done }
    let id = NodeID(rawValue: node)
    let entry = Entry(
      node: id, attributes: try forest[id].attributes(id), isCacheable: false)
    return header.operation == .create
      ? .created(entry, HandleID(rawValue: handle)) : .made(entry)
  }
}

extension ByteWriter {
  mutating func append(_ request: SavedRequest) {
    append(request.number)
    append(request.node)
    append(request.handle)
  }
}
