import Glibc

/// libplist, the peer of the codecs, if the machine has it (the package libplist3, which plistutil
/// brings).
struct LibPlist {
  private typealias Parse =
    @convention(c) (UnsafePointer<UInt8>, UInt32, UnsafeMutablePointer<OpaquePointer?>) -> Int32
  private typealias Write =
    @convention(c) (
      OpaquePointer?, UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<UInt32>
    ) -> Int32
  private typealias Free = @convention(c) (OpaquePointer?) -> Void

  private let fromBinary: Parse
  private let fromXML: Parse
  private let toBinary: Write
  private let toXML: Write
  private let free: Free

  /// nil if the machine does not have the library.
  static let shared = LibPlist()

  private init?() {
    guard let library = dlopen("libplist-2.0.so.3", RTLD_NOW),
      let fromBinary = dlsym(library, "plist_from_bin"),
      let fromXML = dlsym(library, "plist_from_xml"),
      let toBinary = dlsym(library, "plist_to_bin"), let toXML = dlsym(library, "plist_to_xml"),
      let free = dlsym(library, "plist_free")
    else { return nil }
    self.fromBinary = unsafeBitCast(fromBinary, to: Parse.self)
    self.fromXML = unsafeBitCast(fromXML, to: Parse.self)
    self.toBinary = unsafeBitCast(toBinary, to: Write.self)
    self.toXML = unsafeBitCast(toXML, to: Write.self)
    self.free = unsafeBitCast(free, to: Free.self)
  }

  /// Parses a list. A result that is not given to `free` stays until the process ends.
  func parse(_ bytes: [UInt8], isBinary: Bool) -> OpaquePointer? {
    var node: OpaquePointer?
    _ = (isBinary ? fromBinary : fromXML)(bytes, UInt32(bytes.count), &node)
    return node
  }

  func read(_ bytes: [UInt8], isBinary: Bool) { free(parse(bytes, isBinary: isBinary)) }

  func write(_ node: OpaquePointer?, isBinary: Bool) {
    var text: UnsafeMutableRawPointer?
    var count: UInt32 = 0
    _ = (isBinary ? toBinary : toXML)(node, &text, &count)
    Glibc.free(text)
  }
}
