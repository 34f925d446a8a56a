import Glibc
import PreferenceModel
import SystemCalls

/// The state directories of one store: the usual one, and `<usual>.2`, `<usual>.3` and so on beside
/// it, each of a machine that has found the others in use (`StateNote`).
enum StateDirectories {
  /// The numbers of those beside the usual one, ascending.
  static func numbers(beside usual: String) -> [Int] {
    let parent = Files.parent(of: usual)
    let prefix = (usual.split(separator: "/").last.map(String.init) ?? "") + "."
    let names = (try? Files.names(in: parent, withDirectories: true)) ?? []
    let numbers = names.compactMap { name -> Int? in
      guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)) else {
        return nil
      }
      return number > 1 && name == "\(prefix)\(number)" ? number : nil
    }
    return numbers.sorted()
  }

  /// The usual directory of the store that has this one.
  static func usual(_ directory: String) -> String {
    guard let dot = directory.lastIndex(of: "."),
      let number = Int(directory[directory.index(after: dot)...]), number > 1
    else { return directory }
    return String(directory[..<dot])
  }
}

extension StoreLayout {
  /// The state directories of other machines that have used the same home. Cost: a listing, and an
  /// lstat(2) for each of them.
  package var otherStateDirectories: [String] {
    let usual = StateDirectories.usual(stateDirectory)
    let all = [usual] + StateDirectories.numbers(beside: usual).map { "\(usual).\($0)" }
    return all.filter { path in
      guard path != stateDirectory, let status = try? Files.linkStatus(path) else { return false }
      return status.st_mode & S_IFMT == S_IFDIR
    }
  }
}
