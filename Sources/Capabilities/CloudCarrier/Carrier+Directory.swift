import DirectoryClient
import EtcdClient
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

// What carries the requests: the network, or files in a directory.

extension Carrier {
  /// Creates what carries requests, as the settings say.
  func transport(_ settings: CarrierSettings) throws(EngineError) -> any CloudTransport {
    guard let (path, sealer) = settings.directory else {
      return try EngineError.wrapping { () throws(SystemError) in
        try CurlTransport(settings.security)
      }
    }
    let file = try place.note(CloudNotes.file).flatMap { HostFileIdentity($0) }
    return DirectoryTransport(
      path, settings.coding, sealer, identity: sealer.fingerprint, machine.state,
      file: file ?? HostFileIdentity(host: CloudProgram.newHostName()),
      newHost: { CloudProgram.newHostName() },
      save: { [weak self] in self?.save($0) }, log: log)
  }

  /// Saves which file is this host's. Where that fails, the next `prefs-cloud` begins a new one.
  private func save(_ file: HostFileIdentity) {
    do throws(EngineError) { try place.note(CloudNotes.file, file.value) } catch { note(error) }
  }
}

extension HostFileIdentity {
  fileprivate var value: Value {
    ["host": .string(host), "sessions": .array(sessions.map { .data($0) })]
  }

  /// Reads what was saved; nil for anything else.
  fileprivate init?(_ value: Value) {
    guard let host = value.dictionary?["host"]?.string, !host.isEmpty,
      case .array(let sessions)? = value.dictionary?["sessions"]
    else { return nil }
    self.init(
      host: host,
      sessions: sessions.compactMap { if case .data(let bytes) = $0 { bytes } else { nil } })
  }
}
