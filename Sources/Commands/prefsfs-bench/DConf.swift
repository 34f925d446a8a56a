import Glibc
import SystemCalls

/// dconf's client library, reading a compiled database. A peer for hits and misses, if the machine
/// has it.
struct DConf {
  private let client: OpaquePointer
  private let read: @convention(c) (OpaquePointer, UnsafePointer<CChar>) -> OpaquePointer?
  private let release: @convention(c) (OpaquePointer) -> Void

  /// Compiles a database of the names; nil if the machine has no libdconf, or no `dconf` to compile
  /// with.
  init?(_ directory: String, _ names: [String]) {
    let source = directory + "/dconf.d"
    let lines = names.map { "\(Self.path($0))='\($0)'\n" }.joined()
    do throws(SystemError) {
      try Files.makeDirectories(source, mode: 0o700)
      try Descriptor(opening: source + "/keys", O_WRONLY | O_CREAT | O_TRUNC)
        .write(Array("[/]\n\(lines)".utf8))
      try Descriptor(opening: directory + "/profile", O_WRONLY | O_CREAT | O_TRUNC)
        .write(Array("file-db:\(directory)/dconf.db\n".utf8))
      guard try Child.run("dconf", ["compile", directory + "/dconf.db", source]) == 0 else {
        return nil
      }
    } catch {
      return nil
    }
    setenv("DCONF_PROFILE", directory + "/profile", 1)
    guard let library = dlopen("libdconf.so.1", RTLD_NOW),
      let make = dlsym(library, "dconf_client_new"), let read = dlsym(library, "dconf_client_read"),
      let release = dlsym(library, "g_variant_unref")
    else { return nil }
    typealias Make = @convention(c) () -> OpaquePointer?
    guard let client = unsafeBitCast(make, to: Make.self)() else { return nil }
    self.client = client
    self.read = unsafeBitCast(read, to: type(of: self.read))
    self.release = unsafeBitCast(release, to: type(of: self.release))
  }

  /// The name as a part of a dconf path, which must not hold blanks.
  private static func path(_ name: String) -> String { name.replacing(" ", with: "-") }

  /// Reads a key once.
  func read(_ name: String) {
    if let value = read(client, "/" + Self.path(name)) { release(value) }
  }
}
