import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Tables of nodes") struct NodeHashTableTests {
  private let changes = ChangedNodes()

  private func node(_ number: UInt64, _ path: KeyPath) -> Node {
    let id = NodeID(rawValue: number)
    return Node(
      id: id, inode: number, .key(KeyFile(id: id, path, changes: changes)), changes: changes)
  }

  @Test("it has what a dictionary has, after any insertions and removals")
  func likeDictionary() {
    var nodes = KeyNodes()
    var dictionary: [KeyPath: Node] = [:]
    for step in 0..<20_000 as Range<UInt64> {
      let path = KeyPath(
        domain: DomainName("d\(Int.random(in: 0..<3))"), key: Key("K\(Int.random(in: 0..<300))"))
      // The table grows for a while, then shrinks, and so on.
      if Int.random(in: 0..<100) < (step / 2000 % 2 == 0 ? 70 : 30) {
        let new = node(step, path)
        nodes[path] = new
        dictionary[path] = new
      } else {
        nodes[path] = nil
        dictionary[path] = nil
      }
      #expect(nodes[path] === dictionary[path] && nodes.count == dictionary.count)
    }
    #expect(dictionary.allSatisfy { nodes[$0.key] === $0.value })
    #expect(Set(nodes.all.map(\.id)) == Set(dictionary.values.map(\.id)))
  }

  @Test("numbers in a row, and those of other trees, are found and listed")
  func numbers() {
    var nodes = NumberedNodes()
    let numbers =
      [1...2000, (1 << 40)...(1 << 40) + 2000].joined() as FlattenSequence<[ClosedRange<UInt64>]>
    for number in numbers {
      nodes[NodeID(rawValue: number)] = node(number, KeyPath(domain: "d", key: "K"))
    }
    for number in numbers where number % 3 == 0 { nodes[NodeID(rawValue: number)] = nil }
    let left = Set(numbers.filter { $0 % 3 != 0 })
    #expect(Set(nodes.ids.map(\.rawValue)) == left && nodes.count == left.count)
    #expect(left.allSatisfy { nodes[NodeID(rawValue: $0)]?.id.rawValue == $0 })
    #expect(nodes[NodeID(rawValue: 3)] == nil)
  }
}
