/// An operation that the kernel asks for (linux/fuse.h, enum fuse_opcode).
struct Operation: RawRepresentable, Equatable {
  let rawValue: UInt32

  static let lookup = Operation(rawValue: 1)
  static let forget = Operation(rawValue: 2)
  static let getAttributes = Operation(rawValue: 3)
  static let setAttributes = Operation(rawValue: 4)
  static let symlink = Operation(rawValue: 6)
  static let makeNode = Operation(rawValue: 8)
  static let makeDirectory = Operation(rawValue: 9)
  static let unlink = Operation(rawValue: 10)
  static let removeDirectory = Operation(rawValue: 11)
  static let rename = Operation(rawValue: 12)
  static let link = Operation(rawValue: 13)
  static let read = Operation(rawValue: 15)
  static let write = Operation(rawValue: 16)
  static let synchronize = Operation(rawValue: 20)
  static let setAttribute = Operation(rawValue: 21)
  static let getAttribute = Operation(rawValue: 22)
  static let listAttributes = Operation(rawValue: 23)
  static let removeAttribute = Operation(rawValue: 24)
  static let start = Operation(rawValue: 26)
  static let openDirectory = Operation(rawValue: 27)
  static let create = Operation(rawValue: 35)
  static let interrupt = Operation(rawValue: 36)
  static let forgetSeveral = Operation(rawValue: 42)
  static let readDirectoryPlus = Operation(rawValue: 44)
  static let renameWithFlags = Operation(rawValue: 45)

  /// Whether the operation would change something.
  var isChange: Bool { Self.changes.contains(self) }

  /// Whether the operation is about a node, and not about a name.
  var isOfNode: Bool { Self.ofNodes.contains(self) }

  /// Whether the operation's own part begins with a second node.
  var namesSecondNode: Bool { Self.withSecondNode.contains(self) }

  /// Whether the kernel waits for an answer.
  var needsAnswer: Bool { !Self.unanswered.contains(self) }

  private static let changes: [Operation] = [
    .setAttributes, .symlink, .makeNode, .makeDirectory, .unlink, .removeDirectory, .rename, .link,
    .write, .setAttribute, .removeAttribute, .create, .renameWithFlags,
  ]
  private static let ofNodes: [Operation] = [
    .getAttributes, .setAttributes, .read, .write, .synchronize, .setAttribute, .getAttribute,
    .listAttributes, .removeAttribute, .openDirectory, .readDirectoryPlus,
  ]
  private static let withSecondNode: [Operation] = [.rename, .link, .renameWithFlags]
  private static let unanswered: [Operation] = [.forget, .forgetSeveral, .interrupt]
}
