internal import PropertyList

/// What has become of a key's effective value.
public struct PreferenceChange<Value: Sendable>: Sendable {
  /// What it was; for a key with a default never nil.
  public let old: Value
  /// What it is.
  public let new: Value
  /// Whether this process made the change, so that nobody answers an echo of his own.
  public let isOwn: Bool
}

extension PreferenceChange: Equatable where Value: Equatable {}

/// An observation; it ends when this is cancelled or goes.
public final class PreferenceObservation: Sendable {
  private let dispatcher: Dispatcher
  private let number: UInt64

  init(_ dispatcher: Dispatcher, _ number: UInt64) {
    (self.dispatcher, self.number) = (dispatcher, number)
  }

  deinit { cancel() }

  /// Ends it: the body is called at most for what it is being told of at the moment.
  public func cancel() { dispatcher.remove(number) }
}

extension UserDefaults {
  /// Calls the body when a key's effective value is another than it was last told, from now on, whoever
  /// changed it: this process, another one, a mount, an editor that changed the list.
  ///
  /// Changes that follow each other quickly are told as one, from the first old value to the last new one; what is
  /// undone at once is not told. All bodies run on one thread of the library's: one that blocks holds up the
  /// others. What a body reads is at least as new as what it was told of. Keep the result: the observation ends
  /// with it. The call reads the value, and waits for the owner as a read does. The counterpart of key-value
  /// observing.
  public func observe<Value>(
    _ key: PreferenceKey<Value>,
    _ body: @escaping @Sendable (PreferenceChange<Value>) -> Void
  ) -> PreferenceObservation {
    observation(of: key.name) { change in
      body(
        PreferenceChange(
          old: key.typed(change.old), new: key.typed(change.new), isOwn: change.isOwn))
    }
  }

  /// As ``observe(_:_:)-(PreferenceKey<Value>,_)``, for a key without a type: objects as
  /// ``object(forKey:)`` gives them, nil where there is none.
  public func observe(
    _ defaultName: String,
    _ body: @escaping @Sendable (_ old: Any?, _ new: Any?, _ isOwn: Bool) -> Void
  ) -> PreferenceObservation {
    observation(of: defaultName) { change in
      body(change.old.map(Objects.object), change.new.map(Objects.object), change.isOwn)
    }
  }

  private func observation(
    of name: String, _ body: @escaping @Sendable (Dispatcher.Change) -> Void
  ) -> PreferenceObservation {
    let dispatcher = session.dispatcher
    return PreferenceObservation(dispatcher, dispatcher.add(Key(name), in: domain, body))
  }

  /// The changes of a key's effective value from the moment of the call, as a sequence that does not end. What
  /// is not taken yet is kept, without a limit.
  public func changes<Value>(of key: PreferenceKey<Value>) -> PreferenceChanges<Value> {
    PreferenceChanges(self, key)
  }
}

/// The changes of a preference: `for await change in ...`. Each of several loops over one sequence gets some of
/// them; ask for a sequence each.
public struct PreferenceChanges<Value: PreferenceValue>: AsyncSequence, Sendable {
  private let stream: AsyncStream<PreferenceChange<Value>>

  init(_ defaults: UserDefaults, _ key: PreferenceKey<Value>) {
    stream = AsyncStream { continuation in
      let observation = defaults.observe(key) { change in continuation.yield(change) }
      continuation.onTermination = { _ in observation.cancel() }
    }
  }

  /// The changes, one after the other.
  public func makeAsyncIterator() -> AsyncStream<PreferenceChange<Value>>.Iterator {
    stream.makeAsyncIterator()
  }
}
