import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// The preference interfaces that are installed beside schemas: `<domain>.bundle`, a program's
/// `Settings.bundle` under the name of its domain.
///
/// Each call reads files, up to 4 MiB each, and may wait for a disk; nothing is kept. A file that
/// cannot be read, or is no pane, counts as none.
///
/// Threads: any; it has no state.
package struct SettingsBundles: Sendable {
  private let directories: [String]
  private let languages: [String]
  /// What the name of a bundle ends with.
  package static let suffix = ".bundle"
  private static let (root, largest) = ("Root", 4 << 20)

  /// - Parameters:
  ///   - directories: the directories of schemas, the one that counts first.
  ///   - languages: the languages of titles, the one that counts first; nil means those of the
  ///     environment, then English.
  package init(_ directories: [String], languages: [String]? = nil) {
    self.directories = directories
    self.languages = languages ?? Self.languages
  }

  /// The domains that have a bundle. Cost: a listing of each directory.
  package var domains: Set<DomainName> {
    Set(
      directories.flatMap { directory in
        ((try? Files.names(in: directory, withDirectories: true)) ?? []).filter {
          $0.hasSuffix(Self.suffix) && SettingsPane.isName($0)
        }
        .map { DomainName(String($0.dropLast(Self.suffix.utf8.count))) }.filter { has($0) }
      })
  }

  /// Whether the domain has a bundle. Cost: a stat(2) for each directory.
  package func has(_ domain: DomainName) -> Bool { bundle(of: domain) != nil }

  /// When the first pane of the domain's bundle last changed; nil if it has none.
  package func modified(of domain: DomainName) -> Timestamp? {
    guard let bundle = bundle(of: domain),
      let status = try? Files.status("\(bundle)/\(Self.root).plist")
    else { return nil }
    return Timestamp(status.st_mtim)
  }

  /// The manifest of the domain's bundle; nil if there is none, or it counts as none.
  package func manifest(of domain: DomainName) -> ValueDictionary? {
    guard let bundle = bundle(of: domain) else { return nil }
    let panes = SettingsPane(
      pane: { Self.list("\(bundle)/\($0).plist") },
      texts: { table in
        guard SettingsPane.isName(table) else { return [:] }
        return languages.lazy.compactMap {
          Self.list("\(bundle)/\($0).lproj/\(table).strings")
        }.first ?? [:]
      })
    guard var manifest = panes.manifest(of: Self.root) else { return nil }
    manifest["pfm_domain"] = .string(domain.string)
    return manifest
  }

  /// The directory of the domain's bundle; nil if there is none.
  private func bundle(of domain: DomainName) -> String? {
    guard SettingsPane.isName(domain.string) else { return nil }
    return directories.lazy.map { "\($0)/\(domain)\(Self.suffix)" }.first {
      (try? Files.status("\($0)/\(Self.root).plist")) != nil
    }
  }

  private static func list(_ path: String) -> ValueDictionary? {
    let bytes = try? Files.regularContents(path, limit: largest)
    return bytes.flatMap { try? Document.read($0).value }.flatMap(\.dictionary)
  }

  /// The languages of texts, by the environment (setlocale(3)): `de_AT.UTF-8` is `de_AT`, `de-AT` and
  /// `de`.
  private static var languages: [String] {
    let set = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { Environment.variable($0) }
    let locale = (set.first { !$0.isEmpty } ?? "").prefix { $0 != "." && $0 != "@" }
    let language = locale.prefix { $0 != "_" }
    let own =
      locale.isEmpty || locale == "C" || locale == "POSIX" || locale.contains("/")
      ? [] : [String(locale), String(locale).replacing("_", with: "-"), String(language)]
    return own + ["en", "English", "Base"]
  }
}
