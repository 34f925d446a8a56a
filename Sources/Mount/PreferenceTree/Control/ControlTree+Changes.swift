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

  func release(_ id: NodeID, _ handle: HandleID, now: Moment) {}

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
}
