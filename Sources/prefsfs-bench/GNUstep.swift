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

  private let named: Name
  private let selector: Name
  private let lookup: Lookup
  private let defaults: Object

  /// nil if the machine has no libgnustep-base 1.28.
  init?() {
    guard let library = dlopen("libgnustep-base.so.1.28", RTLD_NOW | RTLD_GLOBAL),
      let named = dlsym(library, "objc_getClass"),
      let selector = dlsym(library, "sel_registerName"),
      let lookup = dlsym(library, "objc_msg_lookup")
    else { return nil }
    self.named = unsafeBitCast(named, to: Name.self)
    self.selector = unsafeBitCast(selector, to: Name.self)
    self.lookup = unsafeBitCast(lookup, to: Lookup.self)
    guard let type = self.named("NSUserDefaults"),
      let standard = self.selector("standardUserDefaults"),
      let method = self.lookup(type, standard),
      let defaults = unsafeBitCast(method, to: Send.self)(type, standard)
    else { return nil }
    self.defaults = defaults
  }

  private func string(_ text: String) -> Object? {
    guard let type = named("NSString"), let make = selector("stringWithUTF8String:"),
      let method = lookup(type, make)
    else { return nil }
    return text.withCString { unsafeBitCast(method, to: SendOne.self)(type, make, $0) }
  }

  /// Runs the body with an autorelease pool of its own.
  private func withPool(_ body: () -> Void) {
    guard let type = named("NSAutoreleasePool"), let new = selector("new"),
      let release = selector("release"), let make = lookup(type, new),
      let pool = unsafeBitCast(make, to: Send.self)(type, new), let end = lookup(pool, release)
    else { return }
    body()
    _ = unsafeBitCast(end, to: Send.self)(pool, release)
  }

  /// Sets each key to its own name.
  func set(_ names: [String]) {
    withPool {
      guard let set = selector("setObject:forKey:"), let method = lookup(defaults, set) else {
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
    withPool {
      guard let get = selector("objectForKey:"), let method = lookup(defaults, get),
        let key = string(name)
      else { return }
      let read = unsafeBitCast(method, to: SendOne.self)
      for _ in 0..<count { _ = read(defaults, get, UnsafeRawPointer(key)) }
    }
  }
}
