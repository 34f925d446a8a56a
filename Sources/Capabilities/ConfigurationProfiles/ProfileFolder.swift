import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Reads the profiles of the managed places of one machine: the files `*.mobileconfig` in the
/// directories of the managed lists. A profile is never written.
///
/// Trust comes from who may write to the directory. Where the directory `profile-signers` beside
/// `managed` has certificates, a profile counts only if it is signed by one of them, or by a
/// certificate that one of them issued.
///
/// Threads: any; it has no state. Each call reads files, and may wait for a disk.
public struct ProfileFolder: ProfileReading {
  private let layout: StoreLayout
  /// How many bytes a profile may have.
  private static let largest = 16 << 20
  private static let suffix = ".mobileconfig"

  /// Creates the reader of the profiles of a store's machine.
  public init(_ layout: StoreLayout) { self.layout = layout }

  /// One file, and what was found in it.
  private struct Installed {
    /// The path; empty for bytes that are only checked.
    var file: String
    /// nil if it was refused.
    var profile: Profile?
    /// The name of the signer; nil if it is not signed.
    var signer: String?
    /// Why it was refused; nil if it was not.
    var refusal: String?
    /// When it ends: the removal date, or the duration after the file's change time (`st_ctime`).
    var until: AbsoluteTime?
    /// When the file last changed, which is the modification time of its values.
    var modified = Timestamp(nanoseconds: 0)
  }

  // MARK: - ProfileReading

  public func state(of place: Place) -> [String] {
    guard layout.hasLists(place) else { return [] }
    // The directory too: none, and a link that leads nowhere, are not the same.
    let directory = layout.signersDirectory
    let isThere = (try? Files.linkStatus(directory)) != nil
    return (files(place) + signerFiles + [directory]).map(PlaceAdditions.fileState)
      + ["\(isThere) \(Files.linkTarget(directory) ?? "")"]
  }

  public func settings(of place: Place, at now: Timestamp) -> PlaceAdditions {
    guard layout.hasLists(place) else { return PlaceAdditions() }
    let files = files(place)
    if files.isEmpty { return PlaceAdditions() }
    let signers = signers
    let installed = files.map { read($0, signers) }
    return Self.settings(installed.sorted(by: Self.isBefore), place, AbsoluteTime(now))
  }

  public func check(_ bytes: [UInt8]) -> ValueDictionary {
    let signers = signers
    var file = Installed(file: "")
    Self.open(bytes, signers, &file)
    return Self.report(file, nil, isOver: false)
  }

  // MARK: - Files

  /// The paths of the profiles of a place, sorted. Hidden files do not count.
  private func files(_ place: Place) -> [String] {
    let directory = layout.directory(place)
    let names = try? Files.names(in: directory)
    return (names ?? []).filter { $0.hasSuffix(Self.suffix) && !$0.hasPrefix(".") }.sorted()
      .map { "\(directory)/\($0)" }
  }

  /// The paths of the certificates of signers. Hidden files do not count.
  private var signerFiles: [String] {
    let directory = layout.signersDirectory
    let names = try? Files.names(in: directory)
    return (names ?? []).filter { !$0.hasPrefix(".") }.sorted().map { "\(directory)/\($0)" }
  }

  /// The certificates of the signers that count, as bytes; nil if there are no certificates, and
  /// every profile counts. A file that cannot be read is left out, so that what it should have
  /// allowed does not count. If the directory cannot be listed, or is a file or a link that leads
  /// nowhere, no profile counts.
  private var signers: [[UInt8]]? {
    let directory = layout.signersDirectory
    do throws(SystemError) {
      guard try Files.linkStatus(directory) != nil else { return nil }
    } catch {
      return []
    }
    let files = signerFiles
    // A directory that cannot be listed may have certificates.
    if files.isEmpty, (try? Files.names(in: directory)) != nil { return nil }
    return files.compactMap { try? Files.regularContents($0, limit: 1 << 20) }
  }

  private func read(_ path: String, _ signers: [[UInt8]]?) -> Installed {
    var file = Installed(file: path)
    do throws(SystemError) {
      let status = try Files.status(path)
      if let status, status.st_mode & S_IFMT != S_IFREG {
        file.refusal = "it is not a regular file"
        return file
      }
      guard let status, let bytes = try Files.regularContents(path, limit: Self.largest) else {
        file.refusal = "there is no such file any more"
        return file
      }
      file.modified = Timestamp(status.st_mtim)
      Self.open(bytes, signers, &file)
      if let profile = file.profile {
        let end = profile.duration.map { AbsoluteTime(Timestamp(status.st_ctim)).seconds + $0 }
        file.until = [profile.removal?.seconds, end].compactMap { $0 }.min()
          .map { AbsoluteTime(seconds: $0) }
      }
    } catch {
      file.refusal = "\(error)"
    }
    return file
  }

