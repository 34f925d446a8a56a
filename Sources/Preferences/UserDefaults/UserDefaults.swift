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
///
/// Use it in the place of Foundation's with `import class Preferences.UserDefaults`. The conversions of its
/// getters, beside Foundation's, are in <doc:ComingFromUserDefaults>.
///
/// Source: NSUserDefaults.h and Apple's article "UserDefaults".
public final class UserDefaults: Sendable {
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
  public convenience init() { self.init(domain: Session.ownDomain, session: .shared) }

  /// Preferences of another domain, e.g. one that several programs share.
  ///
  /// - Parameter suiteName: the domain; nil: the program's own. The program's own identifier and the global
  ///   domain's name are errors, as on Apple's systems: the result is nil.
  public convenience init?(suiteName: String?) {
    guard let suiteName else {
      self.init()
      return
    }
    let domain = DomainName(suiteName)
    guard domain != .global, domain != Session.ownDomain else { return nil }
    self.init(domain: domain, session: .shared)
  }

  /// Preferences that are in memory, empty at first, by the rules of the others: for tests. Two of them have
  /// nothing in common. No process is started and no file touched.
  public static func inMemory() -> UserDefaults {
    UserDefaults(domain: Session.ownDomain, session: Session(places: MemoryPlaces()))
  }

  /// Synchronizes, and makes ``standard`` anew: without suites, with the arguments of the command line.
  public class func resetStandardUserDefaults() {
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
  public func synchronize() -> Bool {
    do throws(EngineError) {
      try session.engine.synchronize()
      return true
    } catch {
      Session.note(error)
      return false
    }
  }

  /// The value that the search list gives. A list that cannot be read is logged and gives nil.
  func value(_ name: String) -> Value? {
    do throws(EngineError) {
      return try reader.value(Key(name))
    } catch {
      Session.note(error)
      return nil
    }
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
