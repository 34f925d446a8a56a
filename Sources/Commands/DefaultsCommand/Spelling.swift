/// How near words are to each other.
enum Spelling {
  /// How many characters must be put in, left out or replaced, or neighbours swapped, to make one
  /// word of the other. Cost: the product of their lengths; of long words, only the first 64
  /// characters count.
  static func distance(_ word: String, _ other: String) -> Int {
    let (one, two) = (Array(word.prefix(64)), Array(other.prefix(64)))
    var beforeLast: [Int] = []
    var last = Array(0...two.count)
    for row in one.indices {
      var next = [row + 1]
      for column in two.indices {
        let cost = one[row] == two[column] ? 0 : 1
        var best = min(last[column + 1] + 1, next[column] + 1, last[column] + cost)
        if row > 0, column > 0, one[row] == two[column - 1], one[row - 1] == two[column] {
          best = min(best, beforeLast[column - 1] + 1)
        }
        next.append(best)
      }
      (beforeLast, last) = (last, next)
    }
    return last[two.count]
  }
}
