import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree

extension Driver {
  /// Returns a part of a listing with attributes, as far as the tree gives them.
  func makeListing(_ part: ListingPart, since version: UInt64?) throws(TreeError) -> ListingBuffer {
    let tree = forest[part.directory]
    let items = try tree.list(part.directory, after: part.cookie, since: version)
    let given = tree.attributesGiven(part.directory, after: part.cookie)
    let first = items.first?.cookie
    var buffer = ListingBuffer(part)
    buffer.fill(items) { buffer, item in
      // `.` and `..` have the cookies 1 and 2.
      item.cookie > 2 && given.includes(isFirst: item.cookie == first)
        ? buffer.addWithAttributes(item, self) : buffer.addWithoutAttributes(item)
    }
    return buffer
  }
}
