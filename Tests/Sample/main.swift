import Foundation
import class Preferences.UserDefaults

exit(Sample.run(Array(CommandLine.arguments.dropFirst())))
