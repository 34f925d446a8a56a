import Testing

@testable import PreferenceTree

@Suite("Names of scratch files") struct ScratchNameTests {
  private static let keys = ["K", "Key1", "Show"]

  private func isScratch(_ name: String, _ making: ScratchName.Making) -> Bool {
    ScratchName.isScratch(name, making, isKey: Self.keys.contains)
  }

  private static let plain = ScratchName.Making.file(exclusively: false, readsToo: false)

  @Test(
    "a name that a tool makes beside the key K is scratch",
    arguments: [
      ".K.swp", "4913", "tmp.x", "#K#", "K~", "K.swx~", "K.bak", "K.orig", "K.rej", "K.augnew",
      "K.augnew.a1B2c3", "K.gawk.x9Yz1a", "K.o3a4b5c", "K.r3a4b5c", "Kx1y2z3", "Ka1b2c3d4",
      "K.a1b2c3d4.tmp", "K20261121-4711-1abcde", "K.4711", "K4711.tmp", "K.~1~", "DEADJOE",
      "Key1x9y8z7", "K.save", "K.save.1", "K.save.12", "ed.hup",
    ])
  func tools(_ name: String) { #expect(isScratch(name, Self.plain)) }

  @Test(
    "a name that only resembles a tool's is a key's",
    arguments: [
      "Key1Password", "Window.old", "sedatives", "tmpfiles", "K1", "KeyboardLayout", "K-2",
      "KSize10",
      "Show.newer", "ShowAll", "Kaaaaaa", "Other.bak", "Cubism", "Key1.Shade", "Other.save",
      "K.save.x", "shed.hup",
    ])
  func keys(_ name: String) { #expect(!isScratch(name, Self.plain)) }

  @Test("the way a file is made decides too whether its name is scratch")
  func making() {
    #expect(isScratch("anything", .file(exclusively: true, readsToo: true)))
    #expect(!isScratch("anything", .file(exclusively: true, readsToo: false)))
    #expect(isScratch("Other.tmp", .file(exclusively: true, readsToo: false)))
    #expect(isScratch("CuA1b2c3", .link))
    #expect(!isScratch("CuA1b2c3", Self.plain))
    #expect(isScratch("x.lock", .directory))
    #expect(!isScratch("folder", .directory))
    #expect(isScratch("K.old", .rename))
    #expect(!isScratch("Other.old", .rename))
  }
}
