import Glibc

// Groups of users, without getgrouplist(3): see `Account`.

extension Account {
  /// Whether the user is in each of the groups, by their names; nil where the name service does not
  /// answer. A group that it does not know is left out: it says the same while it does not reach its
  /// servers. Cost: small files are read; where groups may be in another source than group(5), two
  /// programs run, 5 s at most each.
  public func memberships(among names: Set<String>) -> [String: Bool]? {
    let sources = (try? Files.contents("/etc/nsswitch.conf", limit: 1 << 20)) ?? []
    if Self.areGroupsInFileAlone(sources) {
      let file = (try? Files.contents("/etc/group", limit: 1 << 24)) ?? []
      let own = Self.groups(in: file).filter { $0.number == group || $0.members.contains(name) }
      let ownNames = Set(own.map(\.name))
      return Dictionary(uniqueKeysWithValues: names.map { ($0, ownNames.contains($0)) })
    }
    guard let served = Self.servedGroups(among: names), let numbers = servedNumbers else {
      return nil
    }
    return Dictionary(served.map { ($0.name, numbers.contains($0.number)) }) { $0 || $1 }
  }

  /// Those of the names that groups have which the system's name service knows; nil where it does
  /// not answer. Cost: a program runs, 5 s at most.
  public static func knownGroups(among names: Set<String>) -> Set<String>? {
    servedGroups(among: names).map { Set($0.map(\.name)) }
  }

  /// A line of group(5).
  struct Group: Equatable {
    let name: String
    let number: gid_t
    let members: [String]
  }

  private static func servedGroups(among names: Set<String>) -> [Group]? {
    // getent would read a number as one, and an option as one.
    let asked = names.filter { gid_t($0) == nil && !$0.hasPrefix("-") && !$0.isEmpty }.sorted()
    if asked.isEmpty { return [] }
    let found = try? Child.output("/usr/bin/getent", ["group"] + asked, milliseconds: 5000)
    return found.map { groups(in: $0).filter { names.contains($0.name) } }
  }

  /// The numbers of all groups that the user is in; nil where the name service does not answer.
  private var servedNumbers: Set<gid_t>? {
    let found = try? Child.output("/usr/bin/getent", ["initgroups", name], milliseconds: 5000)
    guard let found else { return nil }
    let line = String(decoding: found, as: UTF8.self).split(separator: "\n").first ?? ""
    // The name stands before the groups.
    let others = line.dropFirst(name.count).split(separator: " ").compactMap { gid_t($0) }
    return Set(others + [group])
  }

  /// Whether lines of nsswitch.conf(5) name group(5) as the only source of groups.
  static func areGroupsInFileAlone(_ bytes: [UInt8]) -> Bool {
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    let databases = ["group:", "initgroups:"].map { name in
      lines.first { $0.hasPrefix(name) }.map { line in
        line.dropFirst(name.count).prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
      }
    }
    return databases[0] == ["files"] && (databases[1] ?? ["files"]) == ["files"]
  }

  /// The groups in lines of group(5). A line whose number is none is left out.
  static func groups(in bytes: [UInt8]) -> [Group] {
    bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
      guard fields.count >= 4, let number = gid_t(fields[2]) else { return nil }
      return Group(
        name: fields[0], number: number, members: fields[3].split(separator: ",").map(String.init))
    }
  }
}
