import PreferenceModel
import PreferenceTree
import PropertyList
import SystemCalls

/// What a predecessor has left: the log of its `SavedState`, taken apart.
struct Estate {
  /// Records for `Forest.restore`.
  private(set) var trees: [[UInt8]] = []
  /// The requests of which the trees have the effects, by their numbers.
  private(set) var requests: [UInt64: SavedRequest] = [:]
  /// The announcements that watchers may not have got, in order.
  private(set) var announcements: [(number: UInt64, announcement: Announcement)] = []
  /// The registered defaults as `SavedState` wrote them.
  private(set) var registered: [UInt8] = []

  /// Reads the log. Throws if it makes no sense.
  /// - Parameter announced: the number of the last announcement that was made.
  init(_ log: [UInt8], announced: UInt64) throws {
    var reader = ByteReader(log[...])
    while !reader.isAtEnd {
      guard let kind = SavedState.Frame(rawValue: try reader.number()) else {
        throw ByteReader.Unknown()
      }
      let content = try reader.counted()
      switch kind {
      case .trees:
        var part = ByteReader(content)
        let request = try SavedRequest(&part)
        if request.number != 0 { requests[request.number] = request }
        if !part.isAtEnd { trees.append(Array(content.dropFirst(SavedRequest.size))) }
      case .registered: registered = Array(content)
      case .announcement:
        var part = ByteReader(content)
        let number = try part.number(UInt64.self)
        if number > announced { announcements.append((number, try part.announcement())) }
      }
    }
  }

  /// The registered defaults, as edits; nil if there were none.
  var registeredDefaults: Changeset? {
    get throws {
      guard !registered.isEmpty else { return nil }
      var reader = ByteReader(registered[...])
      return try reader.changeset()
    }
  }
}

extension ByteReader {
  fileprivate mutating func announcement() throws -> Announcement {
    let (directory, name, isDomain) = (try string(), try string(), try number(UInt8.self) != 0)
    let parent = try number(UInt64.self)
    let kind: Announcement.Kind
    switch try number(UInt8.self) {
    case 0: kind = .created
    case 1: kind = .removed
    case 2: kind = .changed(try timestamp())
    default: throw Unknown()
    }
    let node = parent == 0 ? nil : NodeID(rawValue: parent)
    return Announcement(directory, node, name: name, isDomain: isDomain, kind)
  }
}
