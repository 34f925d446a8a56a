import Foundation
internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import Synchronization

/// The preferences of a program: `NSUserDefaults` for Linux, over the store that prefsfs shows as files.
///
/// A value is looked up through the search list: what an administrator forces, arguments of the program
/// (`-Key value`), the lists of the domain for this host and of the user, suites, the global domain, the
/// machine's lists, registered defaults. Values are immutable. A setter changes the user's list (the host's,
/// if the key stands there).
///
/// - A read of what has not changed makes no system call; it costs some 40 ns, and the conversion. It is no
///   older than what this process has set, and what a file's write(2), `defaults` or ``synchronize()`` had
///   answered, in any process of the user, when it began.
/// - A setter does not wait: when it returns, the change is with the owner of the store, who carries it out
///   though this program ends or is killed, and is what the next read here gives. Where there is no owner, or he
///   takes nothing, it waits, 5 s at most, as the first use does. ``synchronize()`` waits for the disk and for
///   every process and mount.
/// - What is refused (a key that an administrator forces, an object that is no property list, more than 48 MiB)
///   is logged to standard error, with domain, key and reason, perhaps after the setter has returned, and
///   changes nothing.
/// - Any thread may call anything.
/// - A subclass may override what it likes, as with Foundation's. In a subclass the typed getters and setters go
///   through ``object(forKey:)`` and ``set(_:forKey:)-(Any?,_)``, so that a stand-in for tests has two methods to
///   write. Two objects are equal if they are the same one.
///
/// Use it in the place of Foundation's with `import class Preferences.UserDefaults`. The conversions of its
/// getters, beside Foundation's, are in <doc:ComingFromUserDefaults>.
///
/// Source: NSUserDefaults.h and Apple's article "UserDefaults".
open class UserDefaults: @unchecked Sendable {
  // Open, so that the compiler cannot check subclasses; what this class has is immutable and Sendable, and
  // a subclass answers for what it adds.
  let domain: DomainName
  let session: Session
  let reader: DomainReader

  init(domain: DomainName, session: Session) {
    (self.domain, self.session) = (domain, session)
    reader = session.engine.reader(of: domain)
  }

  private static let present = Mutex(UserDefaults())

  /// The preferences of the program: those of the domain that is named as the program, or as its bundle.
  public static var standard: UserDefaults { present.withLock { $0 } }

  /// Preferences of the program's domain, as ``standard``.
  public init() {
    (domain, session) = (Session.ownDomain, .shared)
    reader = session.engine.reader(of: domain)
  }

  /// Preferences of another domain, e.g. one that several programs share.
  ///
  /// - Parameter suiteName: the domain; nil: the program's own. The program's own identifier and the global
  ///   domain's name are errors, as on Apple's systems, and so is what can be no domain's name, a path for
  ///   instance: the result is nil.
  public init?(suiteName: String?) {
    let name = suiteName.map { DomainName($0) }
    if let name, name == .global || name == Session.ownDomain || !name.canNameList { return nil }
    (domain, session) = (name ?? Session.ownDomain, .shared)
    reader = session.engine.reader(of: domain)
  }

  /// Preferences that are in memory, empty at first, by the rules of the others: for tests. Two of them have
  /// nothing in common. No process is started and no file touched.
  public static func inMemory() -> UserDefaults {
    UserDefaults(domain: Session.ownDomain, session: Session(places: MemoryPlaces()))
  }

  /// Synchronizes, and makes ``standard`` anew: without suites, with the arguments of the command line.
  open class func resetStandardUserDefaults() {
    standard.synchronize()
    let session = Session.shared
    session.changeSuites(of: Session.ownDomain) { $0 = [] }
    session.engine.argumentValues = ArgumentDomain.parse(Session.arguments)
    present.withLock { $0 = UserDefaults() }
  }

  /// Waits until every change that this process has made is on the disk, and every process and mount
  /// of the user sees it. This process does not need it to read what it has set.
  /// - Returns: false where that failed; the log says why. Whether a set was refused it does not say.
  @discardableResult
  open func synchronize() -> Bool {
    do throws(EngineError) {
      try session.engine.synchronize()
      return true
    } catch {
      Session.note(error)
      return false
    }
  }

  // MARK: - Reading

