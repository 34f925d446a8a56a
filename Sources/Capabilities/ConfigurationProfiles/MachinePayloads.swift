/// The types of payloads that configure a machine, an account or a service, and not a domain of
/// preferences (from the files of apple/device-management, mdm/profiles). A profile that has one is
/// not refused for it; the payload has no effect.
enum MachinePayloads {
  /// Whether payloads of the type are left alone.
  static func contains(_ type: String) -> Bool {
    types.contains(type) || prefixes.contains { type.hasPrefix($0) }
  }

  private static let prefixes = [
    "com.apple.vpn.", "com.apple.security.acme", "com.apple.security.certificate",
    "com.apple.security.pkcs", "com.apple.security.pem", "com.apple.security.root",
    "com.apple.security.scep", "com.apple.security.identitypreference",
    "com.apple.security.smartcard", "com.apple.wifi.",
  ]

  private static let types: Set<String> = [
    "com.apple.ADCertificate.managed", "com.apple.DirectoryService.managed",
    "com.apple.NSExtension", "com.apple.TCC.configuration-profile-policy", "com.apple.airplay",
    "com.apple.airplay.security", "com.apple.airprint", "com.apple.apn.managed",
    "com.apple.app.lock", "com.apple.associated-domains", "com.apple.caldav.account",
    "com.apple.carddav.account", "com.apple.cellular", "com.apple.cellularprivatenetwork.managed",
    "com.apple.configurationprofile.identification", "com.apple.declarations",
    "com.apple.dnsProxy.managed", "com.apple.dnsSettings.managed",
    "com.apple.domains", "com.apple.eas.account", "com.apple.education", "com.apple.ews.account",
    "com.apple.extensiblesso", "com.apple.firstactiveethernet.managed",
    "com.apple.firstethernet.managed", "com.apple.font", "com.apple.globalethernet.managed",
    "com.apple.google-oauth", "com.apple.homescreenlayout", "com.apple.jabber.account",
    "com.apple.ldap.account", "com.apple.mail.managed", "com.apple.mdm",
    "com.apple.networkusagerules", "com.apple.notificationsettings", "com.apple.osxserver.account",
    "com.apple.profileRemovalPassword", "com.apple.proxy.http.global", "com.apple.relay.managed",
    "com.apple.secondactiveethernet.managed", "com.apple.secondethernet.managed",
    "com.apple.security.FDERecoveryKeyEscrow", "com.apple.servicemanagement",
    "com.apple.shareddeviceconfiguration", "com.apple.sso", "com.apple.subscribedcalendar.account",
    "com.apple.syspolicy.kernel-extension-policy", "com.apple.system-extension-policy",
    "com.apple.thirdactiveethernet.managed", "com.apple.thirdethernet.managed",
    "com.apple.webClip.managed", "com.apple.webcontent-filter", "com.apple.xsan",
    "com.apple.xsan.preferences",
  ]
}
