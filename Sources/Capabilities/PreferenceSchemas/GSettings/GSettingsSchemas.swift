import PropertyList

/// Makes preference manifests of schemas of GSettings (`*.gschema.xml`): a manifest for each schema,
/// whose domain is the schema's id. What `glib-compile-schemas --strict` refuses is refused.
///
/// A key's type, range and choices become those of the manifest; integers get the bounds of their
/// type. An enumeration becomes a string with choices, flags an array of such strings.
///
/// As those `ofFiles`, keys are described as programs that use GSettings have them in a mount
/// (`VariantText.kept`): bytes are numbers, and what JSON has no form for is of any type.
package struct GSettingsSchemas {
  private var enumerations: [String: [String]] = [:]
  private var flags: [String: [String]] = [:]
  /// The manifests of the schemas that were read, in their order.
  package private(set) var manifests: [(domain: String, manifest: ValueDictionary)] = []
  private var schemas: [String: Known] = [:]
  /// The path of each schema, nil if it is relocatable, and the GVariant type of each of its keys.
  package private(set) var types: [(id: String, path: String?, keys: [String: String])] = []

  /// What later schemas need of an earlier one.
  private struct Known {
    var base: String?
    /// The schema of its children, if it is a list.
    var list: String?
    /// Its keys and those of its bases, and their order: those of bases first.
    var keys: [String: KnownKey] = [:]
    var order: [String] = []
  }

  private struct KnownKey {
    /// The type of a GVariant; nil for an enumeration, and flags.
    var type: String?
    /// What the manifest says of it.
    var entry: ValueDictionary

    /// An enumeration is kept as a string, flags as an array of such strings.
    var variantType: String { type ?? (entry["pfm_type"] == "array" ? "as" : "s") }
  }

  private let isOfFiles: Bool

  /// Nothing has been read.
  package init(ofFiles isOfFiles: Bool = false) { self.isOfFiles = isOfFiles }

  /// Reads a file, after those that declare enumerations for it.
  package mutating func read(_ text: String) throws(Malformed) { try read(Markup.read(text)) }

  /// Reads the element of a file, after those of the files that declare enumerations for it. Of a
  /// file in which something is wrong nothing is taken, as in GLib.
  mutating func read(_ root: Markup.Element) throws(Malformed) {
    var all = self
    try all.add(root)
    self = all
  }

  private mutating func add(_ root: Markup.Element) throws(Malformed) {
    guard root.name == "schemalist" else { throw Malformed("<\(root.name)> is not <schemalist>") }
    for element in root.children {
      switch element.name {
      case "enum": enumerations[try id(element, enumerations)] = try nicks(element)
      case "flags": flags[try id(element, flags)] = try nicks(element)
      case "schema": try readSchema(element)
      default: throw Malformed("<\(element.name)> is not allowed in <schemalist>")
      }
    }
  }

  private func id(
    _ element: Markup.Element, _ known: [String: [String]]
  ) throws(Malformed) -> String {
    guard let id = element.attributes["id"], !id.isEmpty else {
      throw Malformed("<\(element.name)> has no id")
    }
    if known[id] != nil { throw Malformed("<\(element.name) id='\(id)'> is there twice") }
    return id
  }

  private func nicks(_ element: Markup.Element) throws(Malformed) -> [String] {
    var nicks: [String] = []
    var numbers: Set<Int> = []
    for value in element.children {
      guard value.name == "value", let nick = value.attributes["nick"], nick.count >= 2,
        let number = value.attributes["value"].flatMap(Self.number)
      else {
        throw Malformed("<\(element.name)>: a value has no nick of two characters, or no number")
      }
      if nicks.contains(nick) || !numbers.insert(number).inserted {
        throw Malformed("<\(element.name)>: \(nick) is there twice")
      }
      if element.name == "flags", number <= 0 || number & (number - 1) != 0 {
        throw Malformed("<flags>: \(number) is not one bit")
      }
      nicks.append(nick)
    }
    if nicks.isEmpty { throw Malformed("<\(element.name)> has no values") }
    return nicks
  }

  private static func number(_ text: String) -> Int? {
    text.hasPrefix("0x") ? Int(text.dropFirst(2), radix: 16) : Int(text)
  }

  private static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, (97...122).contains(first), !name.hasSuffix("-"),
      name.firstRange(of: "--") == nil, name.utf8.count <= 1024
    else { return false }
    return name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
  }

  private mutating func readSchema(_ element: Markup.Element) throws(Malformed) {
    guard let id = element.attributes["id"], !id.isEmpty else {
      throw Malformed("a schema has no id")
    }
    guard !id.contains("/"), !id.hasPrefix(".") else {
      throw Malformed("\"\(id)\" is not an id of a schema")
    }
    if schemas[id] != nil { throw Malformed("the schema \(id) is there twice") }
    try Self.check(path: element.attributes["path"], id)
    var known = try inherited(element, id)
    var subkeys: [Value] = []
    var seen: Set<String> = []
    for child in element.children {
      guard let name = child.attributes["name"], Self.isName(name) else {
        throw Malformed("\(id): <\(child.name)> has no name, or one that no key can have")
      }
      if child.name == "child" { continue }
      guard seen.insert(name).inserted else { throw Malformed("\(id): \(name) is there twice") }
      switch child.name {
      case "key":
        if known.keys[name] != nil { throw Malformed("\(id): \(name) is there already") }
        let entry = try key(child, name, "\(id) \(name)")
        known.keys[name] = KnownKey(type: child.attributes["type"], entry: entry)
        known.order.append(name)
        subkeys.append(.dictionary(entry))
      case "override":
        guard element.attributes["extends"] != nil, var old = known.keys[name] else {
          throw Malformed("\(id): there is no \(name) to override")
        }
        try addDefault([child], old.type, to: &old.entry, "\(id) \(name)")
        known.keys[name] = old
        subkeys.append(.dictionary(old.entry))
      default: throw Malformed("\(id): <\(child.name)> is not allowed in <schema>")
      }
    }
    schemas[id] = known
    types.append((id, element.attributes["path"], known.keys.mapValues(\.variantType)))
    manifests.append(
      (
        id,
        [
          "pfm_domain": .string(id), "pfm_title": .string(id), "pfm_description": "",
          "pfm_format_version": 1, "pfm_subkeys": .array(subkeys),
        ]
      ))
  }

  /// What a schema has from the one that it extends.
  private func inherited(_ element: Markup.Element, _ id: String) throws(Malformed) -> Known {
    var known = Known(base: element.attributes["extends"], list: element.attributes["list-of"])
    if let list = known.list, schemas[list] == nil {
      throw Malformed("\(id) is a list of \(list), which is not there")
    }
    guard let name = known.base else { return known }
    guard let base = schemas[name] else {
      throw Malformed("\(id) extends \(name), which is not there")
    }
    (known.keys, known.order) = (base.keys, base.order)
    guard let list = known.list else {
      known.list = base.list
      return known
    }
    var ancestor: String? = list
    while let present = ancestor, present != base.list { ancestor = schemas[present]?.base }
    guard base.list != nil, ancestor != nil else {
      throw Malformed("\(id) is a list of \(list), but \(name) is not one of its bases")
    }
    return known
  }

  private static func check(path: String?, _ id: String) throws(Malformed) {
    guard let path else { return }
    guard path.hasPrefix("/"), path.hasSuffix("/"), path.firstRange(of: "//") == nil else {
      throw Malformed("\(id): the path must begin and end with a slash, and have no two together")
    }
  }

  // MARK: - What was read

  /// Returns the keys of a schema and of its bases, as entries of a manifest; nil if the schema was
  /// not read.
  func entries(of id: String) -> [ValueDictionary]? {
    schemas[id].map { known in known.order.compactMap { known.keys[$0]?.entry } }
  }

  /// Gives a key of a schema the default of a file `*.gschema.override`. One that does not fit, or of
  /// a key that is not there, changes nothing, as in GLib.
  mutating func setFallback(_ text: String, of key: String, in id: String) {
    guard var known = schemas[id]?.keys[key],
      let value = try? fallback(text, known.type, known.entry)
    else { return }
    known.entry["pfm_default"] = value
    schemas[id]?.keys[key] = known
  }

  // MARK: - Keys

  private func key(
    _ element: Markup.Element, _ name: String, _ subject: String
  ) throws(Malformed) -> ValueDictionary {
    var entry: ValueDictionary = ["pfm_name": .string(name)]
    for text in ["summary", "description"] {
      let all = element.all(text)
      if all.count > 1 || all.first?.attributes.isEmpty == false {
        throw Malformed("\(subject): it must have at most one <\(text)>, without attributes")
      }
    }
    if let title = element.text(of: "summary"), !title.isEmpty {
      entry["pfm_title"] = .string(title)
    }
    if let about = element.text(of: "description"), !about.isEmpty {
      entry["pfm_description"] = .string(about)
    }
    let types = ["type", "enum", "flags"].filter { element.attributes[$0] != nil }
    guard types.count == 1, let form = types.first, let type = element.attributes[form] else {
      throw Malformed("\(subject): it must have exactly one of type, enum and flags")
    }
    guard element.all("default").count == 1 else {
      throw Malformed("\(subject): it must have exactly one <default>")
    }
    if form == "type" {
      try add(type, to: &entry, subject)
      try addRange(element, type, to: &entry, subject)
      try addChoices(element, type, to: &entry, subject)
    } else {
      guard element.all("range").isEmpty, element.all("choices").isEmpty else {
        throw Malformed("\(subject): \(form) has no <range> and no <choices>")
      }
      guard let nicks = form == "enum" ? enumerations[type] : flags[type] else {
        throw Malformed("\(subject): <\(form) id='\(type)'> is not there before it")
      }
      let choices = Value.array(nicks.map { .string($0) })
      try checkAliases(element, nicks, subject)
      if form == "enum" {
        (entry["pfm_type"], entry["pfm_range_list"]) = ("string", choices)
      } else {
        entry["pfm_type"] = "array"
        entry["pfm_subkeys"] = [["pfm_type": "string", "pfm_range_list": choices]]
      }
    }
    try addDefault(element.all("default"), form == "type" ? type : nil, to: &entry, subject)
    return entry
  }

  /// The type of a GVariant as types of a manifest.
  private func add(
    _ type: String, to entry: inout ValueDictionary, _ subject: String
  ) throws(Malformed) {
    guard VariantType.isComplete(type) else {
      throw Malformed("\(subject): \"\(type)\" is not a type")
    }
    if isOfFiles, VariantType.mayBeText(type) { return }
    switch type {
    case "b": entry["pfm_type"] = "boolean"
    case "d": entry["pfm_type"] = "real"
    case "s", "o", "g": entry["pfm_type"] = "string"
    case "ay" where !isOfFiles: entry["pfm_type"] = "data"
    case "y", "n", "q", "i", "u", "x", "t", "h":
      entry["pfm_type"] = "integer"
      if let bounds = VariantType.bounds[type] {
        entry["pfm_range_min"] = .integer(bounds.lowerBound)
        entry["pfm_range_max"] = .integer(bounds.upperBound)
      }
    case "v": break
    case _ where type.hasPrefix("m"): try add(String(type.dropFirst()), to: &entry, subject)
    case _ where type.hasPrefix("a{s") || isOfFiles && type.hasPrefix("a{"):
      entry["pfm_type"] = "dictionary"
    case _ where type.hasPrefix("a") && !type.hasPrefix("a{"):
      var element: ValueDictionary = [:]
      try add(String(type.dropFirst()), to: &element, subject)
      (entry["pfm_type"], entry["pfm_subkeys"]) = ("array", [.dictionary(element)])
    default: entry["pfm_type"] = "array"
    }
  }

  private func addRange(
    _ element: Markup.Element, _ type: String, to entry: inout ValueDictionary, _ subject: String
  ) throws(Malformed) {
    let ranges = element.all("range")
    guard let range = ranges.first else { return }
    guard ranges.count == 1, type.count == 1, "ynqiuxtd".contains(type) else {
      throw Malformed("\(subject): a <range> is for one number")
    }
    for (name, key) in [("min", "pfm_range_min"), ("max", "pfm_range_max")] as [(String, Key)] {
      guard let text = range.attributes[name] else { continue }
      guard let value = try? VariantText.value(of: text), VariantType.fits(value, type) else {
        throw Malformed("\(subject): \(text) is no \(type)")
      }
      entry[key] = value
    }
    guard range.attributes["min"] != nil || range.attributes["max"] != nil,
      let low = entry["pfm_range_min"], let high = entry["pfm_range_max"] ?? entry["pfm_range_min"],
      !high.isLess(than: low)
    else {
      if entry["pfm_range_min"] == nil, entry["pfm_range_max"] != nil { return }
      throw Malformed("\(subject): the <range> is empty")
    }
  }

  private func addChoices(
    _ element: Markup.Element, _ type: String, to entry: inout ValueDictionary, _ subject: String
  ) throws(Malformed) {
    let all = element.all("choices")
    guard let choices = all.first else {
      if !element.all("aliases").isEmpty { throw Malformed("\(subject): <aliases> need <choices>") }
      return
    }
    guard all.count == 1, ["s", "as", "ms"].contains(type) else {
      throw Malformed("\(subject): <choices> are for strings")
    }
    var texts: [String] = []
    for choice in choices.children {
      guard choice.name == "choice", let text = choice.attributes["value"], !texts.contains(text)
      else { throw Malformed("\(subject): a choice has no value, or is there twice") }
      texts.append(text)
    }
    if texts.isEmpty { throw Malformed("\(subject): <choices> are empty") }
    try checkAliases(element, texts, subject)
    let values = Value.array(texts.map { .string($0) })
    if type == "as" {
      entry["pfm_subkeys"] = [["pfm_type": "string", "pfm_range_list": values]]
    } else {
      entry["pfm_range_list"] = values
    }
  }

  private func checkAliases(
    _ element: Markup.Element, _ texts: [String], _ subject: String
  ) throws(Malformed) {
    var known = Set(texts)
    for alias in element.all("aliases").flatMap(\.children) {
      guard let text = alias.attributes["value"], known.insert(text).inserted,
        let target = alias.attributes["target"], texts.contains(target)
      else { throw Malformed("\(subject): an alias is there already, or stands for no choice") }
    }
  }

  private func addDefault(
    _ elements: [Markup.Element], _ type: String?, to entry: inout ValueDictionary,
    _ subject: String
  ) throws(Malformed) {
    if let category = elements.first?.attributes["l10n"], !["messages", "time"].contains(category) {
      throw Malformed("\(subject): \(category) is not a category of translations")
    }
    do throws(Malformed) {
      entry["pfm_default"] = try fallback(elements.first?.text ?? "", type, entry)
    } catch {
      throw Malformed("\(subject): its default: \(error.reason)")
    }
  }

  /// The default with that text; nil if it has none.
  private func fallback(
    _ text: String, _ type: String?, _ entry: ValueDictionary
  ) throws(Malformed) -> Value? {
    guard let value = try VariantText.value(of: text) else {
      guard type?.hasPrefix("m") == true else {
        throw Malformed("only a type that begins with m has the value nothing")
      }
      return nil
    }
    if let type, !VariantType.fits(value, type) { throw Malformed("it is not of type \(type)") }
    try checkChoice(value, entry)
    return isOfFiles ? try VariantText.kept(text) : value
  }

  /// A default is in its range and one of the choices.
  private func checkChoice(
    _ value: Value, _ entry: ValueDictionary
  ) throws(Malformed) {
    if case .array(let elements) = value, case .array(let subkeys)? = entry["pfm_subkeys"],
      case .dictionary(let inner)? = subkeys.first
    {
      for element in elements { try checkChoice(element, inner) }
    }
    if case .array(let choices)? = entry["pfm_range_list"], !choices.contains(value) {
      throw Malformed("it is not a choice")
    }
    if let low = entry["pfm_range_min"], value.isLess(than: low) {
      throw Malformed("it is out of range")
    }
    if let high = entry["pfm_range_max"], high.isLess(than: value) {
      throw Malformed("it is out of range")
    }
  }
}
