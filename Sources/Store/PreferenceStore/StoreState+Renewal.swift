import PreferenceModel
import SystemCalls

// Lists that cannot be saved must not keep a journal that grows.

extension StoreState {
  /// Bytes by which the journal must have grown since the last attempt.
  private static let leastGrowth = 16 << 20

  /// Whether the journal has grown so far that an attempt is due.
  var isRenewalDue: Bool {
    let size = journal?.byteCount ?? 0
    return size > max(upkeep.renewedSize + Self.leastGrowth, 2 * upkeep.renewedSize)
  }

  /// Notes that an attempt was made.
  mutating func noteRenewal() { upkeep.renewedSize = journal?.byteCount ?? 0 }

  /// The new numbers of records that were recorded once more, and those that they had before.
  struct Renewed {
    var first: [Location: (old: UInt64, new: UInt64)] = [:]
    var pending: [Location: (old: [UInt64], new: UInt64)] = [:]

    var isEmpty: Bool { first.isEmpty && pending.isEmpty }
  }

  /// Appends the changes of lists whose last rewrite failed, or that cannot be parsed, as far as
  /// they are not in the present file of the journal. The old records count until `adopt`.
  mutating func recordStuckAgain() throws(SystemError) -> Renewed {
    var renewed = Renewed()
    guard let journal else { return renewed }
    let end = journal.endOfClosedFiles
    for (location, unsaved) in domains.unsaved where unsaved.first <= end {
      guard let domain = domains[location], domain.failure != nil else { continue }
      let first = try journal.append(unsavedOf: domain.snapshot, location)
      renewed.first[location] = (unsaved.first, first)
    }
    for (location, edits) in pending
    where unreadable[location] != nil && (edits.first?.sequence ?? .max) <= end {
      renewed.pending[location] = (
        edits.map(\.sequence), try journal.append(pending: edits, location)
      )
    }
    return renewed
  }

  /// Makes the new records count, where the list was neither saved nor read meanwhile.
  mutating func adopt(_ renewed: Renewed) {
    for (location, numbers) in renewed.first
    where domains[location]?.firstUnsaved == numbers.old {
      domains[location]?.firstUnsaved = numbers.new
    }
    for (location, numbers) in renewed.pending
    where pending[location]?.map(\.sequence) == numbers.old {
      renumberPending(location, numbers.new)
    }
  }

  /// Gives all replayed edits of a location the number of the record that has them now.
  mutating func renumberPending(_ location: Location, _ number: UInt64) {
    for index in (pending[location] ?? []).indices { pending[location]?[index].sequence = number }
  }
}

extension Journal {
  /// Appends what the list of a location lacks: each key with its text, mode and time.
  /// - Returns: the number of the first record.
  func append(
    unsavedOf snapshot: LocationSnapshot, _ location: Location
  ) throws(SystemError) -> UInt64 {
    let first = lastSequence + 1
    for edit in snapshot.unsavedEdits {
      var items = [Changeset.Item(location, edit)]
      // The time of a record is also that of the change of what is kept beside a value.
      var time = snapshot.lastModified
      if let key = edit.key, let entry = snapshot.entry(key) {
        time = max(time, entry.metadata.lastChanged)
      }
      if case .set(let key, _, _) = edit, let metadata = snapshot.entry(key)?.metadata {
        let description = Description(mode: metadata.mode, modified: metadata.modified)
        items.append(Changeset.Item(location, .describe(key, description)))
        time = metadata.lastChanged
      }
      _ = try append(.change(Changeset(items, time: time)))
    }
    return first
  }

  /// Appends all replayed edits of a location, as one record: some of them without those that
  /// follow would bring old values back. Each key keeps its time.
  /// - Returns: the number of the record.
  func append(
    pending edits: [StoreState.Pending], _ location: Location
  ) throws(SystemError) -> UInt64 {
    let all = edits.flatMap { pending -> [Edit] in
      switch pending.edit {
      case .set(let key, _, _), .splice(let key, _):
        [pending.edit, .describe(key, Description(modified: pending.time))]
      case .describe, .remove, .createDomain, .removeDomain: [pending.edit]
      }
    }
    let time = edits.last?.time ?? .now
    return try append(.change(Changeset(all.map { Changeset.Item(location, $0) }, time: time)))
  }
}
