public import PropertyList

/// A change of a key's effective value.
public struct PreferenceChange<Value: Sendable>: Sendable {
  /// The value before; never nil for a key with a default.
  public let old: Value
  /// The new value.
  public let new: Value
  /// Whether this process made the change, so that a program can ignore its own changes.
  public let isOwn: Bool
}

extension PreferenceChange: Equatable where Value: Equatable {}

/// An observation of a key, or of all keys. It ends when it is cancelled or released.
public final class PreferenceObservation: Sendable {
  private let dispatcher: Dispatcher
  private let number: UInt64

  init(_ dispatcher: Dispatcher, _ number: UInt64) {
    (self.dispatcher, self.number) = (dispatcher, number)
  }

  deinit { cancel() }

  /// Ends the observation. Its body is called at most once more, for a change that is being told at
  /// the moment.
  public func cancel() { dispatcher.remove(number) }
}

extension UserDefaults {
  /// Calls the body whenever the effective value of a key differs from the value last reported,
  /// whether this process changed it, another one, a mount, or an editor that changed the list. It
  /// is the counterpart of key-value observing.
  ///
  /// Changes that follow each other quickly are reported as one, from the first old value to the
  /// last new one; those of other processes up to 1 ms later than a single change would be. A
  /// change that is undone at once is not reported. All bodies run on one thread of the library, so
  /// a body that blocks holds up the others. What a body reads is at least as new as the change
  /// that it is told of. The call itself reads the value, and waits for the owner of the store as a
  /// read does.
  ///
  /// - Returns: the observation, which ends when it is released: keep it.
  public func observe<Value>(
    _ key: PreferenceKey<Value>,
    _ body: @escaping @Sendable (PreferenceChange<Value>) -> Void
  ) -> PreferenceObservation { observe(key, initial: nil, body) }

  /// - Parameter initial: is called with the value from which the first change is told, before this
  ///   call returns.
  func observe<Value>(
    _ key: PreferenceKey<Value>, initial: ((Value) -> Void)?,
    _ body: @escaping @Sendable (PreferenceChange<Value>) -> Void
  ) -> PreferenceObservation {
    let tell = { (values: ValueDictionary) -> Void in initial?(key.typed(values[Key(key.name)])) }
    return observation(of: key.name, initial: tell) { change in
      let (old, new) = (key.typed(change.old), key.typed(change.new))
      // As values of the type they may be the same: a default, and the same value set.
      if let before = try? old.propertyList(), let after = try? new.propertyList(), before == after
      {
        return
      }
      body(PreferenceChange(old: old, new: new, isOwn: change.isOwn))
    }
  }

  /// Calls the body as ``observe(_:_:)-(PreferenceKey<Value>,_)`` does, for a key without a type:
  /// with objects as ``object(forKey:)`` gives them, and nil where there is no value.
  public func observe(
    _ defaultName: String,
    _ body: @escaping @Sendable (_ old: Any?, _ new: Any?, _ isOwn: Bool) -> Void
  ) -> PreferenceObservation {
    observation(of: defaultName, initial: nil) { change in
      body(change.old.map(Objects.object), change.new.map(Objects.object), change.isOwn)
    }
  }

  private func observation(
    of name: String, initial: ((ValueDictionary) -> Void)?,
    _ body: @escaping @Sendable (Dispatcher.Change) -> Void
  ) -> PreferenceObservation {
    let dispatcher = session.dispatcher
    let number = dispatcher.add(Key(name), in: domain, initial: initial) { changes in
      for change in changes.values { body(change) }
    }
    return PreferenceObservation(dispatcher, number)
  }

  /// Calls the body whenever the effective value of any key differs from the value last reported,
  /// as ``observe(_:_:)-(PreferenceKey<Value>,_)`` does: keys of the domain, of its suites and of
  /// the global domain, registered defaults, arguments. What changed at once, for instance in an
  /// editor, is reported together, by key. Cost: the call reads every key, and so does a change
  /// after which a list is read again as a whole; any other costs O(changed keys).
  ///
  /// - Returns: the observation, which ends when it is released: keep it.
  public func observeAll(
    _ body: @escaping @Sendable ([String: PreferenceChange<PropertyList.Value?>]) -> Void
  ) -> PreferenceObservation {
    let dispatcher = session.dispatcher
    let number = dispatcher.add(nil, in: domain) { changes in
      let named = changes.map { key, change in
        (key.string, PreferenceChange(old: change.old, new: change.new, isOwn: change.isOwn))
      }
      body(Dictionary(named) { first, _ in first })
    }
    return PreferenceObservation(dispatcher, number)
  }

  /// Returns the changes of a key's effective value from the moment of the call, as a sequence that
  /// does not end. Changes that have not been consumed yet are kept in memory, without a limit.
  /// - Parameter withInitial: whether the sequence begins with the present value, as a change from
  ///   that value to itself. A loop that shows the value needs no read before it, after which a
  ///   change might be missed.
  public func changes<Value>(
    of key: PreferenceKey<Value>, withInitial: Bool = false
  ) -> PreferenceChanges<Value> { PreferenceChanges(self, key, withInitial: withInitial) }
}

/// The changes of a preference, for `for await change in ...`. If several loops use one sequence,
/// each gets only some of the changes, so make a sequence for each loop.
public struct PreferenceChanges<Value: PreferenceValue>: AsyncSequence, Sendable {
  private let stream: AsyncStream<PreferenceChange<Value>>

  init(_ defaults: UserDefaults, _ key: PreferenceKey<Value>, withInitial: Bool) {
    stream = AsyncStream { continuation in
      let initial = { (value: Value) -> Void in
        guard withInitial else { return }
        continuation.yield(PreferenceChange(old: value, new: value, isOwn: false))
      }
      let observation = defaults.observe(key, initial: initial) { change in
        continuation.yield(change)
      }
      continuation.onTermination = { _ in observation.cancel() }
    }
  }

  /// Returns an iterator over the changes, in order.
  public func makeAsyncIterator() -> AsyncStream<PreferenceChange<Value>>.Iterator {
    stream.makeAsyncIterator()
  }
}
