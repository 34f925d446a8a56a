import PreferenceModel
import PropertyList

/// Shows every place of the search list that holds a key, the one that counts first.
public struct Explanation {
  private let search: SearchEngine
  private let layout: StoreLayout
  private let owner: any ReportService

  /// - Parameter owner: is asked which configuration profiles set the key.
  public init(_ search: SearchEngine, _ layout: StoreLayout, _ owner: any ReportService) {
    (self.search, self.layout, self.owner) = (search, layout, owner)
  }

  /// Two lines for each holder: its place and value, and the file that it comes from; nil if no
  /// place holds the key. The value that counts has an asterisk.
  /// - Parameter isAppleText: as of `ValueDescription.line`.
  public func text(
    of key: Key, in domain: DomainName, isAppleText: Bool
  ) throws(EngineError) -> String? {
    let holders = try search.holders(of: key, in: domain)
    if holders.isEmpty { return nil }
    var text = ""
    for holder in holders {
      let line = ValueDescription.line(of: holder.value, isAppleText)
      let source = holder.location.source(seenFrom: domain)
      let forced = holder.isForced ? " (forced)" : ""
      let mark = text.isEmpty ? "*" : " "
      text += "\(mark) \(source)\(forced): \(line)\n    \(file(holder.location))\n"
    }
    return text
  }

  /// The path of the list that holds the location.
  private func file(_ location: Location) -> String {
    location.place.isPersistent ? layout.path(location) : "(this process)"
  }
}
