import Glibc
import PreferenceBrowser
import PreferenceHistory
import PreferenceModel

// Runs the browser, for tests: browse [--plain] [--at MOMENT] [DOMAIN].
var options = BrowserOptions()
var words = Array(CommandLine.arguments.dropFirst())
while !words.isEmpty {
  switch words.removeFirst() {
  case "--plain": options.isPlain = true
  case "--at" where !words.isEmpty: options.moment = HistoryMoment(words.removeFirst())
  case let domain: options.domain = DomainName(domain)
  }
}
exit(Browser.run(options))
