import PreferenceModel
import PropertyList

// Documents that are written to `.prefs/apply`.

extension Forest {
  /// Carries out a document `{DOMAIN: {KEY: VALUE}}` as one transaction: sets the keys, with the
  /// types that the document gives them, and removes those whose value is `null` from the lists of
  /// the user. A key that is not there is removed already.
  ///
  /// Throws, and logs, what refuses the whole document: EINVAL if it is no such document, or a
  /// schema does not allow a value; EPERM if a key is forced, a domain cannot have the name, or the
  /// document has keys that need consent (`DomainName.consentReason`).
  func apply(_ document: [UInt8]) throws(EngineError) -> Changeset {
    do throws(EngineError) {
      let judged: [Intent] = options.judges ? [.judged] : []
      let intents = judged + (try intents(document))
      // The same document, applied once more by a successor, has the same effect.
      setDecisive?(false)
      return try service.preferences.apply(intents, by: author)
    } catch {
      let refusal = TreeError(error)
      if let sentence = refusal.sentence { log(.refusal("apply: \(sentence)", refusal.errno)) }
      throw error
    }
  }

  private func intents(_ document: [UInt8]) throws(EngineError) -> [Intent] {
    let absent = service.absent
    guard
      case .dictionary(let domains)? = Recogniser.value(
        of: document, kind: .dictionary, null: absent)
    else {
      throw EngineError(
        .system(.invalidArgument),
        "the document is not a dictionary of domains, written in one piece")
    }
    var intents: [Intent] = []
    for (name, keys) in domains {
      let domain = DomainName(named: name.string)
      guard case .dictionary(let values) = keys else {
        throw EngineError(
          .system(.invalidArgument), "\(name): expected a dictionary of keys and values")
      }
      guard domain.canNameList else {
        throw EngineError(.invalidDomain, "\(name): no domain can have this name")
      }
      if let reason = domain.consentReason, !values.isEmpty {
        throw EngineError(
          .system(.notPermitted), domain: domain, "\(reason); prefs apply --rules FILE sets it")
      }
      for (key, value) in values {
        intents +=
          value == absent
          ? Place.own.map { .edit(Location($0, domain), .remove(key)) }
          : [.set(key, domain, value, .canonical)]
      }
    }
    return intents
  }
}
