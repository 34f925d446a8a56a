import Foundation
internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import Synchronization

/// The preferences of a program: `NSUserDefaults` for Linux, over the store that prefsfs shows as
/// files.
///
/// A value is looked up through the search list: values that an administrator forces, arguments of
/// the program (`-Key value`), the lists of the domain in the cloud, for this host and of the user,
/// suites, the global domain, the lists of the machine and of packages, languages, registered
/// defaults, defaults of schemas. Values are immutable. A setter changes a key of the cloud there,
/// and any other key in the user's list (in the host's, if that has the key).
///
/// - A read of a value that has not changed makes no system call; it costs a look-up in memory, and
///   the conversion. It sees everything that this process has set, and every change whose write(2)
///   on a file, `defaults` command or ``synchronize()`` had returned, in any process of the user,
///   when the read began.
/// - A setter does not wait for the change to be carried out. When it returns, the change is with
///   the owner of the store, which carries it out even if this program ends or is killed, and the
///   next read here gives the new value. If there is no owner, or the owner receives nothing, the
///   setter waits, 5 s at most, and so does the first use. ``synchronize()`` waits for the disk and
///   for every process and mount.
/// - A change that is refused (a key that an administrator forces, an object that is not a property
///   list, more than 48 MiB) changes nothing. It is logged to standard error, with domain, key and
///   reason, perhaps after the setter has returned.
/// - Any thread may call any member.
/// - A subclass may override any open member, as with Foundation's class. In a subclass the typed
///   getters and setters go through ``object(forKey:)`` and ``set(_:forKey:)-(Any?,_)``, so that a
///   stand-in for tests needs to override these two only. Two objects are equal if they are the
///   same object.
///
/// To use it instead of Foundation's class, write `import class Preferences.UserDefaults`.
/// <doc:ComingFromUserDefaults> compares the conversions of its getters with Foundation's.
///
/// Source: NSUserDefaults.h and Apple's article "UserDefaults".
open class UserDefaults: @unchecked Sendable {
  // The class is open, so the compiler cannot check subclasses. What this class has is immutable
  // and Sendable; a subclass answers for what it adds.
  let domain: DomainName
  let session: Session
  let reader: DomainReader

  init(domain: DomainName, session: Session) {
    (self.domain, self.session) = (domain, session)
    reader = session.engine.reader(of: domain)
  }

  private static let present = Mutex(UserDefaults())

  /// The preferences of the program: those of the domain that is named after its bundle's
  /// identifier, or else after the program.
  public static var standard: UserDefaults { present.withLock { $0 } }

  /// Creates an object for the program's domain, as ``standard``.
  public init() {
    (domain, session) = (Session.ownDomain, .shared)
    reader = session.engine.reader(of: domain)
  }

  /// Creates an object for another domain, e.g. one that several programs share.
  ///
  /// - Parameter suiteName: the domain; nil means the program's own. The result is nil for the
  ///   program's own identifier, for the global domain's name and for the constants that
  ///   CFPreferences has for both, as on Apple's systems, and for a name that no list can have,
  ///   such as a path.
  public init?(suiteName: String?) {
    let constants = ["kCFPreferencesAnyApplication", "kCFPreferencesCurrentApplication"]
    if let suiteName, constants.contains(suiteName) { return nil }
    let name = suiteName.map { DomainName($0) }
    if let name, name == .global || name == Session.ownDomain || !name.canNameList { return nil }
    (domain, session) = (name ?? Session.ownDomain, .shared)
    reader = session.engine.reader(of: domain)
  }

  /// Creates an object for the program's domain, as ``init()`` does.
  ///
  /// - Parameter user: the name of the user who runs this process. The result is nil for others:
  ///   each user's preferences have an owner, which serves nobody else. Apple has deprecated it.
  public convenience init?(user username: String) {
    guard username == NSUserName() else { return nil }
    self.init()
  }

