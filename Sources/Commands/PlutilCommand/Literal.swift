import PropertyList

/// Writes values as Swift and Objective-C source code.
enum Literal {
  /// Returns the comment that names the source of generated code.
  private static func note(_ file: String) -> String {
    "/// Generated from \(OutputPath.name(file))\n"
  }

  /// Returns the name of the constant: the name of the file without its extension.
  private static func name(_ file: String) -> String {
    var name = ""
    for character in OutputPath.stem(OutputPath.name(file)).unicodeScalars {
      switch character.properties.generalCategory {
      case _ where character == "-" || character == " ": name += "_"
      case .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol, .control: continue
      default: name.unicodeScalars.append(character)
      }
    }
    return name
  }

  /// Returns the text as a literal of Swift or, behind `@`, of Objective-C.
  private static func quoted(_ text: String) -> String {
    let escapes: [Unicode.Scalar: String] = [
      "\\": "\\\\", "\"": "\\\"", "\n": "\\n", "\r": "\\r",
    ]
    // By scalars: CR LF, and a quote with a combining mark behind it, are one character.
    return "\"" + text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined() + "\""
  }

  // MARK: - Swift

  static func swift(_ value: Value, file: String) throws(Refusal) -> String {
    let literal = try text(value, "", depth: 0)
    return note(file) + "let \(name(file))\(annotation(value)) = \(literal)\n"
  }

  /// Returns the type annotation. Only a container of several types needs one.
  private static func annotation(_ value: Value) -> String {
    switch value {
    case .dictionary(let pairs):
      Set(pairs.map(\.value.typeWord)).count > 1 ? " : [String : Any]" : ""
    case .array(let items): Set(items.map(\.typeWord)).count > 1 ? " : [Any]" : ""
    default: ""
    }
  }

  // MARK: - Objective-C

  private static let refusal = Refusal(
    "Input contains an object that cannot be represented in Obj-C literal syntax")
  private static let visibility = "__attribute__((visibility(\"hidden\")))\n"

  static func objectiveC(
    _ value: Value, file: String, output: String
  ) throws(Refusal) -> String {
    let importLine =
      output == "-" ? "" : "#import \"\(OutputPath.stem(OutputPath.name(output))).h\"\n\n"
    let literal = try text(value, "@", depth: 0)
    return importLine + note(file) + visibility + declaration(value, file) + " = \(literal);\n"
  }

  static func header(_ value: Value, file: String) -> String {
    "#import <Foundation/Foundation.h>\n\n" + note(file) + visibility + "extern "
      + declaration(value, file) + ";\n"
  }

  private static func declaration(_ value: Value, _ file: String) -> String {
    let type =
      switch value.kind {
      case .dictionary: "NSDictionary"
      case .array: "NSArray"
      case .string: "NSString"
      default: "NSNumber"
      }
    return "\(type) * const \(name(file))"
  }

  // MARK: - Both

  /// - Parameter mark: what stands before a literal: `@` in Objective-C, nothing in Swift.
  private static func text(_ value: Value, _ mark: String, depth: Int) throws(Refusal) -> String {
    let isSwift = mark.isEmpty
    switch value {
    case .string(let text): return mark + quoted(text)
    case .boolean(let flag): return isSwift ? "\(flag)" : flag ? "@YES" : "@NO"
    case .integer(let number): return mark + number.description
    case .real(let number): return mark + PlainText.cFormat("%f", number)
    case .single(let number): return mark + PlainText.cFormat("%f", Double(number))
    case .date(let time) where isSwift:
      return "Date(timeIntervalSinceReferenceDate: \(time.seconds))"
    case .data(let bytes) where isSwift:
      let digits = bytes.map { "0x" + CollectionOfOne($0).hexadecimal.uppercased() + "," }
      return "Data(bytes: [\(digits.joined())])"
    case .uid(let number) where isSwift: return "[\"CF$UID\" : \(number)]"
    case .array(let items):
      var lines: [String] = []
      for item in items { lines.append(try text(item, mark, depth: depth + 1)) }
      return container(lines, mark + "[", "]", depth)
    case .dictionary(let pairs):
      var lines: [String] = []
      for (key, item) in KeyOrder.sorted(pairs) {
        lines.append("\(mark)\(quoted(key)) : \(try text(item, mark, depth: depth + 1))")
      }
      return container(lines, isSwift ? "[" : "@{", isSwift ? "]" : "}", depth)
    case .date, .data, .uid: throw refusal
    }
  }

  private static func container(
    _ lines: [String], _ opening: String, _ closing: String, _ depth: Int
  ) -> String {
    PlainText.container(lines.map { $0 + "," }, opening, closing, depth, indent: "    ")
  }
}
