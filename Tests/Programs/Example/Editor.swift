import Preferences

@main struct Editor {
  static func main() async {
    @Preference("TabWidth") var tabWidth = 4
    print("tabs are \(tabWidth) wide")
    for await change in $tabWidth.changes { print("now they are \(change.new) wide") }
  }
}