  /// Verifies and reads the bytes of a profile, and notes the result in `file`.
  private static func open(_ bytes: [UInt8], _ signers: [[UInt8]]?, _ file: inout Installed) {
    do {
      var content = bytes
      if SignedMessage.isSigned(bytes) {
        let opened = try SignedMessage.open(bytes, signers: signers)
        (content, file.signer) = (opened.content, opened.signer)
      } else if signers != nil {
        throw ProfileRefusal("it is not signed, as profile-signers requires")
      }
      file.profile = try Profile(try Document.read(content).value)
    } catch {
      file.refusal = "\(error)"
    }
  }

  /// The order in which profiles are applied: the later one wins.
  private static func isBefore(_ one: Installed, _ other: Installed) -> Bool {
    let (first, second) = (one.profile?.identifier ?? "", other.profile?.identifier ?? "")
    if Key(first) != Key(second) { return Key(first) < Key(second) }
    return Key(one.file) < Key(other.file)
  }

  // MARK: - Settings

  /// Puts the settings of the files together, which are in the order in which they apply. Profiles
  /// that have ended have a report only.
  private static func settings(
    _ files: [Installed], _ place: Place, _ now: AbsoluteTime
  ) -> PlaceAdditions {
    var settings = PlaceAdditions()
    var ends: [AbsoluteTime] = []
    var past: [AbsoluteTime] = []
    var joined: [DomainName: [Key: [Value]]] = [:]
    for file in files {
      let isOver = file.until.map { $0.seconds <= now.seconds } ?? false
      settings.reports.append(report(file, place, isOver: isOver))
      if isOver, let until = file.until { past.append(until) }
      guard let profile = file.profile, !isOver else { continue }
      if let until = file.until { ends.append(until) }
      for setting in profile.settings { settings.add(setting, profile, file.modified) }
      for union in profile.unions {
        settings.join(union, profile, file.modified, &joined[union.domain, default: [:]])
      }
    }
    settings.until = ends.map(\.seconds).min().map { Timestamp(AbsoluteTime(seconds: $0)) }
    settings.lastEnd = past.map(\.seconds).max().map { Timestamp(AbsoluteTime(seconds: $0)) }
    return settings
  }

  // MARK: - Reports

  /// What `prefs profiles` and `status.json` say of a profile; see `PlaceAdditions.reports`.
  private static func report(
    _ file: Installed, _ place: Place?, isOver: Bool
  ) -> ValueDictionary {
    var report: ValueDictionary = [:]
    if !file.file.isEmpty { report["file"] = .string(file.file) }
    if let place { report["place"] = .string(place.rawValue) }
    if let signer = file.signer { report["signer"] = .string(signer) }
    if let refusal = file.refusal { report["refused"] = .string(refusal) }
    guard let profile = file.profile else { return report }
    report["identifier"] = .string(profile.identifier)
    report["name"] = .string(profile.name)
    if let until = file.until { report["until"] = .date(until.inWholeSeconds) }
    if isOver { report["over"] = true }
    if !profile.leftAlone.isEmpty {
      report["left alone"] = .array(profile.leftAlone.map { .string($0) })
    }
    report.set(
      "forced", profile.settings.filter { $0.kind == .forced }.map { ($0.domain, $0.key, $0.value) }
    )
    report.set("joined", profile.unions.map { ($0.domain, $0.output, true) })
    report.set(
      "once", profile.settings.filter { $0.kind != .forced }.map { ($0.domain, $0.key, $0.value) })
    return report
  }
}

extension ValueDictionary {
  /// Sets a row of a report: a dictionary of keys for each domain. An empty row is left out.
  fileprivate mutating func set(_ row: Key, _ values: [(DomainName, Key, Value)]) {
    var domains: [Key: ValueDictionary] = [:]
    for (domain, key, value) in values { domains[domain.key, default: [:]][key] = value }
    if domains.isEmpty { return }
    self[row] = .dictionary(ValueDictionary(domains.map { ($0, Value.dictionary($1)) }))
  }
}
