/// An encoding in which each byte is a character, and those below 0x80 are ASCII.
struct ByteEncoding {
  /// The names that XML declares it by, in lower case.
  private let names: [String]
  /// The characters of the bytes from 0x80 on.
  private let upper: [Unicode.Scalar]

  /// - Parameters:
  ///   - first: the byte of the first of `characters`. The bytes before it and behind the last of
  ///     them are as in ISO-8859-1.
  ///   - characters: U+FFFD for a byte that is none.
  private init(names: [String], first: UInt8, characters: String) {
    self.names = names
    var upper = (UInt8(0x80)...0xFF).map { Unicode.Scalar($0) }
    for (index, scalar) in characters.unicodeScalars.enumerated() {
      upper[Int(first) - 0x80 + index] = scalar
    }
    self.upper = upper
  }

  /// Returns the encoding with the name, in any case; nil if it is not known.
  static func named(_ name: String) -> ByteEncoding? {
    let name = name.lowercased()
    return all.first { $0.names.contains(name) }
  }

  /// Returns the text in UTF-8; nil if a byte is no character.
  func utf8(_ bytes: [UInt8]) -> [UInt8]? {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count + bytes.count / 8)
    for byte in bytes {
      if byte < 0x80 {
        text.append(byte)
      } else {
        let scalar = upper[Int(byte) - 0x80]
        if scalar == "\u{FFFD}" { return nil }
        text.append(contentsOf: UTF8.encode(scalar) ?? Unicode.UTF8.encodedReplacementCharacter)
      }
    }
    return text
  }

  private static let all: [ByteEncoding] = [
    Self(
      names: ["windows-1250", "cp1250"], first: 0x80,
      characters: """
        €\u{FFFD}‚\u{FFFD}„…†‡\u{FFFD}‰Š‹ŚŤŽŹ\u{FFFD}‘’“”•–—\u{FFFD}™š›śťžź\u{A0}ˇ˘Ł¤Ą¦§¨©Ş«¬\
        \u{AD}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙
        """),
    Self(
      names: ["windows-1251", "cp1251"], first: 0x80,
      characters: """
        ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\u{FFFD}™љ›њќћџ\u{A0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{AD}®Ї°±Ііґµ¶·ё№є»јЅѕїАБВГДЕЖ\
        ЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя
        """),
    Self(
      names: ["windows-1252", "cp1252"], first: 0x80,
      characters: "€\u{FFFD}‚ƒ„…†‡ˆ‰Š‹Œ\u{FFFD}Ž\u{FFFD}\u{FFFD}‘’“”•–—˜™š›œ\u{FFFD}žŸ"),
    Self(
      names: ["windows-1253", "cp1253"], first: 0x80,
      characters: """
        €\u{FFFD}‚ƒ„…†‡\u{FFFD}‰\u{FFFD}‹\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}‘’“”•–—\u{FFFD}\
        ™\u{FFFD}›\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{A0}΅Ά£¤¥¦§¨©\u{FFFD}«¬\u{AD}®―°±²³΄µ¶·ΈΉΊ»Ό\
        ½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\u{FFFD}ΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ\u{FFFD}
        """),
    Self(
      names: ["windows-1254", "cp1254"], first: 0x80,
      characters: """
        €\u{FFFD}‚ƒ„…†‡ˆ‰Š‹Œ\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}‘’“”•–—˜™š›œ\u{FFFD}\u{FFFD}Ÿ\u{A0}¡\
        ¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóô\
        õö÷øùúûüış
        """),
    Self(
      names: ["windows-1257", "cp1257"], first: 0x80,
      characters: """
        €\u{FFFD}‚\u{FFFD}„…†‡\u{FFFD}‰\u{FFFD}‹\u{FFFD}¨ˇ¸\u{FFFD}‘’“”•–—\u{FFFD}™\u{FFFD}›\
        \u{FFFD}¯˛\u{FFFD}\u{A0}\u{FFFD}¢£¤\u{FFFD}¦§Ø©Ŗ«¬\u{AD}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶ\
        ĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙
        """),
    Self(
      names: ["iso-8859-1", "iso8859-1", "latin1", "iso-latin-1", "us-ascii", "ascii"], first: 0x80,
      characters: ""),
    Self(
      names: ["iso-8859-2", "iso8859-2", "latin2"], first: 0xA1,
      characters: """
        Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{AD}ŽŻ°ą˛ł´ľśˇ¸šşťź˝žżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňó\
        ôőö÷řůúűüýţ˙
        """),
    Self(
      names: ["iso-8859-5", "iso8859-5"], first: 0xA1,
      characters: """
        ЁЂЃЄЅІЇЈЉЊЋЌ\u{AD}ЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя№ёђѓ\
        єѕіїјљњћќ§ўџ
        """),
    Self(
      names: ["iso-8859-7", "iso8859-7"], first: 0xA1,
      characters: """
        ‘’£€₯¦§¨©ͺ«¬\u{AD}\u{FFFD}―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\u{FFFD}ΣΤΥΦΧΨΩΪΫάέήίΰαβγδε\
        ζηθικλμνξοπρςστυφχψωϊϋόύώ\u{FFFD}
        """),
    Self(
      names: ["iso-8859-9", "iso8859-9", "latin5"], first: 0xD0,
      characters: "ĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øùúûüış"),
    Self(
      names: ["iso-8859-15", "iso8859-15", "latin-9"], first: 0xA4,
      characters: "€¥Š§š©ª«¬\u{AD}®¯°±²³Žµ¶·ž¹º»ŒœŸ"),
    Self(
      names: ["koi8-r"], first: 0x80,
      characters: """
        ─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u{A0}⌡°²·÷═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©юабцдефгхийклмнопяр\
        стужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ
        """),
    Self(
      names: ["ibm850", "cp850"], first: 0x80,
      characters: """
        ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎ\
        Ï┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}
        """),
    Self(
      names: ["macintosh", "x-mac-roman"], first: 0x80,
      characters: """
        ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{A0}ÀÃÕŒœ–—“\
        ”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{F8FF}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ
        """),
  ]
}
