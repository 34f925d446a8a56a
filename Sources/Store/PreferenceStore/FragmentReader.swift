import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Reads the property lists that override the list of a machine-wide place: its fragments, which
/// are the files `*.plist` of the directory `<domain>.d` beside the list, in byte order; and for
/// the vendors' place the lists of packages, each followed by its fragments. A later one overrides
/// an earlier one. It also reads the lists and fragments of groups, which a user's own list overrides.
///
/// None of these files is ever written. A file that cannot be read, or is not a dictionary, makes
/// its domain unreadable in the place, as a damaged list does. Hidden files do not count.
///
/// Threads: any; it has no state but what is known of users. A call reads files, and may wait for a
/// disk.
struct FragmentReader: Sendable {
  private let layout: StoreLayout
  private let directories: ManagedDirectories
  /// Which groups the user is in.
  let groups: ManagedGroups
  private static let suffix = ".plist"

  init(_ layout: StoreLayout) {
    self.layout = layout
    directories = ManagedDirectories(layout)
    groups = ManagedGroups(layout)
  }

  /// How the name service is asked which names are users'.
  typealias Asking = ManagedDirectories.Asking

  /// A file, or a directory that could not be listed, and the domain that it is about.
  private struct Source {
    let path: String
    let domain: DomainName
    var failure: SystemError?
  }

  /// Asks the name service which of the managed directories are users', and which groups the user is
  /// in, before anything is read, and waits 1 s at most, for the disk too. The body is called, by
  /// another thread, with a place that an answer concerns.
  func learnUsers(_ learnt: @escaping @Sendable (Place) -> Void) {
    let hasAsked = Monitor(false)
    let end = Instant.now.advanced(milliseconds: 1000)
    do throws(SystemError) {
      try WorkerThread(name: "prefs-name") { [self] in
        _ = groups.directories { learnt(.ownManaged) }
        _ = fragments(in: layout.directory(.managed), .managed, .later { learnt(.managed) })
        directories.awaitAnswer()
        groups.awaitAnswer()
        hasAsked.change { $0 = true }
      }.detach()
    } catch { return }
    _ = hasAsked.wait(until: end) { $0 ? true : nil }
  }

  /// What identifies the state of the place's fragments on the disk: an equal result means that
  /// nothing has changed. Cost: a listing of each directory, and a stat(2) for each file.
  /// - Parameter isGroup: whether the place is a group's, whose lists are added too.
  func state(of place: Place, isGroup: Bool = false, _ asking: Asking) -> [String] {
    sources(of: place, isGroup, asking).map { PlaceAdditions.fileState($0.path) }
  }

  /// Adds what the place's fragments set to what its profiles set.
  /// - Parameter isGroup: as in `state`.
  func add(
    _ place: Place, to additions: inout PlaceAdditions, isGroup: Bool = false, _ asking: Asking
  ) {
    for source in sources(of: place, isGroup, asking) {
      do throws(EngineError) {
        guard let list = try read(source) else { continue }
        let values = list.values.dictionary
        additions.fragments.append(
          PlaceAdditions.Fragment(file: source.path, domain: source.domain, values: values))
        let metadata = Metadata(
          text: nil, modified: list.identity.modified,
          setter: isGroup ? .group(source.path) : .file(source.path))
        for (key, value) in values {
          additions.values[source.domain, default: [:]][key] = StoredValue(value, metadata)
        }
      } catch {
        additions.unreadable[source.domain] = error
      }
    }
  }

  private func read(_ source: Source) throws(EngineError) -> ListFile.Contents? {
    if let failure = source.failure { throw Self.unreadable(source.domain, "\(failure)") }
    do throws(ListFile.ReadError) {
      return try ListFile(path: source.path).read()
    } catch {
      switch error {
      case .system(let error): throw Self.unreadable(source.domain, "\(error)")
      case .format(let sentence): throw Self.unreadable(source.domain, sentence)
      }
    }
  }

  private static func unreadable(_ domain: DomainName, _ sentence: String) -> EngineError {
    EngineError(
      .unreadable, domain: domain,
      "a list that applies to the domain cannot be read; repair or remove it: \(sentence)")
  }

  /// The files of a place, in the order in which they apply.
  private func sources(of place: Place, _ isGroup: Bool, _ asking: Asking) -> [Source] {
    guard place == .vendor || isGroup else {
      return layout.hasLists(place) ? fragments(in: layout.directory(place), place, asking) : []
    }
    // The first directory of the path counts, so it applies last.
    let directories = isGroup ? [layout.directory(place)] : layout.vendorDirectories.reversed()
    return directories.flatMap { lists(in: $0, place) + fragments(in: $0, place, asking) }
  }

  private func lists(in directory: String, _ place: Place) -> [Source] {
    Self.names(in: directory).compactMap { name in
      layout.domain(ofFile: name, in: place).map {
        Source(path: "\(directory)/\(name)", domain: $0)
      }
    }
  }

  private func fragments(in directory: String, _ place: Place, _ asking: Asking) -> [Source] {
    let names = Self.names(in: directory).filter {
      layout.domain(ofFragments: $0, in: place) != nil && Files.isDirectory("\(directory)/\($0)")
    }
    // Only there, users have directories beside those of fragments.
    let kinds = place == .managed ? directories.kinds(of: names, asking: asking) : [:]
    return names.flatMap { name -> [Source] in
      guard kinds[name, default: .fragments] == .fragments,
        let domain = layout.domain(ofFragments: name, in: place)
      else { return [] }
      let path = "\(directory)/\(name)"
      do throws(SystemError) {
        let files = try Files.names(in: path) ?? []
        return files.filter { $0.hasSuffix(Self.suffix) && !$0.hasPrefix(".") }
          .sorted { Key($0) < Key($1) }
          .map { Source(path: "\(path)/\($0)", domain: domain) }
      } catch {
        return [Source(path: path, domain: domain, failure: error)]
      }
    }
  }

  /// The names of a directory, sorted. None where it cannot be listed: its lists cannot be read
  /// either, and say so.
  private static func names(in directory: String) -> [String] {
    ((try? Files.names(in: directory, withDirectories: true)) ?? []).sorted { Key($0) < Key($1) }
  }
}
