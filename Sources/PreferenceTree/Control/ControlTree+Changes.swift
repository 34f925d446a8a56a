import PreferenceModel
import SystemCalls

// Requests that change something: the control directory refuses them, but for times and modes, and
// for documents that are written to `apply`.

extension ControlTree {
  /// Times and modes are not kept, but setting them succeeds, because copying tools do that.
  func setAttributes(
    _ id: NodeID, _ change: AttributeChange, handle: HandleID, now: Moment
  ) throws(TreeError) -> Attributes {
    guard let entry = nodes[id]?.entry else { throw .missing }
    let takesSize = if case .commands = entry.content { true } else { false }
    if change.size != nil && !takesSize || change.changesOwner || entry.isPast {
      throw refusal(id, path)
    }
    return try attributes(id)
  }

  /// A write to `apply` is one transaction, wherever in the file it is written.
  func write(_ id: NodeID, _ write: WriteRequest, now: Moment) throws(TreeError) {
    guard case .commands(let carryOut)? = nodes[id]?.entry.content else {
      throw refusal(id, path)
    }
    let changeset = try asTreeError { () throws(EngineError) in try carryOut(write.bytes) }
    guard !changeset.isEmpty else { return }
    effects.append(.awaitSettlement(version: changeset.version))
    applied.append(changeset)
  }

  func create(
    _ parent: NodeID, _ name: [UInt8], _ flags: CreationFlags, now: Moment
  ) throws(TreeError) -> (entry: Entry, handle: HandleID) { throw refusal(parent, text(name)) }

  func release(_ id: NodeID, _ handle: HandleID, now: Moment) {}

  func makeDirectory(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) -> Entry {
    throw refusal(parent, text(name))
  }

  func makeLink(
    _ parent: NodeID, _ name: [UInt8], to target: [UInt8], now: Moment
  ) throws(TreeError) -> Entry { throw refusal(parent, text(name)) }

  func link(
    _ id: NodeID, _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry { throw refusal(parent, text(name)) }

  func unlink(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) {
    throw refusal(parent, text(name))
  }

  func removeDirectory(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) {
    throw refusal(parent, text(name))
  }

  func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Moment
  ) throws(TreeError) { throw refusal(oldParent, text(oldName)) }

  func setExtendedAttribute(
    _ id: NodeID, _ name: String, _ value: [UInt8], now: Moment
  ) throws(TreeError) {
    if nodes[id]?.entry.isPast == true { throw .readOnly }
    if !name.hasPrefix("user.prefs.") { throw .unsupported }
  }

  func removeExtendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) {
    if nodes[id]?.entry.isPast == true { throw .readOnly }
    if !name.hasPrefix("user.prefs.") { throw .unsupported }
  }

  private func text(_ name: [UInt8]) -> String { String(decoding: name, as: UTF8.self) }
}
