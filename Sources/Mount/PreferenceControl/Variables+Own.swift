import PreferenceDeclarations
import StoreAccess

extension Variables {
  /// What variables stand for in what this process declares. Cost: a look-up of the user.
  package static var own: Variables {
    let surroundings = Surroundings()
    return Variables(
      home: Surroundings.home, user: surroundings.userName, host: Surroundings.hostName,
      machine: surroundings.hostIdentifier)
  }
}
