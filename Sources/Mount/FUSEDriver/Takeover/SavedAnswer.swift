import PreferenceModel
import PreferenceTree
import SystemCalls

/// The answer to a request that was carried out, in the form in which a successor can give it
/// again. Attributes are not in it: they are asked for anew.
enum SavedAnswer: Equatable {
  case error(Errno)
  case done
  case written(Int)
  /// The attributes of the request's node.
  case attributes
  case entry(NodeID)
  case created(NodeID, HandleID)

  /// Nil for an answer to a request that changes nothing: such a request is carried out again.
  init?(_ answer: Answer) {
    switch answer {
    case .error(let errno): self = .error(errno)
    case .done: self = .done
    case .written(let count): self = .written(count)
    case .changed: self = .attributes
    case .entry(let entry), .made(let entry): self = .entry(entry.node)
    case .created(let entry, let handle): self = .created(entry.node, handle)
    case .attributes, .missing, .bytes, .directory, .link, .space, .attribute, .none: return nil
    }
  }

  /// The answer as the trees would give it now; the look-up of an entry was counted before.
  /// - Parameter node: the node of the request.
  func answer(_ forest: Forest, _ node: NodeID) throws(TreeError) -> Answer {
    func entry(_ id: NodeID) throws(TreeError) -> Entry {
      Entry(node: id, attributes: try forest[id].attributes(id), isCacheable: false)
    }
    switch self {
    case .error(let errno): return .error(errno)
    case .done: return .done
    case .written(let count): return .written(count)
    case .attributes: return .changed(try forest[node].attributes(node))
    case .entry(let id): return .made(try entry(id))
    case .created(let id, let handle): return .created(try entry(id), handle)
    }
  }
}

extension ByteWriter {
  mutating func append(_ answer: SavedAnswer) {
    let (tag, first, second): (UInt8, UInt64, UInt64) =
      switch answer {
      case .error(let errno): (0, UInt64(bitPattern: Int64(errno.rawValue)), 0)
      case .done: (1, 0, 0)
      case .written(let count): (2, UInt64(clamping: count), 0)
      case .attributes: (3, 0, 0)
      case .entry(let id): (4, id.rawValue, 0)
      case .created(let id, let handle): (5, id.rawValue, handle.rawValue)
      }
    append(tag)
    append(first)
    append(second)
  }
}

extension ByteReader {
  mutating func savedAnswer() throws -> SavedAnswer {
    let (tag, first, second) = (
      try number(UInt8.self), try number(UInt64.self), try number(UInt64.self)
    )
    switch tag {
    case 0: return .error(Errno(rawValue: Int32(truncatingIfNeeded: first)))
    case 1: return .done
    case 2: return .written(Int(clamping: first))
    case 3: return .attributes
    case 4: return .entry(NodeID(rawValue: first))
    case 5: return .created(NodeID(rawValue: first), HandleID(rawValue: second))
    default: throw Unknown()
    }
  }
}
