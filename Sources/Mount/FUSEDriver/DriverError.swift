/// Why a mount could not be made.
public struct DriverError: Error, CustomStringConvertible {
  /// The reason, as a sentence for people.
  public let description: String

  init(_ description: String) { self.description = description }
}
