import Glibc
import PreferenceCloud
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// `cloud login` and `cloud logout`: which cloud this machine is connected to, and as whom.
enum CloudLogin {
  private static var passwordFile: String { Surroundings().stateDirectory + "/cloud-password" }

  /// Keeps the user, the password and the servers, and waits for the connection. The password comes
  /// from standard input; at a terminal it is asked for and not shown.
  /// - Returns: the exit status: 1 where there is no connection after 10 s.
  static func logIn(_ arguments: inout Arguments, _ store: StoreView) throws(Refusal) -> Int32 {
    let user = try arguments.removeNext()
    if user.hasPrefix(CloudSettings.directoryPrefix) {
      try arguments.end()
      return try CloudDirectoryLogin.logIn(user, store)
    }
    let servers = Array(arguments.rest)
    guard !user.isEmpty, !user.contains("/") else {
      throw .mistake("\"\(user)\" cannot be the name of a user")
    }
    for server in servers { try requireServer(server) }
    let known = try Cloud.settings(store).endpoints
    guard !servers.isEmpty || !known.isEmpty else {
      throw Refusal(
        message: "No server is known", detail: "name one, as in https://etcd.example.org:2379")
    }
    let file = passwordFile
    let intents =
      [set(.user, .string(user)), set(.passwordFile, .string(file))]
      + (servers.isEmpty ? [] : [set(.endpoints, .array(servers.map { .string($0) }))])
    try Refusal.wrapping("Could not log in") { () throws(EngineError) in try store.check(intents) }
    let password = try readPassword()
    try Refusal.wrapping("The password could not be kept") { () throws(SystemError) in
      try Files.makeDirectories(Files.parent(of: file), mode: 0o700)
      let mask = umask(0o077)
      defer { umask(mask) }
      try Files.remove(file)
      try Files.replace(file, with: Array(password.utf8))
    }
    let began = AbsoluteTime(milliseconds: Timestamp.now.nanoseconds / 1_000_000)
    let request = try Refusal.wrapping("Could not log in") { () throws(EngineError) in
      try store.apply(intents)
      return try Cloud.requestSync(store)
    }
    return try awaitConnection(request, since: began, store)
  }

  /// Refuses what is no server before it is kept, and its password with it; `prefs-cloud` checks
  /// more.
  private static func requireServer(_ url: String) throws(Refusal) {
    let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
    let isServer =
      parts.count > 2 && ["http:", "https:"].contains(parts[0].lowercased()) && parts[1].isEmpty
    guard isServer, !parts[2].isEmpty, !parts[2].contains("@") else {
      throw Refusal(
        message: "That is not a server",
        detail: "name one as in https://etcd.example.org:2379, without a user and a password")
    }
  }

  static func set(_ name: CloudSettings.Name, _ value: Value) -> Intent {
    .setOwn(name.key, CloudSettings.domain, value, .unknown)
  }

  /// Waits until the request is answered, or the server refuses, for 10 s at most; then shows how
  /// it is.
  static func awaitConnection(
    _ request: Int64, since began: AbsoluteTime, _ store: StoreView
  ) throws(Refusal) -> Int32 {
    let deadline = Instant.now.advanced(seconds: 10)
    while deadline > .now {
      let isOver = try Refusal.wrapping("Could not log in") { () throws(EngineError) in
        let note = try store.note(CloudNotes.status).flatMap { CloudStatus.read($0) }
        if let note, note.since.seconds >= began.seconds, note.status.error != nil { return true }
        return try Cloud.isAnswered(request, store)
      }
      if isOver { break }
      Instant.sleep(milliseconds: 20)
    }
    var none = Arguments([], Options())
    return try CloudReport.show(&none, store)
  }

  /// Forgets the user, the password and the servers. The values of the cloud stay here, and are
  /// replaced when somebody logs in again.
  static func logOut(_ arguments: inout Arguments, _ store: StoreView) throws(Refusal) -> Int32 {
    try arguments.end()
    try Refusal.wrapping("Could not log out") { () throws(EngineError) in
      var intents: [Intent] = []
      for name in try [CloudSettings.Name.user, .passwordFile, .endpoints]
        + CloudDirectoryLogin.names(store)
      {
        let locations = Place.own.map { Location($0, CloudSettings.domain) }
        if try store.places.findFirst(name.key, in: locations) != nil {
          intents.append(.removeOwn(name.key, CloudSettings.domain))
        }
      }
      try store.apply(intents)
    }
    try Refusal.wrapping("The password could not be removed") { () throws(SystemError) in
      try Files.remove(passwordFile)
    }
    return 0
  }

  /// Reads a line from standard input, without showing it where that is a terminal. Keys make no
  /// signals meanwhile, as with getpass(3): one that ended the program would leave the terminal so.
  private static func readPassword() throws(Refusal) -> String {
    var settings = termios()
    let isTerminal = tcgetattr(STDIN_FILENO, &settings) == 0
    if isTerminal {
      Output.write("Password: ", to: .errors)
      var quiet = settings
      quiet.c_lflag &= ~tcflag_t(ECHO | ISIG)
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet)
    }
    defer {
      if isTerminal {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
        Output.write("\n", to: .errors)
      }
    }
    guard let line = readLine(strippingNewline: true), !line.isEmpty else {
      throw Refusal(message: "There is no password", detail: "it is read from standard input")
    }
    return line
  }
}
