import Synchronization

/// The observers of a place or an engine.
///
/// Threads: any. One lock, for a look; no observer is called under it.
public final class ObserverList: Sendable {
  private struct Observer: Sendable {
    var author: Author?
    var body: @Sendable (Notice) -> Void

    /// Whether it is notified of changes that the author made (nil means somebody outside).
    func hears(_ maker: Author?) -> Bool { maker == nil || author != maker }
  }

  private let observers = Mutex<[Observer]>([])

  /// An empty list.
  public init() {}

  /// Adds an observer.
  /// - Parameter author: its own changes, which it is not notified of; nil if it hears of every
  ///   one.
  public func add(except author: Author?, _ body: @escaping @Sendable (Notice) -> Void) {
    observers.withLock { $0.append(Observer(author: author, body: body)) }
  }

  /// Whether an observer would be notified of a change that the author made.
  public func isEmpty(for author: Author?) -> Bool {
    observers.withLock { observers in !observers.contains { $0.hears(author) } }
  }

  /// Notifies the observers of a change, in the order in which they were added.
  public func notify(_ notice: Notice) {
    let all = observers.withLock { $0 }
    for observer in all where observer.hears(notice.author) { observer.body(notice) }
  }
}
