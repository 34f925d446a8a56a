/// The root: it has a directory for each domain, and tools' temporary directories and files
/// (`mktemp -d`, rsync, watchman).
final class RootDirectory: Directory {
  var listing = ListingState()
  var subject: String { "the root" }
  var names: ListingPlan.Names { .domains }
  var scratchParent: ScratchPath.Parent { .root }
}
