import PreferenceModel

/// Numbers for domains, so that a node names its domain in 4 bytes. A number is free again when
/// nothing uses it any longer.
struct DomainNumbers {
  private struct Entry {
    var domain: DomainName
    var uses = 0
  }

  private var entries: [Entry] = []
  private var numbers: [DomainName: UInt32] = [:]
  private var free: [UInt32] = []
  /// The domain that was looked for last: requests in a row are mostly about one domain.
  private var last: UInt32?

  /// The domain of a number in use.
  subscript(number: UInt32) -> DomainName { entries[Int(number)].domain }

  /// The number of a domain; nil if nothing uses the domain.
  mutating func find(_ domain: DomainName) -> UInt32? {
    if let last, entries[Int(last)].domain == domain { return last }
    guard let number = numbers[domain] else { return nil }
    last = number
    return number
  }

  /// Returns the number of a domain that something begins to use.
  mutating func use(_ domain: DomainName) -> UInt32 {
    let number = find(domain) ?? add(domain)
    entries[Int(number)].uses += 1
    return number
  }

  private mutating func add(_ domain: DomainName) -> UInt32 {
    let number = free.popLast() ?? UInt32(entries.count)
    if Int(number) == entries.count {
      entries.append(Entry(domain: domain))
    } else {
      entries[Int(number)].domain = domain
    }
    numbers[domain] = number
    return number
  }

  /// Notes that something no longer uses the domain.
  mutating func endUse(_ number: UInt32) {
    entries[Int(number)].uses -= 1
    guard entries[Int(number)].uses == 0 else { return }
    numbers[entries[Int(number)].domain] = nil
    if last == number { last = nil }
    free.append(number)
  }
}
