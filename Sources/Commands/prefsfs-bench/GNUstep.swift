import Glibc

/// GNUstep's NSUserDefaults, called through the Objective-C runtime, if the machine has its
/// library.
struct GNUstep {
  private typealias Object = OpaquePointer
  private typealias Lookup = @convention(c) (Object, OpaquePointer) -> UnsafeRawPointer?
  private typealias Name = @convention(c) (UnsafePointer<CChar>) -> OpaquePointer?
  private typealias Send = @convention(c) (Object, OpaquePointer) -> Object?
  private typealias SendOne = @convention(c) (Object, OpaquePointer, UnsafeRawPointer?) -> Object?
  private typealias SendTwo = @convention(c) (Object, OpaquePointer, Object, Object) -> Void

  private let runtime: Runtime
  private let defaults: Object

  /// nil if the machine has no libgnustep-base 1.28.
  init?() {
    guard let runtime = Runtime() else { return nil }
    self.runtime = runtime
    // The shared object outlives the pool.
    guard
      let defaults = runtime.withPool({
        runtime.named("NSUserDefaults").flatMap { runtime.send($0, "standardUserDefaults") }
      })
    else { return nil }
    self.defaults = defaults
  }

  /// The functions of the Objective-C runtime that are needed.
  private struct Runtime {
    let named: Name
    let selector: Name
    let lookup: Lookup

    init?() {
      guard let library = dlopen("libgnustep-base.so.1.28", RTLD_NOW | RTLD_GLOBAL),
        let named = dlsym(library, "objc_getClass"),
        let selector = dlsym(library, "sel_registerName"),
        let lookup = dlsym(library, "objc_msg_lookup")
      else { return nil }
      self.named = unsafeBitCast(named, to: Name.self)
      self.selector = unsafeBitCast(selector, to: Name.self)
      self.lookup = unsafeBitCast(lookup, to: Lookup.self)
    }

    /// Sends a message without arguments.
    func send(_ object: Object, _ message: String) -> Object? {
      guard let selector = selector(message), let method = lookup(object, selector) else {
        return nil
      }
      return unsafeBitCast(method, to: Send.self)(object, selector)
    }

    /// Runs the body with an autorelease pool of its own: without one GNUstep complains of each
    /// object.
    func withPool<Result>(_ body: () -> Result?) -> Result? {
      guard let type = named("NSAutoreleasePool"), let pool = send(type, "new") else { return nil }
      defer { _ = send(pool, "release") }
      return body()
    }
  }

  private func string(_ text: String) -> Object? {
    guard let type = runtime.named("NSString"),
      let make = runtime.selector("stringWithUTF8String:"),
      let method = runtime.lookup(type, make)
    else { return nil }
    return text.withCString { unsafeBitCast(method, to: SendOne.self)(type, make, $0) }
  }

  /// Sets each key to its own name.
  func set(_ names: [String]) {
    _ = runtime.withPool {
      guard let set = runtime.selector("setObject:forKey:"),
        let method = runtime.lookup(defaults, set)
      else {
        return
      }
      for name in names {
        guard let key = string(name) else { continue }
        unsafeBitCast(method, to: SendTwo.self)(defaults, set, key, key)
      }
    }
  }

  /// Reads a key `count` times.
  func read(_ name: String, _ count: Int) {
    _ = runtime.withPool {
      guard let get = runtime.selector("objectForKey:"), let method = runtime.lookup(defaults, get),
        let key = string(name)
      else { return }
      let read = unsafeBitCast(method, to: SendOne.self)
      for _ in 0..<count { _ = read(defaults, get, UnsafeRawPointer(key)) }
    }
  }
}
