import Glibc

// Groups of users, without getgrouplist(3): see `Account`.

extension Account {
  /// Whether the user is in each of the groups, by their names; nil where the name service does not
  /// answer. A group that it does not know is left out: it says the same while it does not reach its
  /// servers. Cost: small files are read; where groups may be in another source than group(5), two
  /// programs run, 5 s at most each.
  public func memberships(among names: Set<String>) -> [String: Bool]? {
    if Self.areGroupsInFileAlone(Self.sources) {
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
    let asked = names.filter(canBeAsked).sorted()
    if asked.isEmpty { return [] }
    return getent("group", asked).map { groups(in: $0).filter { names.contains($0.name) } }
  }

  /// The numbers of all groups that the user is in; nil where the name service does not answer.
  var servedNumbers: Set<gid_t>? {
    guard let found = Self.getent("initgroups", [name]) else { return nil }
    let line = String(decoding: found, as: UTF8.self).split(separator: "\n").first ?? ""
    // The name stands before the groups.
    let others = line.dropFirst(name.count).split(separator: " ").compactMap { gid_t($0) }
    return Set(others + [group])
  }

  /// Whether lines of nsswitch.conf(5) name group(5) as the only source of groups.
  static func areGroupsInFileAlone(_ bytes: [UInt8]) -> Bool {
    sources(of: "group", in: bytes) == ["files"]
      && (sources(of: "initgroups", in: bytes) ?? ["files"]) == ["files"]
  }

  /// The groups in lines of group(5). A line whose number is none is left out.
  static func groups(in bytes: [UInt8]) -> [Group] {
    lines(bytes, fields: 4).compactMap { line in
      let fields = line.map { String(decoding: $0, as: UTF8.self) }
      guard let number = gid_t(fields[2]) else { return nil }
      return Group(
        name: fields[0], number: number, members: fields[3].split(separator: ",").map(String.init))
    }
  }
}
