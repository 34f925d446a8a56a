import PreferenceModel
import SystemCalls

// Lists that cannot be saved must not keep a journal that grows.

extension Store {
  /// Bytes of the journal up to which a list that cannot be saved keeps its records where they are.
  private static let mostKept = 16 << 20

  /// Records the changes of lists that cannot be saved once more, at the end of the journal, and
  /// removes the older files, which hold the records of all other lists too. Does nothing unless
  /// the journal has grown beyond 16 MiB and beyond four times what those changes took the last
  /// time, so that recording them costs a part of what is recorded anyway. Called by the writer's
  /// thread after a rewrite.
  ///
  /// A crash before the files are removed leaves both copies: the replay applies the same values
  /// again.
  func renewStuckRecords() {
    guard state.withLock({ ($0.journal?.byteCount ?? 0) > max(Self.mostKept, 4 * $0.renewedBytes) })
    else { return }
    do throws(EngineError) {
      let renewed = try state.withLock { state throws(EngineError) in
        try EngineError.wrapping { () throws(SystemError) in try state.recordStuckAgain() }
      }
      guard !renewed.isEmpty else { return }
      try synchronize()
      remove(
        try state.withLock { state throws(EngineError) in
          state.adopt(renewed)
          return try EngineError.wrapping { () throws(SystemError) in try state.releaseJournal() }
        })
    } catch {
      log("the journal could not be shortened: \(error)")
    }
  }
}

extension Store.State {
  /// The new numbers of records that were recorded once more, and those that they had before.
  fileprivate struct Renewed {
    var first: [Location: (old: UInt64, new: UInt64)] = [:]
    var pending: [Location: (old: [UInt64], new: [UInt64])] = [:]

    var isEmpty: Bool { first.isEmpty && pending.isEmpty }
  }

  /// Appends the changes of lists whose last rewrite failed, or that cannot be parsed, as far as
  /// they are not in the present file of the journal. The old records count until `adopt`.
  fileprivate mutating func recordStuckAgain() throws(SystemError) -> Renewed {
    var renewed = Renewed()
    guard let journal else { return renewed }
    let (end, before) = (journal.endOfClosedFiles, journal.byteCount)
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
    if !renewed.isEmpty { renewedBytes = journal.byteCount - before }
    return renewed
  }

  /// Makes the new records count, where the list was neither saved nor read meanwhile.
  fileprivate mutating func adopt(_ renewed: Renewed) {
    for (location, numbers) in renewed.first
    where domains[location]?.firstUnsaved == numbers.old {
      domains[location]?.firstUnsaved = numbers.new
    }
    for (location, numbers) in renewed.pending {
      renumber(location, numbers.new, if: numbers.old)
    }
  }

  /// Gives the replayed edits of a location new numbers, if they still have the old ones.
  private mutating func renumber(_ location: Location, _ new: [UInt64], if old: [UInt64]) {
    guard pending[location]?.map(\.sequence) == old else { return }
    for (index, number) in new.enumerated() { pending[location]?[index].sequence = number }
  }
}

extension Journal {
  /// Appends what the list of a location lacks: each key with its text, mode and time.
  /// - Returns: the number of the first record.
  func append(
    unsavedOf snapshot: DomainSnapshot, _ location: Location
  ) throws(SystemError) -> UInt64 {
    let first = lastSequence + 1
    for edit in snapshot.unsavedEdits {
      var items = [Changeset.Item(location, edit)]
      var time = snapshot.lastModified
      if case .set(let key, _, _) = edit, let metadata = snapshot.entry(key)?.metadata {
        let description = Description(mode: metadata.mode, modified: metadata.modified)
        items.append(Changeset.Item(location, .describe(key, description)))
        time = metadata.modified
      }
      _ = try append(.change(Changeset(items, time: time)))
    }
    return first
  }

  /// Appends replayed edits of a location.
  /// - Returns: the numbers of the records.
  func append(
    pending edits: [Store.Pending], _ location: Location
  ) throws(SystemError) -> [UInt64] {
    var numbers: [UInt64] = []
    for edit in edits {
      let changeset = Changeset([Changeset.Item(location, edit.edit)], time: edit.time)
      numbers.append(try append(.change(changeset)))
    }
    return numbers
  }
}
