import PreferenceModel
import PropertyList

extension NameCodec {
  /// Returns a name that the kernel gives as a string; throws ENAMETOOLONG or EILSEQ.
  static func validated(_ name: [UInt8]) throws(TreeError) -> String {
    guard name.count <= longest else { throw .nameTooLong }
    guard let text = String(utf8: name[...]) else { throw .notUTF8 }
    return text
  }
}
