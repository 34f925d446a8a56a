import Glibc
import StoreAccess
import SystemCalls

/// Writes the file of a rule.
///
/// Promises: the file is replaced in one step, durably, and only if its bytes differ. One that
/// prefsfs has not written, or that somebody has changed since, is left alone.
///
/// Threads: any. Calls wait for disks.
public struct EffectWriter: Sendable {
  private let layout: StoreLayout
  private let home: String

  /// The largest file that is compared, in bytes.
  private static let largest = 1 << 26

  /// Creates the writer for the rules of a store.
  public init(_ layout: StoreLayout) { self.init(layout, home: Surroundings.home) }

  package init(_ layout: StoreLayout, home: String) { (self.layout, self.home) = (layout, home) }

  /// A file that a rule may write.
  public struct Target: Sendable {
    /// The path, of the file itself where a link leads to it.
    public let path: String
    /// What it has; nil if there is no file.
    public let present: [UInt8]?
    let status: stat?
  }

  /// The absolute path of a rule's file.
  public func path(of rule: EffectRule) -> String? {
    rule.path.map { $0.hasPrefix("~/") ? home + $0.dropFirst() : $0 }
  }

  /// Finds the file. Throws where it must not be written.
  public func target(_ path: String) throws(EffectProblem) -> Target {
    do {
      let target = try resolved(path)
      let directory = Files.parent(of: target)
      guard Files.isDirectory(directory) else {
        throw problem(path, "there is no directory \(directory)")
      }
      let directories = Files.links(on: path).map(Files.parent) + [directory]
      let objection =
        directories.lazy.compactMap(EffectTrust.objection).first ?? objection(to: target)
      if let objection { throw problem(path, objection) }
      guard let status = try Files.status(target) else {
        return Target(path: target, present: nil, status: nil)
      }
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw problem(path, "it is not a regular file")
      }
      guard status.st_uid == geteuid() || geteuid() == 0 else {
        throw problem(path, "it belongs to a different user")
      }
      let bytes = try Files.regularContents(target, limit: Self.largest)
      return Target(path: target, present: bytes, status: status)
    } catch let error as EffectProblem {
      throw error
    } catch {
      throw problem(path, "\(error)")
    }
  }

  private func problem(_ path: String, _ reason: String) -> EffectProblem {
    EffectProblem("\(path) is not written: \(reason)")
  }

  /// The path with links followed; a final one, which must be the user's, may lead to a file that is
  /// not there yet.
  private func resolved(_ path: String) throws -> String {
    guard let link = Files.linkTarget(path) else { return Files.canonicalPath(path) }
    guard try Files.linkStatus(path)?.st_uid == geteuid() else {
      throw problem(path, "the link belongs to a different user")
    }
    let end = Files.canonicalPath(
      link.hasPrefix("/") ? link : Files.parent(of: path) + "/" + link)
    if Files.linkTarget(end) != nil { throw problem(path, "its links lead nowhere") }
    return end
  }

  /// Why a rule must not write there: what prefsfs itself keeps or shows would change.
  private func objection(to path: String) -> String? {
    if MountInformation.mount(above: path)?.kind == "fuse.prefsfs" {
      return "it lies in a mount of preferences"
    }
    let state = Files.canonicalPath(Files.parent(of: layout.stateDirectory))
    let own = [state, layout.systemDirectory, layout.directory(.host)].map(Files.canonicalPath)
    if own.contains(where: { path.hasPrefix($0 + "/") }) {
      return "prefsfs keeps preferences or its state there"
    }
    let isList = layout.listDirectories.contains { place, directory in
      Files.canonicalPath(directory) == Files.parent(of: path)
    }
    return isList && path.hasSuffix(".plist") ? "it would be a list of preferences" : nil
  }

  /// Throws unless the file is missing, has these bytes, or what prefsfs has written.
  public func check(
    _ target: Target, _ bytes: [UInt8], rule: String, known: [Digest], key: Digest
  ) throws(EffectProblem) {
    guard let present = target.present, present != bytes,
      !known.contains(Digest(of: present, key: key))
    else { return }
    throw problem(
      target.path,
      "prefsfs has not written it, or it was edited since; "
        + "prefs effects run --over \(rule) replaces it")
  }

  /// Replaces the file, unless it has these bytes.
  public func write(_ bytes: [UInt8], to target: Target) throws(EffectProblem) {
    if target.present == bytes { return }
    let directory = Files.parent(of: target.path)
    let name = target.path.split(separator: "/").last ?? ""
    // One name for each file: what a crash has left is replaced by the next try.
    let temporary = "\(directory)/.\(name.prefix(200)).prefsfs-new"
    do throws(SystemError) {
      try Files.replaceDurably(target.path, with: bytes, by: temporary) {
        new throws(SystemError) in
        guard let old = target.status else { return }
        if geteuid() == 0 { try new.changeOwner(old.st_uid, old.st_gid) }
        try new.changeMode(old.st_mode & 0o777)
      }
    } catch {
      throw problem(target.path, "\(error)")
    }
  }
}