  /// The value as String, Int (UInt64 above Int.max), Double, Bool, Date, Data, [Any] or [String: Any]; nil
  /// where there is none.
  open func object(forKey defaultName: String) -> Any? {
    storedValue(defaultName).map(Objects.object)
  }

  /// A string, or a number or boolean as text; else nil.
  open func string(forKey defaultName: String) -> String? {
    value(defaultName).flatMap(Conversions.string)
  }

  /// An array; else nil.
  open func array(forKey defaultName: String) -> [Any]? { object(forKey: defaultName) as? [Any] }

  /// An array whose elements are all strings; else nil.
  open func stringArray(forKey defaultName: String) -> [String]? {
    value(defaultName).flatMap(Conversions.strings)
  }

  /// A dictionary; else nil.
  open func dictionary(forKey defaultName: String) -> [String: Any]? {
    object(forKey: defaultName) as? [String: Any]
  }

  /// Data; else nil.
  open func data(forKey defaultName: String) -> Data? {
    value(defaultName).flatMap(Conversions.data)
  }

  /// A number, a boolean as 1 or 0, the number that a string begins with; else 0.
  open func integer(forKey defaultName: String) -> Int {
    value(defaultName).map(Conversions.integer) ?? 0
  }

  /// As ``double(forKey:)``, to the nearest number of single precision.
  open func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  /// A number, a boolean as 1 or 0, the number that a string begins with; else 0.
  open func double(forKey defaultName: String) -> Double {
    value(defaultName).map(Conversions.double) ?? 0
  }

  /// A boolean, whether a number is not 0, whether a string is YES, true, 1 or 1.0; else false.
  open func bool(forKey defaultName: String) -> Bool {
    value(defaultName).map(Conversions.boolean) ?? false
  }

  /// A string as a file's path, in which `~` is the home directory, or an archived URL; else nil.
  open func url(forKey defaultName: String) -> URL? {
    value(defaultName).flatMap(Conversions.url)
  }

  /// Every key of the search list with its value. Cost: O(keys).
  open func dictionaryRepresentation() -> [String: Any] { Objects.dictionary(effectiveValues()) }

  /// Whether an administrator forces the key: it cannot be changed.
  open func objectIsForced(forKey key: String) -> Bool { isForced(key, in: domain) }

  /// Whether an administrator forces the key of a domain.
  open func objectIsForced(forKey key: String, inDomain domain: String) -> Bool {
    isForced(key, in: DomainName(domain))
  }

  // MARK: - Setting

  /// Sets a key to a String, number, Bool, Date, Data, array or dictionary of these, or a URL; nil removes
  /// it. Any other object is refused and logged.
  open func set(_ value: Any?, forKey defaultName: String) {
    switch value {
    case nil: removeObject(forKey: defaultName)
    case let object?:
      guard let value = Objects.value(object) else {
        return Session.note(
          "\(domain) \(defaultName): a \(type(of: object)) is no property list; it was not set")
      }
      store(value, defaultName)
    }
  }

  /// Sets a key to an integer.
  open func set(_ value: Int, forKey defaultName: String) {
    set(.integer(WideInteger(Int64(value))), defaultName)
  }

  /// Sets a key to a real of single precision, which it stays.
  open func set(_ value: Float, forKey defaultName: String) {
    set(.single(value), defaultName)
  }

  /// Sets a key to a real.
  open func set(_ value: Double, forKey defaultName: String) { set(.real(value), defaultName) }

  /// Sets a key to a boolean.
  open func set(_ value: Bool, forKey defaultName: String) { set(.boolean(value), defaultName) }

  /// Sets a key to a URL: a file's as its path, with `~` for the home directory, any other as an archive;
  /// nil removes the key.
  open func set(_ url: URL?, forKey defaultName: String) {
    guard let url else { return removeObject(forKey: defaultName) }
    set(ArchivedURL.value(url), defaultName)
  }

  /// Removes the key from the user's list (the host's, if it stands there). Another place may still have it:
  /// then its value is read.
  open func removeObject(forKey defaultName: String) { change([Key(defaultName): nil]) }

  /// Sets several keys in one message and as one transaction: all of them or, where one is refused, none.
  open func setValuesForKeys(_ keyedValues: [String: Any]) {
    var values: [Key: Value?] = [:]
    for (name, object) in keyedValues {
      guard let value = Objects.value(object) else {
        return Session.note(
          "\(domain) \(name): a \(type(of: object)) is no property list; nothing was set")
      }
      values[Key(name)] = value
    }
    change(values)
  }

