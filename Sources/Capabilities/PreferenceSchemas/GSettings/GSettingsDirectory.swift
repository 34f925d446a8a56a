import Glibc
import PropertyList
import SystemCalls

/// The schemas of GSettings in one directory, which `glib-compile-schemas` compiles together: its
/// files, and what each of them declares.
struct GSettingsDirectory: Sendable {
  /// Identifies a state of a directory or file. Modification times alone do not, where a system has
  /// one time for all files.
  struct Stamp: Equatable, Sendable {
    let device, inode: UInt64
    let size: Int64
    let modified: Timestamp

    /// The state of what is at the path; nil if nothing is, or it cannot be said.
    init?(_ path: String) {
      guard let status = try? Files.status(path) else { return nil }
      (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
      (size, modified) = (Int64(status.st_size), Timestamp(status.st_mtim))
    }
  }

  let path: String
  /// The directory when its files were looked at; nil if there was none.
  let stamp: Stamp?
  /// Whether each later change gives the directory another time: one of the same tick of the kernel's
  /// clock does not.
  let isSettled: Bool
  /// What each file declares, and the file when it was looked at.
  private var files: [String: (stamp: Stamp, file: GSettingsFile)] = [:]
  /// The files of defaults, in their order.
  private var overrides: [String] = []
  /// The file that has each schema, enumeration or flags.
  private var places: [String: String] = [:]

  /// The largest file that is read, in bytes.
  private static let largest = 4 << 20
  /// The most files of a directory that are looked at.
  private static let most = 4096

  /// Looks at the files of a directory. Cost: a stat(2) for each file that has not changed; the
  /// others are read.
  /// - Parameters:
  ///   - old: the directory as it was.
  ///   - report: is called with the path of a file that counts as none, and the reason.
  init(_ path: String, since old: GSettingsDirectory?, _ report: (String, String) -> Void) {
    (self.path, stamp) = (path, Stamp(path))
    isSettled = stamp.map { Timestamp.now.nanoseconds(after: $0.modified) > 100_000_000 } ?? true
    let names = (try? Files.names(in: path)) ?? []
    overrides = Array(names.filter { $0.hasSuffix(".gschema.override") }.sorted().prefix(Self.most))
    let schemas = names.filter { $0.hasSuffix(".gschema.xml") || $0.hasSuffix(".enums.xml") }
    if schemas.count > Self.most { report(path, "it has more than \(Self.most) schemas") }
    for name in schemas.sorted(by: Self.isBefore).prefix(Self.most) {
      guard let stamp = Stamp("\(path)/\(name)") else { continue }
      if let known = old?.files[name], known.stamp == stamp {
        files[name] = known
      } else if let bytes = read(name, report) {
        files[name] = (stamp, GSettingsFile(bytes))
      }
      guard let file = files[name]?.file else { continue }
      for id in file.schemas.map(\.id) + file.enumerations where places[id] == nil {
        places[id] = name
      }
    }
  }

  /// The order in which GLib reads files: enumerations come first.
  private static func isBefore(_ first: String, _ second: String) -> Bool {
    let (isFirst, isSecond) = (first.hasSuffix(".enums.xml"), second.hasSuffix(".enums.xml"))
    return isFirst == isSecond ? first < second : isFirst
  }

  private func read(_ name: String, _ report: (String, String) -> Void) -> [UInt8]? {
    let path = "\(path)/\(name)"
    do throws(SystemError) {
      return try Files.regularContents(path, limit: Self.largest)
    } catch {
      report(path, error.errno == .fileTooLarge ? "it has more than 4 MiB" : "\(error)")
      return nil
    }
  }

  /// The schemas that have a path, in the order of the files.
  var schemas: [GSettingsFile.Schema] {
    files.keys.sorted(by: Self.isBefore).flatMap { files[$0]?.file.schemas ?? [] }
      .filter { $0.path != nil }
  }

  /// When the file of a schema last changed.
  func modified(_ id: String) -> Timestamp? { places[id].flatMap { files[$0]?.stamp.modified } }

  /// Returns the keys of a schema and of its bases, as entries of a manifest, with the defaults of
  /// overrides; nil if the schema's file is malformed. Reads its file, those of what it needs, and
  /// overrides.
  func entries(of id: String, _ report: (String, String) -> Void) -> [ValueDictionary]? {
    var schemas = GSettingsSchemas(ofFiles: true)
    let roots = roots(for: id, report)
    for name in roots.keys.sorted(by: Self.isBefore) {
      guard let root = roots[name] else { continue }
      do throws(Malformed) {
        try schemas.read(root)
      } catch {
        report("\(path)/\(name)", error.reason)
      }
    }
    for name in overrides {
      for line in Self.overrides(read(name, report) ?? []) {
        schemas.setFallback(line.value, of: line.key, in: line.schema)
      }
    }
    return schemas.entries(of: id)
  }

  /// The elements of the file that has a schema, and of those that have what it needs.
  private func roots(
    for id: String, _ report: (String, String) -> Void
  ) -> [String: Markup.Element] {
    var (roots, seen): ([String: Markup.Element], Set<String>) = ([:], [])
    var next = [places[id]].compactMap { $0 }
    while let name = next.popLast() {
      guard seen.insert(name).inserted, let bytes = read(name, report) else { continue }
      do throws(Malformed) {
        let root = try Markup.read(String(decoding: bytes, as: UTF8.self))
        roots[name] = root
        for schema in root.all("schema") {
          let ids = ["extends", "list-of"].compactMap { schema.attributes[$0] }
          let keys = schema.all("key").map(\.attributes)
          next += (ids + keys.compactMap { $0["enum"] ?? $0["flags"] }).compactMap { places[$0] }
        }
      } catch {
        report("\(path)/\(name)", error.reason)
      }
    }
    return roots
  }

  /// The lines of a file of overrides (a key file of GLib's). Groups for one desktop are left out.
  private static func overrides(
    _ bytes: [UInt8]
  ) -> [(schema: String, key: String, value: String)] {
    var schema: String?
    var lines: [(schema: String, key: String, value: String)] = []
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      let line = line.drop(while: \.isWhitespace)
      if line.hasPrefix("[") {
        let name = line.dropFirst().prefix { $0 != "]" }
        schema = name.contains(":") ? nil : String(name)
      } else if let schema, !line.hasPrefix("#"), let middle = line.firstIndex(of: "=") {
        let key = line[..<middle].prefix { !$0.isWhitespace }
        lines.append((schema, String(key), String(line[line.index(after: middle)...])))
      }
    }
    return lines
  }
}
