import Glibc
import PreferenceCloud
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// `cloud login dir:/PATH`: the cloud is a directory that some other program synchronises.
enum CloudDirectoryLogin {
  private static var keyFile: String { Surroundings().stateDirectory + "/cloud-key" }

  /// Keeps the directory and the key file, which it makes where there is none, and waits for the
  /// connection. Only `prefs-cloud` looks at the directory: a share may hang.
  /// - Returns: the exit status: 1 where there is no connection after 10 s.
  static func logIn(_ endpoint: String, _ store: StoreView) throws(Refusal) -> Int32 {
    guard endpoint.dropFirst(CloudSettings.directoryPrefix.count).hasPrefix("/") else {
      throw Refusal(
        message: "That is not the path of a directory",
        detail: "name an absolute path, as in dir:/home/ada/Sync")
    }
    let known = try Cloud.settings(store).text(.encryptionKeyFile)
    let file = known ?? keyFile
    let intents =
      [CloudLogin.set(.endpoints, .array([.string(endpoint)]))]
      + (known == nil ? [CloudLogin.set(.encryptionKeyFile, .string(file))] : [])
    try Refusal.wrapping("Could not log in") { () throws(EngineError) in try store.check(intents) }
    if known == nil { try makeKey(file) }
    let began = AbsoluteTime(milliseconds: Timestamp.now.nanoseconds / 1_000_000)
    let request = try Refusal.wrapping("Could not log in") { () throws(EngineError) in
      try store.apply(intents)
      return try Cloud.requestSync(store)
    }
    return try CloudLogin.awaitConnection(request, since: began, store)
  }

  /// Makes a key, unless the file is there.
  private static func makeKey(_ file: String) throws(Refusal) {
    let isMade = try Refusal.wrapping("The key could not be made") { () throws(SystemError) in
      if try Files.linkStatus(file) != nil { return false }
      try Files.makeDirectories(Files.parent(of: file), mode: 0o700)
      let key = (0..<32).map { _ in UInt8.random(in: 0...255) }
      let new = try Descriptor(opening: file, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try new.write(key)
      try new.synchronize()
      return true
    }
    guard isMade else { return }
    Output.write(
      line:
        "made the key \(file); copy it to your other machines, and name it in EncryptionKeyFile of "
        + "\(CloudSettings.domain) there before you log in", to: .errors)
  }

  /// The settings that a login has made, and a logout removes. The key file stays.
  static func names(_ store: StoreView) throws(EngineError) -> [CloudSettings.Name] {
    let settings = try CloudSettings(of: store.places)
    let isOurs = settings.directory != nil && settings.text(.encryptionKeyFile) == keyFile
    return isOurs ? [.encryptionKeyFile] : []
  }
}