  /// Returns preferences that are kept in memory, empty at first, and otherwise behave like any
  /// others: for tests. Two such objects share nothing. No process is started and no file is
  /// touched.
  public static func inMemory() -> UserDefaults {
    UserDefaults(domain: Session.ownDomain, session: Session(places: MemoryPlaces()))
  }

  /// Has every object of this process keep its preferences in memory, empty at first: for tests of
  /// code that uses ``standard``, suites, or a subclass. No process is started and no file is
  /// touched. Call it before anything uses a preference; the environment variable
  /// `PREFSFS_IN_MEMORY=1` does the same for a whole run of tests.
  /// - Returns: false if preferences were used before, and are those of the user.
  @discardableResult
  public static func keepInMemory() -> Bool { Session.keepInMemory() }

  /// Synchronizes, and replaces ``standard`` with an object without suites and with the arguments
  /// of the command line.
  open class func resetStandardUserDefaults() {
    standard.synchronize()
    let session = Session.shared
    session.changeSuites(of: Session.ownDomain) { $0 = [] }
    session.engine.argumentValues = ArgumentDomain.parse(Session.arguments)
    present.withLock { $0 = UserDefaults() }
  }

  /// Waits until every change that this process has made is on the disk, and every process and
  /// mount of the user sees it. This process need not call it to read what it has set.
  /// - Returns: false if that failed; the log says why. A refused setter does not make it false,
  ///   but it is false where there is no owner of the store, so that every setter is refused.
  @discardableResult
  open func synchronize() -> Bool {
    do throws(EngineError) {
      try session.durability.synchronize()
      return true
    } catch {
      Session.note(error)
      return false
    }
  }

  // MARK: - Reading

  /// Returns the value as String, Int (UInt64 above Int.max), Double, Bool, Date, Data, [Any] or
  /// [String: Any]; nil if there is no value.
  open func object(forKey defaultName: String) -> Any? {
    storedValue(defaultName).map(Objects.object)
  }

  /// Returns a string, or a number or boolean as text; else nil.
  open func string(forKey defaultName: String) -> String? {
    value(defaultName).flatMap(Conversions.string)
  }

  /// Returns an array; else nil.
  open func array(forKey defaultName: String) -> [Any]? { object(forKey: defaultName) as? [Any] }

  /// Returns an array whose elements are all strings; else nil.
  open func stringArray(forKey defaultName: String) -> [String]? {
    value(defaultName).flatMap(Conversions.strings)
  }

  /// Returns a dictionary; else nil.
  open func dictionary(forKey defaultName: String) -> [String: Any]? {
    object(forKey: defaultName) as? [String: Any]
  }

  /// Returns data; else nil.
  open func data(forKey defaultName: String) -> Data? {
    value(defaultName).flatMap(Conversions.data)
  }

  /// Returns a number as an integer, a boolean as 1 or 0, the integer that a string begins with;
  /// else 0.
  open func integer(forKey defaultName: String) -> Int {
    value(defaultName).map(Conversions.integer) ?? 0
  }

  /// Returns the result of ``double(forKey:)``, rounded to single precision.
  open func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  /// Returns a number, a boolean as 1 or 0, the number that a string begins with; else 0.
  open func double(forKey defaultName: String) -> Double {
    value(defaultName).map(Conversions.double) ?? 0
  }

  /// Returns a boolean; for a number, whether it is not 0; for a string, whether it is YES, true, 1
  /// or 1.0; else false.
  open func bool(forKey defaultName: String) -> Bool {
    value(defaultName).map(Conversions.boolean) ?? false
  }

  /// Returns the URL of a string that is a file's path, in which `~` is the home directory, or of
  /// an archived URL; else nil.
  open func url(forKey defaultName: String) -> URL? {
    value(defaultName).flatMap(Conversions.url)
  }

  /// Returns every key of the search list with its value. Cost: O(keys).
  open func dictionaryRepresentation() -> [String: Any] { Objects.dictionary(effectiveValues()) }

  /// Returns whether an administrator forces the key, so that it cannot be changed.
  open func objectIsForced(forKey key: String) -> Bool { isForced(key, in: domain) }

