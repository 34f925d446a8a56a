import Foundation
internal import PropertyList

/// Converts URLs to and from the values that Apple's UserDefaults keeps for them: for a file its
/// path, with `~` for the home directory; for any other URL the keyed archive of an NSURL. The
/// archive is read and written here, because Foundation's unarchiver ends the program if the data
/// is not an archive.
enum ArchivedURL {
  /// Returns the value that stands for a URL.
  static func value(_ url: URL) -> Value {
    if url.isFileURL { return .string(abbreviated(url.path)) }
    let archive: Value = [
      "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": ["root": .uid(1)],
      "$objects": .array(objects(of: url)),
    ]
    return .data(Document.binary(archive))
  }

  /// Returns the path with `~` for the home directory.
  private static func abbreviated(_ path: String) -> String {
    let home = NSHomeDirectory()
    if path == home { return "~" }
    return path.hasPrefix(home + "/") ? "~" + path.dropFirst(home.count) : path
  }

  /// Returns the object table of an archive: null, the URL, its text, its class. The URL is
  /// absolute, so it has no base.
  private static func objects(of url: URL) -> [Value] {
    let url = url.absoluteURL
    return [
      "$null", ["$class": .uid(3), "NS.base": .uid(0), "NS.relative": .uid(2)],
      .string(url.absoluteString), ["$classname": "NSURL", "$classes": ["NSURL", "NSObject"]],
    ]
  }

  /// Returns the URL of an archive; nil for other bytes.
  static func url(_ data: [UInt8]) -> URL? {
    guard case .dictionary(let archive) = (try? Document.read(data))?.value,
      archive["$archiver"] == "NSKeyedArchiver", case .array(let objects) = archive["$objects"],
      case .dictionary(let top) = archive["$top"]
    else { return nil }
    return (top["root"] ?? top.values.first).flatMap { url($0, objects, depth: 0) }
  }

  /// The most URLs of an archive that are followed from base to base.
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
