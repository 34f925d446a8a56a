import Glibc
import PlutilCommand

exit(PlutilCommand.run(CommandLine.arguments))
