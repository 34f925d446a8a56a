import EtcdClient
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

/// What `prefs-cloud` needs to know to connect: the settings of the cloud, with their files read.
struct CarrierSettings: Sendable {
  let settings: CloudSettings
  let endpoints: [String]
  let coding: EtcdCoding
  let password: String?
  let security: TransportSecurity
  /// The directory that is the cloud, and what its files are sealed with; nil if there are servers.
  let directory: (path: String, sealer: FileSealer)?

  /// Reads the settings, and the files that they name. Throws where a file
  /// cannot be read, or others may read it.
  /// - Parameters:
  ///   - userName: the user's name on this machine, for the prefix.
  ///   - dropped: is called for each record that is ignored, because its domain may not be in the
  ///     cloud.
  init(
    _ places: any StoredPlaces, userName: String,
    dropped: @escaping @Sendable (DomainName) -> Void
  ) throws(EngineError) {
    settings = try CloudSettings(of: places)
    endpoints = settings.endpoints
    let sealer = try settings.text(.encryptionKeyFile).map { (file) throws(EngineError) in
      try FileSealer(file: file)
    }
    if let path = settings.directory {
      directory = try Self.directory(path, sealer)
      // The files are sealed as a whole.
      coding = EtcdCoding(prefix: CloudSettings.directoryPrefix, dropped: dropped)
      (password, security) = (nil, TransportSecurity())
      return
    }
    for url in endpoints {
      if let refusal = TransportSecurity.refusal(of: url) {
        throw EngineError(
          .system(.invalidArgument), domain: CloudSettings.domain, key: "Endpoints",
          "\(TransportSecurity.display(url)): \(refusal)")
      }
    }
    let user = settings.text(.user)
    var prefix = settings.text(.prefix) ?? "/prefsfs/\(user ?? userName)/"
    if !prefix.hasSuffix("/") { prefix += "/" }
    directory = nil
    coding = EtcdCoding(user: user, prefix: prefix, sealer: sealer, dropped: dropped)
    password = user == nil ? nil : try Self.password(settings.text(.passwordFile))
    security = TransportSecurity(
      authorityFile: settings.text(.authorityFile),
      certificateFile: settings.text(.certificateFile), keyFile: settings.text(.keyFile))
  }

  private static func directory(
    _ path: String, _ sealer: FileSealer?
  ) throws(EngineError) -> (path: String, sealer: FileSealer) {
    guard path.hasPrefix("/") else {
      throw EngineError(
        .system(.invalidArgument), domain: CloudSettings.domain, key: "Endpoints",
        "dir:\(path) is not absolute; name a directory as in dir:/home/ada/Sync/prefs")
    }
    guard let sealer else {
      throw EngineError(
        .noSuchKey, domain: CloudSettings.domain, key: "EncryptionKeyFile",
        "a cloud in a directory needs it; prefs cloud login sets it")
    }
    return (path, sealer)
  }

  /// The password in the file, without the newline at its end.
  private static func password(_ file: String?) throws(EngineError) -> String {
    guard let file else {
      throw EngineError(
        .noSuchKey, domain: CloudSettings.domain, key: "PasswordFile",
        "it is not set, but User is; prefs cloud login sets both")
    }
    let bytes = try SecretFile.bytes(file, limit: 4096)
    let text = String(decoding: bytes, as: UTF8.self)
    return text.hasSuffix("\n") ? String(text.dropLast()) : text
  }
}