  /// Returns whether an administrator forces the key of a domain.
  open func objectIsForced(forKey key: String, inDomain domain: String) -> Bool {
    isForced(key, in: DomainName(domain))
  }

  // MARK: - Setting

  /// Sets a key to a String, number, Bool, Date, Data, array or dictionary of these, or a URL; nil
  /// removes the key. Any other object is refused and logged.
  open func set(_ value: Any?, forKey defaultName: String) {
    switch value {
    case nil: removeObject(forKey: defaultName)
    case let object?:
      guard let value = Objects.value(object) else {
        return Session.note(
          "\(domain) \(defaultName): a \(type(of: object)) is not a property list; it was not set")
      }
      store(value, defaultName)
    }
  }

  /// Sets a key to an integer.
  open func set(_ value: Int, forKey defaultName: String) {
    set(.integer(WideInteger(Int64(value))), defaultName)
  }

  /// Sets a key to a real of single precision. The stored value keeps that precision.
  open func set(_ value: Float, forKey defaultName: String) {
    set(.single(value), defaultName)
  }

  /// Sets a key to a real.
  open func set(_ value: Double, forKey defaultName: String) { set(.real(value), defaultName) }

  /// Sets a key to a boolean.
  open func set(_ value: Bool, forKey defaultName: String) { set(.boolean(value), defaultName) }

  /// Sets a key to a URL: a file's URL as its path, with `~` for the home directory, any other as
  /// an archive; nil removes the key.
  open func set(_ url: URL?, forKey defaultName: String) {
    guard let url else { return removeObject(forKey: defaultName) }
    set(ArchivedURL.value(url), defaultName)
  }

  /// Returns what ``object(forKey:)`` does, for programs that use key-value coding.
  open func value(forKey key: String) -> Any? { object(forKey: key) }