  // MARK: - Registration and suites

  /// Adds defaults: what no other place of any search list of this process has. Of a key that is registered
  /// twice the last value counts. They are gone with the process. URLs become what ``set(_:forKey:)`` makes of
  /// them; an object that is no property list is left out, and logged.
  open func register(defaults registrationDictionary: [String: Any]) {
    let (values, others) = Objects.valuesAndOthers(registrationDictionary)
    for name in others { Session.note("\(name): no property list; it was not registered") }
    session.engine.register(values, for: .global)
    noteChange()
  }

  /// Puts a domain into the search list, behind the program's own and before the global one; the last that
  /// was added comes first.
  open func addSuite(named suiteName: String) {
    let suite = DomainName(suiteName)
    session.changeSuites(of: domain) { suites in
      suites.removeAll { $0 == suite }
      suites.append(suite)
    }
  }

  /// Takes a domain out of the search list.
  open func removeSuite(named suiteName: String) {
    let suite = DomainName(suiteName)
    session.changeSuites(of: domain) { suites in suites.removeAll { $0 == suite } }
  }

  // MARK: - Volatile domains

  /// The names of the volatile domains: arguments, registered defaults, and those that were set.
  open var volatileDomainNames: [String] {
    [Self.argumentDomain, Self.registrationDomain] + session.volatile.withLock { $0.keys.sorted() }
  }

  /// The keys of a volatile domain; none where there is no such domain.
  open func volatileDomain(forName domainName: String) -> [String: Any] {
    switch domainName {
    case Self.argumentDomain: Objects.dictionary(session.engine.argumentValues)
    case Self.registrationDomain: Objects.dictionary(session.engine.registeredValues(for: .global))
    default: Objects.dictionary(session.volatile.withLock { $0[domainName] ?? [:] })
    }
  }

  /// Gives a volatile domain these keys and no others. Those of arguments and of registered defaults are in
  /// every search list; others are in none, as on Apple's systems.
  open func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
    guard let values = Objects.values(domain) else {
      return Session.note("\(domainName): an object is no property list; nothing was set")
    }
    switch domainName {
    case Self.argumentDomain: session.engine.argumentValues = values
    case Self.registrationDomain: session.engine.setRegisteredValues(values, for: .global)
    default: session.volatile.withLock { $0[domainName] = values }
    }
    noteChange()
  }

  /// Removes a volatile domain; the arguments and the registered defaults are empty then.
  open func removeVolatileDomain(forName domainName: String) {
    if Self.isVolatile(domainName) { return setVolatileDomain([:], forName: domainName) }
    session.volatile.withLock { $0[domainName] = nil }
  }

  // MARK: - Persistent domains

  /// The keys of a domain in the user's list; nil where there is none. Cost: O(keys).
  open func persistentDomain(forName domainName: String) -> [String: Any]? {
    let location = Location(.user, DomainName(domainName))
    let values: ValueDictionary = reading([:]) { () throws(EngineError) in
      var values: ValueDictionary = [:]
      for key in try session.engine.keys(at: location) {
        values[key] = try session.engine.find(key, at: location)?.value
      }
      return values
    }
    return values.isEmpty ? nil : Objects.dictionary(values)
  }

  /// Gives a domain in the user's list these keys and no others, as one transaction. It waits for the
  /// answer, 5 s at most; what fails is logged, and nothing is changed.
  /// The names of volatile domains are refused.
  open func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    guard let values = Objects.values(domain) else {
      return Session.note("\(domainName): an object is no property list; nothing was set")
    }
    let location = Location(.user, DomainName(domainName))
    change(domainName, .replace(location, values), values.keys)
  }

  /// Removes a domain from the user's list. It waits for the answer.
  open func removePersistentDomain(forName domainName: String) {
    let location = Location(.user, DomainName(domainName))
    change(domainName, .edit(location, .removeDomain), [])
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
  /// `UserDefaults` as the object, also where the change is refused later. Changes of other processes do not
  /// post it: observe keys to hear of those.
  public static let didChangeNotification = Notification.Name("NSUserDefaultsDidChangeNotification")

  func noteChange() {
    NotificationCenter.default.post(name: Self.didChangeNotification, object: self)
  }
}
