import PreferenceModel

/// One kind of directory: what its names mean. The tree carries the requests about them out.
///
/// Threads: the tree's alone.
protocol Directory: AnyObject {
  /// What log lines call the directory.
  var subject: String { get }
  /// Permission bits.
  var mode: UInt32 { get }
  /// The last listing of the directory.
  var listing: ListingState { get set }
  /// What a listing shows, beside the scratch files of `scratchParent`.
  var names: ListingPlan.Names { get }
  /// The directory, as part of the paths of the scratch files, links and directories in it.
  var scratchParent: ScratchPath.Parent { get }
  /// The key that the name means; nil if it means none. It need not exist, unless the name is one by
  /// pattern (`NameCodec.patternName`).
  func keyPath(_ name: String, _ engine: any Engine) throws(TreeError) -> KeyPath?
}

extension Directory {
  var mode: UInt32 { 0o700 }

  func keyPath(_ name: String, _ engine: any Engine) throws(TreeError) -> KeyPath? { nil }
}
