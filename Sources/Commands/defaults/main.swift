import DefaultsCommand
import Glibc

exit(DefaultsCommand.run(Array(CommandLine.arguments.dropFirst())))
