import CloudCarrier
import Glibc

exit(CloudProgram.run(Array(CommandLine.arguments.dropFirst())))
