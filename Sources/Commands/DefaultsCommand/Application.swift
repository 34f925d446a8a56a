import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// An application bundle of Apple's or GNUstep's form.
struct Application {
  /// The domain of its preferences: the identifier of the bundle, else the name of its program.
  let domain: String

  /// Finds the bundle; throws if there is none.
  /// - Parameter name: the path of the bundle, or its name without `.app`.
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
      information["CFBundleIdentifier"]?.string ?? information["CFBundleExecutable"]?.string
      ?? information["NSExecutable"]?.string ?? program
  }

  /// The directories where applications are installed.
  private static var directories: [String] {
    let home = Surroundings.home
    return [
      home + "/Applications", "/Applications", home + "/GNUstep/Applications",
      "/usr/local/lib/GNUstep/Applications", "/usr/lib/GNUstep/Applications",
    ]
  }

  /// Returns the Info.plist of the bundle.
  private static func information(of path: String) -> ValueDictionary {
    let files = ["Contents/Info.plist", "Resources/Info-gnustep.plist"].map { "\(path)/\($0)" }
    for file in files {
      guard let bytes = try? Files.contents(file, limit: 1 << 24),
        let values = (try? Document.read(bytes))?.value.dictionary
      else { continue }
      return values
    }
    return [:]
  }
}
