/// The names that paths of GSettings have as domains.
///
/// The components of a path, with dots between them: `/org/gnome/desktop/` is `org.gnome.desktop`,
/// and `/org/x/profiles:/:a/` is `org.x.profiles:.:a`. Inside of a component a dot is `%2E` and a
/// percent sign `%25`, so that each domain stands for one path. The module for programs that use
/// GSettings (Sources/Capabilities/GSettingsBackend/names.c) has the same names.
package enum GSettingsPath {
  /// The longest name that a domain can have, in bytes.
  private static let longest = 200

  /// Returns the domain of a path, with or without slashes around it; nil if no domain can have the
  /// name, e.g. of the root.
  package static func domain(of path: some StringProtocol) -> String? {
    let components = path.unicodeScalars.split(separator: "/").map { component -> String in
      component.map { $0 == "." ? "%2E" : $0 == "%" ? "%25" : String($0) }.joined()
    }
    let name: String = components.joined(separator: ".")
    return name.isEmpty || name.utf8.count > longest ? nil : name
  }

  /// Returns the path of a domain, without slashes around it; nil if it is not a path's.
  package static func path(of domain: String) -> String? {
    let components = domain.split(separator: ".", omittingEmptySubsequences: false).map {
      String($0).replacing("%2E", with: ".").replacing("%25", with: "%")
    }
    let path: String = components.joined(separator: "/")
    return self.domain(of: path) == domain ? path : nil
  }
}