  /// Does what ``set(_:forKey:)-(Any?,_)`` does, for programs that use key-value coding.
  open func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }

  /// Removes the key from the first of the cloud, the host's list and the user's list that has it.
  /// If a different place has the key too, its value is read from then on.
  open func removeObject(forKey defaultName: String) { change([Key(defaultName): nil]) }

  /// Sets several keys in one message and as one transaction: if one is refused, none is set.
  open func setValuesForKeys(_ keyedValues: [String: Any]) {
    let (values, others) = Objects.valuesAndOthers(keyedValues)
    if let name = others.first, let object = keyedValues[name] {
      return Session.note(
        "\(domain) \(name): a \(type(of: object)) is not a property list; no key was set")
    }
    change(Dictionary(values.map { ($0.key, Optional($0.value)) }) { $1 })
  }

  // MARK: - Registration and suites

  /// Adds defaults, which are read if no other place of a search list has the key, for every domain
  /// and until the process ends. If a key is registered twice, the last value counts. URLs become
  /// what ``set(_:forKey:)`` makes of them; an object that is not a property list is left out and
  /// logged.
  open func register(defaults registrationDictionary: [String: Any]) {
    let (values, others) = Objects.valuesAndOthers(registrationDictionary)
    for name in others {
      Session.note("\(name): the value is not a property list; it was not registered")
    }
    session.engine.register(values, for: .global)
    noteChange()
  }

  /// Adds a domain to the search list, behind the program's own and before the global one. The
  /// suite that was added last comes first. A name that no list can have, such as a path, is
  /// ignored, and the log says so.
  open func addSuite(named suiteName: String) {
    let suite = DomainName(suiteName)
    guard suite.canNameList else {
      return Session.note("\(suiteName): no domain can have that name; the suite was not added")
    }
    session.changeSuites(of: domain) { suites in
      suites.removeAll { $0 == suite }
      suites.append(suite)
    }
  }

  /// Removes a domain from the search list.
  open func removeSuite(named suiteName: String) {
    let suite = DomainName(suiteName)
    session.changeSuites(of: domain) { suites in suites.removeAll { $0 == suite } }
  }

  // MARK: - Volatile domains

  /// The names of the volatile domains: the arguments, the languages of `AppleLanguages` that there
  /// is data of, the registered defaults, and those that ``setVolatileDomain(_:forName:)`` has
  /// made.
  open var volatileDomainNames: [String] {
    let languages = languages
    let others = session.volatile.withLock { $0.keys.sorted() }
    return [Self.argumentDomain] + languages + [Self.registrationDomain]
      + others.filter { !languages.contains($0) }
  }

  /// Returns the keys of a volatile domain; an empty dictionary if there is no such domain.
  open func volatileDomain(forName domainName: String) -> [String: Any] {
    switch domainName {
    case Self.argumentDomain: Objects.dictionary(session.engine.argumentValues)
    case Self.registrationDomain: Objects.dictionary(session.engine.registeredValues(for: .global))
    default:
      Objects.dictionary(
        session.volatile.withLock { $0[domainName] }
          ?? (languages.contains(domainName)
            ? session.engine.languageValues(of: domainName) : [:]))
    }
  }

  /// Replaces the keys of a volatile domain with these. The arguments and the registered defaults
  /// are in every search list; other volatile domains are in none, as on Apple's systems.
  open func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
    guard let values = Objects.values(domain) else {
      return Session.note("\(domainName): an object is not a property list; nothing was set")
    }
    switch domainName {
    case Self.argumentDomain: session.engine.argumentValues = values
    case Self.registrationDomain: session.engine.setRegisteredValues(values, for: .global)
    default: session.volatile.withLock { $0[domainName] = values }
    }
    noteChange()
  }

  /// Removes a volatile domain. The arguments and the registered defaults stay, without keys.
  open func removeVolatileDomain(forName domainName: String) {
    if Self.isVolatile(domainName) { return setVolatileDomain([:], forName: domainName) }
    session.volatile.withLock { $0[domainName] = nil }
  }

  // MARK: - Persistent domains

  /// The names of the domains in the user's lists, in order. Cost: O(domains). Apple has deprecated
  /// it.
  open func persistentDomainNames() -> [String] {
    reading([]) { () throws(EngineError) in
      try session.engine.places.domains(in: .user).map(\.string).sorted()
    }
  }

  /// Returns the keys of a domain in the user's list; nil if it has none. Cost: O(keys).
  open func persistentDomain(forName domainName: String) -> [String: Any]? {
    let location = Location(.user, DomainName(domainName))
    let values: ValueDictionary = reading([:]) { () throws(EngineError) in
      try session.engine.places.values(at: location)
    }
    return values.isEmpty ? nil : Objects.dictionary(values)
  }

  /// Replaces the keys of a domain in the user's list with these, as one transaction. It waits for
  /// the answer, 5 s at most; a failure is logged, and changes nothing. The names of volatile
  /// domains are refused.
  open func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    guard let values = Objects.values(domain) else {
      return Session.note("\(domainName): an object is not a property list; nothing was set")
    }
    let location = Location(.user, DomainName(domainName))
    change(domainName, .replace(location, values))
  }

  /// Removes a domain from the user's list. It waits for the answer, 5 s at most; a failure is
  /// logged.
  open func removePersistentDomain(forName domainName: String) {
    let location = Location(.user, DomainName(domainName))
    change(domainName, .edit(location, .removeDomain))
  }
}

extension UserDefaults {
  /// The volatile domain of the command line's `-Key value` pairs.
  public static let argumentDomain = "NSArgumentDomain"
  /// The domain that every other one inherits from.
  public static let globalDomain = "NSGlobalDomain"
  /// The volatile domain of registered defaults.
  public static let registrationDomain = "NSRegistrationDomain"
  /// Posted after a setter, a removal or a registration of this process, on its thread, with the
  /// `UserDefaults` as the object, even if the change is refused later. Changes by other processes
  /// do not post it: use ``observe(_:_:)-(PreferenceKey<Value>,_)`` for those.
  public static let didChangeNotification = Notification.Name("NSUserDefaultsDidChangeNotification")

  func noteChange() {
    NotificationCenter.default.post(name: Self.didChangeNotification, object: self)
  }
}
