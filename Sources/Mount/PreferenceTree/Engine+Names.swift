import PreferenceModel

// What a tree asks its engine, in the terms of its requests.

extension Engine {
  /// Returns the domain that a name at the root stands for; nil if it stands for none. The domain
  /// need not exist.
  func domain(named name: String) throws(TreeError) -> DomainName? {
    switch NameCodec.decode(name) {
    case .key(let key): return DomainName(key.string)
    case .shortened:
      return try asTreeError { () throws(EngineError) in try domains() }
        .first { NameCodec.encode($0.key) == name }
    case .none, .scratch: return nil
    }
  }

  /// Throws EROFS if every change is refused.
  func requireWritable() throws(TreeError) {
    if isReadOnly { throw .readOnly }
  }
}
