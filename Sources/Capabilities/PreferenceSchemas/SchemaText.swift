import PreferenceModel
import PropertyList
import SystemCalls

// What a schema says, as text for people.

extension SchemaKey {
  /// The type and what may stand there, e.g. "integer, 1 to 16, default 4".
  public var rule: String {
    var parts = [kind?.rawValue ?? "any type"]
    if kind == .array, members.count == 1, let element = members.first?.kind {
      parts[0] = "array of \(element.rawValue)"
    }
    if let range { parts.append(range) }
    if !choices.isEmpty {
      let known = choices.prefix(20).map(Self.plain).joined(separator: ", ")
      parts.append(
        "one of \(known)\(choices.count > 20 ? ", ..." : "")\(allowsOthers ? ", or others" : "")")
    }
    if let pattern { parts.append("matches \(pattern.text)") }
    if let fallback { parts.append("default \(Self.plain(fallback))") }
    return parts.joined(separator: ", ").printable()
  }

  private var range: String? {
    let unit = unit.isEmpty ? "" : " \(unit)"
    switch (minimum, maximum) {
    case (let low?, let high?): return "\(Self.plain(low)) to \(Self.plain(high))\(unit)"
    case (let low?, nil): return "\(Self.plain(low)) or more\(unit)"
    case (nil, let high?): return "\(Self.plain(high)) or less\(unit)"
    case (nil, nil): return unit.isEmpty ? nil : "in\(unit)"
    }
  }

  /// A value on one line, strings without quotes.
  static func plain(_ value: Value) -> String {
    switch value {
    case .string(let text): return text.isEmpty ? "\"\"" : text
    case .array, .dictionary, .data, .uid: return ValueDescription.line(of: value, false)
    case .integer, .real, .single, .boolean, .date:
      return String(decoding: ValueText.canonical(value).dropLast(), as: UTF8.self)
    }
  }

  /// What it does, or its title, on one line; may be empty.
  public var caption: String {
    (summary.isEmpty ? title : summary).lines.filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// What it does, and what else there is to know, in sentences; may be empty. The text has the
  /// lines of the schema.
  public var remarks: String {
    var parts = [summary.isEmpty ? title : summary]
    for (choice, title) in zip(choices, choiceTitles) where Self.plain(choice) != title {
      parts.append("\(Self.plain(choice)): \(title).")
    }
    if isRequired { parts.append("It is required.") }
    if isSensitive { parts.append("It is a secret.") }
    if isState { parts.append("It is state, not a setting.") }
    if isCloud { parts.append("It is the same on all machines of a user, where there is a cloud.") }
    if let deprecated {
      parts.append(deprecated.isEmpty ? "Deprecated." : "Deprecated since \(deprecated).")
    }
    let text = parts.filter { !$0.isEmpty }.joined(separator: " ")
    return text.lines.joined(separator: "\n")
  }

  /// The lines that describe the key.
  /// - Parameter present: what is read now, e.g. "now 8 (user)"; nil means nothing.
  public func text(present: String?) -> String {
    var text = "\(name): \(rule)".printable() + "\n"
    for line in Self.wrapped(remarks) { text += "    \(line)\n" }
    if let present { text += "    \(present)\n" }
    return text
  }

  /// The text in lines of at most 76 characters. Each of its own lines begins a new one.
  package static func wrapped(_ text: String) -> [String] {
    text.lines.flatMap { line in
      var lines: [String] = []
      for word in line.split(separator: " ") {
        if let last = lines.last, last.count + word.count < 76 {
          lines[lines.count - 1] = "\(last) \(word)"
        } else {
          lines.append(String(word))
        }
      }
      return lines
    }
  }
}

extension String {
  /// The lines of a text for people, without control characters. A tab is a blank.
  package var lines: [String] {
    split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map {
      String($0).replacing("\t", with: " ").printable()
    }
  }
}

extension Schema {
  /// What the domain is for, as indented lines; may be empty.
  public var about: String {
    SchemaKey.wrapped(summary).map { "    \($0)\n" }.joined()
  }

  /// Whether the word is in the name, the title or the summary of a key, without regard to case.
  public func keys(about word: String) -> [SchemaKey] {
    let word = word.lowercased()
    return keys.filter { key in
      [key.name.string, key.title, key.summary].contains { $0.lowercased().contains(word) }
    }
  }
}

extension Schema {
  /// What is wrong with the file, and which patterns refuse texts because they take too long, a
  /// sentence for each. Cost: some milliseconds for each pattern.
  public var complaints: [String] { problems + keys.flatMap { $0.costlyPatterns(at: "") } }
}

extension SchemaKey {
  fileprivate func costlyPatterns(at path: String) -> [String] {
    let path = path + name.string
    let own =
      pattern?.isCostly == true
      ? ["\(path): pfm_format takes too long for some texts, which are refused"] : []
    return own + members.flatMap { $0.costlyPatterns(at: path + ".") }
  }
}
