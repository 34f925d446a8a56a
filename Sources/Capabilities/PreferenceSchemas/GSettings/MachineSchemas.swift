import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The schemas of GSettings that the machine's programs have installed (`*.gschema.xml`), as
/// manifests that inform; and preference interfaces beside other schemas (`SettingsBundles`). They are
/// read where they lie; nothing is copied.
///
/// Promises:
/// - The domain of a schema is its path with dots (`GSettingsPath`), where programs have their keys.
///   Schemas of one path are one domain. A relocatable schema has no path, and no domain. A schema
///   whose id is no domain's name is found by it, too.
/// - The first look-up, and the first one after an entry of a directory came or went, as when
///   `glib-compile-schemas` has run, finds out which file has which schema. Files that have not
///   changed since are not read for it. Only the files of the domain that is asked for are parsed,
///   each time: the caller keeps the manifest.
/// - Of several schemas with one id, the first directory's counts.
/// - A file that is malformed, is no regular file or has more than 4 MiB is skipped, with one line in
///   the log; so are more than 4,096 files of a directory, and more than 64 directories.
///
/// Threads: any that may wait for a disk. One lock, for a look: files are read without it, so that
/// two threads may read the same ones.
package final class MachineSchemas: Sendable {
  /// Where the schemas are.
  private struct Index: Sendable {
    var directories: [GSettingsDirectory] = []
    /// The schemas of each domain: directory and id.
    var domains: [DomainName: [(directory: Int, id: String)]] = [:]
    /// The domains of schemas whose ids are other names.
    var domainsOfIDs: [DomainName: DomainName] = [:]

    init(_ directories: [GSettingsDirectory]) {
      self.directories = directories
      var seen: Set<String> = []
      for (number, directory) in directories.enumerated() {
        for schema in directory.schemas where seen.insert(schema.id).inserted {
          guard let name = schema.path.flatMap({ GSettingsPath.domain(of: $0) }) else { continue }
          domains[DomainName(name), default: []].append((number, schema.id))
          domainsOfIDs[DomainName(schema.id)] = DomainName(name)
        }
      }
    }

    /// The domain with that name, or of the schema with that id; nil if there is none.
    func domain(_ name: DomainName) -> DomainName? {
      domains[name] == nil ? domainsOfIDs[name] : name
    }
  }

  private struct State {
    var index: Index?
    /// The files that count as none, with the reasons that were reported.
    var reported: [String: String] = [:]
  }

  private let directories: [String]
  /// The preference interfaces, which count before schemas of GSettings.
  private let bundles: SettingsBundles
  private let log: @Sendable (LogLine) -> Void
  private let state = Mutex(State())

  /// The file that `glib-compile-schemas` makes of all files of a directory, last.
  package static let compiled = "gschemas.compiled"

  /// - Parameters:
  ///   - directories: the directories of schemas, the one that counts first.
  ///   - bundles: those of preference interfaces (`SettingsBundles`).
  package init(
    _ directories: [String], bundles: [String] = [], log: @escaping @Sendable (LogLine) -> Void
  ) {
    (self.directories, self.log) = (Array(directories.prefix(64)), log)
    self.bundles = SettingsBundles(bundles)
  }

  /// The domains that have a schema.
  package var domains: Set<DomainName> { bundles.domains.union(index.domains.keys) }

  /// Whether `manifest` may find something. Cost: a stat(2) or two for each directory, and a
  /// hash look-up.
  package func has(_ name: DomainName) -> Bool {
    index.domain(name) != nil || bundles.has(name)
  }

  /// When the files of the domain's schemas last changed; nil if it has none.
  package func modified(of name: DomainName) -> Timestamp? {
    if let modified = bundles.modified(of: name) { return modified }
    let index = index
    return index.domain(name).flatMap { domain in
      index.domains[domain]?.compactMap { index.directories[$0.directory].modified($0.id) }.max()
    }
  }

  /// The manifest of a domain, or of the schema with that id; nil if there is none, or its file
  /// counts as none. A schema that only has children has a manifest without keys. `prefs_path` in
  /// it is the path of the keys.
  package func manifest(of name: DomainName) -> ValueDictionary? {
    if let manifest = bundles.manifest(of: name) { return manifest }
    let index = index
    guard let domain = index.domain(name), let found = index.domains[domain],
      let path = GSettingsPath.path(of: domain.string)
    else { return nil }
    let known = found.compactMap { index.directories[$0.directory].entries(of: $0.id, report) }
    if known.isEmpty { return nil }
    var subkeys: [Value] = []
    var names: Set<String> = []
    for entries in known {
      for entry in entries
      where entry["pfm_name"]?.string.map({ names.insert($0).inserted }) == true {
        subkeys.append(.dictionary(entry))
      }
    }
    let title = found.first.map(\.id).flatMap { $0 == domain.string ? nil : $0 } ?? ""
    return [
      "pfm_domain": .string(domain.string), "pfm_title": .string(title), "pfm_format_version": 1,
      "pfm_subkeys": .array(subkeys), "prefs_path": .string("/\(path)/"),
    ]
  }

  /// Where the schemas are now.
  private var index: Index {
    let known = state.withLock { $0.index }
    let old = known?.directories ?? []
    let isSame = zip(directories, old).allSatisfy { path, directory in
      directory.isSettled && GSettingsDirectory.Stamp(path) == directory.stamp
    }
    if let known, isSame { return known }
    let new = directories.enumerated().map { number, path in
      GSettingsDirectory(path, since: number < old.count ? old[number] : nil, report)
    }
    let index = Index(new)
    state.withLock { $0.index = index }
    return index
  }

  private func report(_ path: String, _ reason: String) {
    let isNew = state.withLock { state in
      if state.reported.count >= 1000 { state.reported = [:] }
      return state.reported.updateValue(reason, forKey: path) != reason
    }
    if isNew { log("\(path): this schema is ignored: \(reason)") }
  }
}
