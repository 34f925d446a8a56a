import CFUSE
import PreferenceModel
import PreferenceTree
import SystemCalls

extension Driver {
  /// Returns a part of a listing with attributes, as far as the tree gives them. A name that is gone,
  /// or whose value cannot be read or is not in memory, has none.
  func makeListing(_ part: ListingPart, since version: UInt64?) throws(TreeError) -> ListingBuffer {
    let (parent, tree, now) = (part.directory, forest[part.directory], Moment.now)
    let items = try tree.list(parent, after: part.cookie, since: version)
    let given = tree.attributesGiven(parent, after: part.cookie)
    let first = items.first?.cookie
    // Domains whose lists are at hand: those that the look-up of the last name needed.
    var atHand: [DomainName] = []
    var buffer = ListingBuffer(part)
    buffer.fill(items) { item in
      guard given.includes(isFirst: item.cookie == first) else { return nil }
      let name = Array(item.name.utf8)
      guard gate.isAtHand(parent, name, forest, &atHand),
        case .found(let entry)? = try? tree.lookup(parent, name, now: now)
      else { return nil }
      return ownership.parameters(entry)
    }
    return buffer
  }
}
