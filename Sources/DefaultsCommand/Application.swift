import Glibc
import PropertyList
import SystemCalls

/// The domain of an application bundle: its identifier, else the name of its program. GNUstep's bundles are
/// known as Apple's are.
struct Application {
  let domain: String

  /// - Parameter name: the bundle's path, or its name without `.app`.
  init(_ name: String) throws(Refusal) {
    let named = name.hasSuffix(".app") || name.contains("/") ? [name] : []
    let paths = named + Self.directories.map { "\($0)/\(name).app" }
    guard let path = paths.first(where: Files.isDirectory) else {
      throw Refusal("Couldn't find an application named \"\(name)\"; defaults unchanged")
    }
    let stem = path.split(separator: "/").last.map(String.init) ?? name
    let program = stem.hasSuffix(".app") ? String(stem.dropLast(4)) : stem
    let information = Self.information(of: path)
    domain =
      information["CFBundleIdentifier"] ?? information["CFBundleExecutable"]
      ?? information["NSExecutable"] ?? program
  }

  private static var directories: [String] {
    let home = getenv("HOME").map { String(cString: $0) } ?? ""
    return [
      home + "/Applications", "/Applications", home + "/GNUstep/Applications",
      "/usr/local/lib/GNUstep/Applications", "/usr/lib/GNUstep/Applications",
    ]
  }

  /// The strings of its Info.plist.
  private static func information(of path: String) -> [Key: String] {
    let files = ["Contents/Info.plist", "Resources/Info-gnustep.plist"].map { "\(path)/\($0)" }
    for file in files {
      guard let bytes = (try? Files.contents(file, limit: 1 << 24)) ?? nil,
        case .dictionary(let values) = (try? Document.read(bytes))?.value
      else { continue }
      let texts = values.compactMap { key, value -> (Key, String)? in
        guard case .string(let text) = value else { return nil }
        return (key, text)
      }
      return Dictionary(uniqueKeysWithValues: texts)
    }
    return [:]
  }
}
