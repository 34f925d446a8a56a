import Foundation

let words = Array(CommandLine.arguments.dropFirst())
if words == ["examples"] { await Examples.run() } else { exit(Sample.run(words)) }
