import Foundation
internal import PreferenceModel
internal import PropertyList
internal import SystemCalls

extension UserDefaults {
  /// Posted when all values of the cloud have come, after this machine was first connected to a
  /// cloud or to another account. Until then local values and registered defaults are read.
  ///
  /// The notifications of the cloud are posted on a thread of this library, with ``standard`` as
  /// the object. Source: NSUserDefaults.h.
  public static let completedInitialCloudSyncNotification = Notification.Name(
    "NSUbiquitousUserDefaultsCompletedInitialSyncNotification")
  /// Posted when this machine was connected to another account of the cloud. Its values replace
  /// those of the last one.
  public static let didChangeCloudAccountsNotification = Notification.Name(
    "NSUbiquitousUserDefaultsDidChangeAccountsNotification")
  /// Posted when this process has set a key of the cloud while this machine has no cloud. The value
  /// is kept, and sent when somebody logs in.
  public static let noCloudAccountNotification = Notification.Name(
    "NSUbiquitousUserDefaultsNoCloudAccountNotification")
  /// Posted when a setter of this process was refused because the value has more than 1 MB, or all
  /// values together more than 16 MiB, where the key is one of the cloud.
  public static let sizeLimitExceededNotification = Notification.Name(
    "NSUserDefaultsSizeLimitExceededNotification")
}

/// Posts the notifications of the cloud.
///
/// Threads: `hear` is called by observers' threads, and does not block. The first change of the
/// cloud starts a thread, which posts; without a cloud there is none.
final class CloudNotices: Sendable {
  private enum Event {
    /// All values of an account have come.
    case account(isFirst: Bool)
    /// This process has set a key.
    case ownChange
    case sizeLimit
  }

  private let places: any PersistentPlaces
  private let author: Author
  /// Posts one event after the other.
  private let poster = BlockingThreads(name: "prefs-cloud", most: 1, mostWaiting: .max)

  init(_ places: any PersistentPlaces, _ author: Author) {
    (self.places, self.author) = (places, author)
  }

  /// Begins to listen.
  func begin() {
    places.observe(except: nil) { [weak self] notice in self?.hear(notice) }
  }

  private func hear(_ notice: Notice) {
    for item in notice.changeset.items
    where item.location == CloudFacts.notes && item.edit.key == CloudFacts.account {
      add(.account(isFirst: !item.hadKey))
    }
    guard notice.author == author else { return }
    if notice.changeset.items.contains(where: { $0.location.place == .cloud }) { add(.ownChange) }
  }

  /// Notes a refusal of a setter.
  func note(_ error: EngineError) {
    if [.system(.fileTooLarge), .system(.overQuota)].contains(error.reason) { add(.sizeLimit) }
  }

  private func add(_ event: Event) { _ = poster.run { [weak self] in self?.handle(event) } }

  private func handle(_ event: Event) {
    switch event {
    case .account(let isFirst):
      if !isFirst { post(UserDefaults.didChangeCloudAccountsNotification) }
      post(UserDefaults.completedInitialCloudSyncNotification)
    case .ownChange:
      let isConfigured = (try? CloudFacts.isConfigured(places)) ?? true
      if !isConfigured { post(UserDefaults.noCloudAccountNotification) }
    case .sizeLimit: post(UserDefaults.sizeLimitExceededNotification)
    }
  }

  private func post(_ name: Notification.Name) {
    NotificationCenter.default.post(name: name, object: UserDefaults.standard)
  }
}
