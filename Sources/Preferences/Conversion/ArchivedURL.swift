import Foundation
internal import PropertyList

/// URLs as Apple's UserDefaults keeps them: a file's as its path, the home directory as `~`; any other as the
/// keyed archive of an NSURL. The archive is read and written here, because Foundation's unarchiver
/// ends the program where data is no archive.
enum ArchivedURL {
  /// The value that stands for a URL.
  static func value(_ url: URL) -> Value {
    if url.isFileURL { return .string(abbreviated(url.path)) }
    let archive: Value = [
      "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": ["root": .uid(1)],
      "$objects": .array(objects(of: url)),
    ]
    return .data(Document.binary(archive))
  }

  /// The path with `~` for the home directory.
  private static func abbreviated(_ path: String) -> String {
    let home = NSHomeDirectory()
    if path == home { return "~" }
    return path.hasPrefix(home + "/") ? "~" + path.dropFirst(home.count) : path
  }

  /// The table of an archive: nil, the URL, its text, its class, its base and so on.
  private static func objects(of url: URL) -> [Value] {
    let url = url.absoluteURL
    return [
      "$null", ["$class": .uid(3), "NS.base": .uid(0), "NS.relative": .uid(2)],
      .string(url.absoluteString), ["$classname": "NSURL", "$classes": ["NSURL", "NSObject"]],
    ]
  }

  /// The URL of an archive; nil for other bytes.
  static func url(_ data: [UInt8]) -> URL? {
    guard case .dictionary(let archive) = (try? Document.read(data))?.value,
      archive["$archiver"] == "NSKeyedArchiver", case .array(let objects) = archive["$objects"],
      case .dictionary(let top) = archive["$top"]
    else { return nil }
    return (top["root"] ?? top.values.first).flatMap { url($0, objects, depth: 0) }
  }

  /// URLs that are the base of each other, at most.
  private static let deepest = 16

  private static func url(_ reference: Value, _ objects: [Value], depth: Int) -> URL? {
    guard depth < deepest, case .dictionary(let object) = find(reference, objects),
      case .dictionary(let kind)? = object["$class"].flatMap({ find($0, objects) }),
      kind["$classname"] == "NSURL",
      case .string(let text)? = object["NS.relative"].flatMap({ find($0, objects) })
    else { return nil }
    let base = object["NS.base"].flatMap { url($0, objects, depth: depth + 1) }
    return URL(string: text, relativeTo: base)
  }

  private static func find(_ reference: Value, _ objects: [Value]) -> Value? {
    guard case .uid(let number) = reference, let index = Int(exactly: number),
      objects.indices.contains(index)
    else { return nil }
    return objects[index]
  }
}
