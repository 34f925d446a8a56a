// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

/// Links the Swift runtime statically: such a program needs shared libraries at run time, but no
/// Swift toolchain.
let carriesRuntime: [LinkerSetting] = [
  .unsafeFlags(["-static-stdlib", "-Xlinker", "-znow"], .when(configuration: .release))
]

/// For programs that use no shared library except the C library and libfuse, of which libfuse3-dev
/// has an archive. Linked statically, such a program starts in a quarter of the time, and one
/// package serves releases of Debian with libfuse3.so.3 and with libfuse3.so.4. dlopen(3) stands in
/// the Swift runtime, though nothing here calls it; other linkers warn of it at each build, lld does
/// not.
let staticFlags = ["-static-executable", "-use-ld=lld", "-Xlinker", "-s"]

/// A program gets other addresses at each start, and has read-only tables of them. `scripts/build`
/// asks for that: it also keeps the local rpath out, which no static PIE may have.
let positionIndependentFlags = [
  "-Xclang-linker", "-static-pie", "-Xlinker", "-znow", "-Xlinker", "-zpack-relative-relocs",
]
let standsAlone: [LinkerSetting] = [
  .unsafeFlags(
    staticFlags + (Context.environment["STATIC_PIE"] == "1" ? positionIndependentFlags : []),
    .when(configuration: .release))
]

/// For `defaults`, which scripts start for each value: at fixed addresses (see Figures.md).
let startsFast: [LinkerSetting] = [.unsafeFlags(staticFlags, .when(configuration: .release))]

/// What nearly every module imports.
let model: [Target.Dependency] = ["PreferenceModel", "PropertyList", "SystemCalls"]

/// The module in `Sources/PATH`, whose last component is its name.
func module(_ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(
    name: name(path), dependencies: dependencies, path: "Sources/" + path, swiftSettings: strict)
}

/// The headers of a C library: `Sources/Base/NAME`.
func header(_ name: String, pkgConfig: String? = nil, package: String? = nil) -> Target {
  .systemLibrary(
    name: name, path: "Sources/Base/" + name, pkgConfig: pkgConfig,
    providers: package.map { [.apt([$0])] })
}

/// The program whose main file is in `Sources/Commands/NAME`.
func program(
  _ name: String, _ dependencies: [Target.Dependency], _ linkerSettings: [LinkerSetting] = []
) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Sources/Commands/" + name,
    swiftSettings: strict, linkerSettings: linkerSettings)
}

/// A program that tests run, in `Tests/Programs/PATH`.
func helper(
  _ name: String, _ path: String, _ dependencies: [Target.Dependency], exclude: [String] = []
) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Tests/Programs/" + path, exclude: exclude,
    swiftSettings: strict)
}

/// The tests in `Tests/PATH`, whose last component is their name.
func tests(_ path: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(
    name: name(path), dependencies: dependencies, path: "Tests/" + path, exclude: exclude,
    swiftSettings: strict)
}

func name(_ path: String) -> String {
  String(path.split(separator: "/").last ?? "")
}

/// The targets in layers, lowest first. A target may depend only on targets of lower layers, and on
/// the C header modules that it names. `scripts/check` builds with
/// `--explicit-target-dependency-import-check error`, so that an import of a target that is not below
/// does not compile.
let package = Package(
  name: "prefsfs",
  products: [
    .executable(name: "prefsfs", targets: ["prefsfs"]),
    .executable(name: "prefsd", targets: ["prefsd"]),
    .executable(name: "defaults", targets: ["defaults"]),
    .executable(name: "plutil", targets: ["plutil"]),
    .executable(name: "prefs-cloud", targets: ["prefs-cloud"]),
    .library(name: "Preferences", targets: ["Preferences", "PropertyList"]),
  ],
  targets: [
    // 0: values, codecs, text of a value | descriptors, threads, wake-ups | C headers | man pages
    module("Base/PropertyList"),
    header("CLinux"),
    module("Base/SystemCalls", ["CLinux"]),
    header("CFUSE", pkgConfig: "fuse3", package: "libfuse3-dev"),
    module("Base/ManualPage"),
    // 1: domains, places, search list, changesets, the engine protocol
    module("Model/PreferenceModel", ["PropertyList", "SystemCalls"]),
    // 2: the values of a domain, as programs read them that do not know preferences
    module("Capabilities/EffectiveDocuments", ["PreferenceModel", "PropertyList"]),
    // 2: where a store is, and how its lists are read by threads that may wait
    module("Model/StoreAccess", model),
    // 2: what was changed, when and by whom
    module("Capabilities/PreferenceHistory", model),
    // 2: what the keys of a domain are
    header("CPCRE2", pkgConfig: "libpcre2-8", package: "libpcre2-dev"),
    module("Capabilities/PreferenceSchemas", ["CPCRE2"] + model),
    // 3: a schema as Swift, as JSON Schema and as a page
    module(
      "Capabilities/PreferenceSchemaForms",
      ["PreferenceSchemas", "PreferenceModel", "PropertyList"]),
    // 3: property list files, journal, durability
    module(
      "Store/PreferenceStore", ["PreferenceHistory", "PreferenceSchemas", "StoreAccess"] + model),
    // 3: reads the administrator's profiles
    header("CCrypto", pkgConfig: "libcrypto", package: "libssl-dev"),
    module("Capabilities/ConfigurationProfiles", ["StoreAccess", "CCrypto"] + model),
    // 3: what happens when values change: rules, their state, commands and files
    module("Capabilities/PreferenceEffects", ["EffectiveDocuments", "StoreAccess"] + model),
    // 3: keeps keys of a user the same on several machines
    module("Capabilities/PreferenceCloud", ["StoreAccess"] + model),
    // 4: speaks with etcd
    header("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    module("Capabilities/EtcdClient", ["PreferenceCloud", "PropertyList", "SystemCalls", "CCurl"]),
    // 4: a cloud in a directory that some other program synchronises
    module("Capabilities/DirectoryClient", ["PreferenceCloud", "PropertyList", "SystemCalls"]),
    // 3: values that are declared, and what was there before
    module("Capabilities/PreferenceDeclarations", ["PreferenceHistory"] + model),
    // 4: the search list over any persistent places
    module("Client/PreferenceSearch", ["PreferenceSchemas", "StoreAccess"] + model),
    // 5: what the control directory of a mount shows, and declarations over a search list
    module(
      "Mount/PreferenceControl",
      [
        "EffectiveDocuments", "PreferenceSearch", "PreferenceDeclarations", "PreferenceEffects",
        "PreferenceHistory",
        "PreferenceSchemaForms", "PreferenceSchemas", "StoreAccess",
      ] + model),
    // 3: frames and messages
    module("Client/PreferenceProtocol", ["StoreAccess"] + model),
    // 4: the owner's engine: intents, observers, writer
    module(
      "Owner/PreferenceEngine",
      [
        "PreferenceCloud", "PreferenceEffects", "PreferenceSchemas", "PreferenceStore",
        "StoreAccess",
      ] + model),
    // 5: the owner's side of the socket; 4: the client's
    module(
      "Owner/PreferenceServer",
      [
        "PreferenceCloud", "PreferenceDeclarations", "PreferenceEffects", "PreferenceEngine",
        "PreferenceProtocol", "PreferenceStore", "ConfigurationProfiles", "StoreAccess",
        "PreferenceModel", "SystemCalls",
      ]),
    module("Client/PreferenceClient", ["PreferenceProtocol", "StoreAccess"] + model),
    // 5: preferences as nodes, names and bytes
    module("Mount/PreferenceTree", model),
    // 6: gives libfuse's requests to the tree, and carries out the tree's effects with libfuse
    module("Mount/FUSEDriver", ["PreferenceTree", "StoreAccess", "CFUSE", "CLinux"] + model),
    // 5: UserDefaults for programs
    module(
      "Client/Preferences",
      ["PreferenceClient", "PreferenceHistory", "PreferenceSearch", "StoreAccess"] + model),
    // 5: the program that carries out rules
    module(
      "Capabilities/EffectServer",
      [
        "PreferenceEffects", "PreferenceClient", "PreferenceHistory", "PreferenceSearch",
        "StoreAccess",
      ] + model),
    // 1: grids of cells and the terminal that shows them
    module("Commands/TerminalScreen", ["SystemCalls", "CLinux"]),
    // 5: all keys of a store in a terminal
    module(
      "Commands/PreferenceBrowser",
      [
        "TerminalScreen", "PreferenceClient", "PreferenceDeclarations", "PreferenceHistory",
        "PreferenceSchemas", "PreferenceSearch", "StoreAccess", "CLinux",
      ] + model),
    // 6: the verbs of `defaults`
    module(
      "Commands/DefaultsCommand",
      [
        "EffectServer", "EffectiveDocuments", "PreferenceBrowser", "PreferenceClient",
        "PreferenceCloud", "PreferenceControl", "PreferenceDeclarations", "PreferenceEffects",
        "PreferenceHistory",
        "PreferenceSchemaForms", "PreferenceSchemas", "PreferenceSearch",
        "StoreAccess", "CLinux", "ManualPage",
      ] + model),
    // 5: carries changes between a store and the servers of its cloud
    module(
      "Capabilities/CloudCarrier",
      [
        "DirectoryClient", "EtcdClient", "PreferenceCloud", "PreferenceClient", "StoreAccess",
        "CCrypto",
      ] + model),
    program("prefs-cloud", ["CloudCarrier"], carriesRuntime),
    // 1: the verbs of `plutil`: property lists as files, without preferences
    module("Commands/PlutilCommand", ["ManualPage", "PropertyList", "SystemCalls"]),
    program("plutil", ["PlutilCommand"], standsAlone),
    // 7: compose, run, exit
    program(
      "prefsfs",
      [
        "FUSEDriver", "PreferenceTree", "PreferenceClient", "PreferenceControl", "PreferenceSearch",
        "StoreAccess", "ManualPage",
      ] + model, standsAlone),
    program("defaults", ["DefaultsCommand"], startsFast),
    program(
      "prefsd", ["PreferenceServer", "StoreAccess", "PreferenceModel", "SystemCalls"], standsAlone),
    program(
      "prefsfs-bench",
      [
        "Preferences", "PreferenceServer", "PreferenceClient", "PreferenceEngine",
        "PreferenceHistory", "PreferenceStore", "PreferenceSearch", "PreferenceProtocol",
        "StoreAccess", "CLinux",
      ] + model),
    // A client of a store, as a program for tests.
    helper(
      "prefs-probe", "Probe", ["PreferenceClient", "PreferenceSearch", "StoreAccess"] + model),
    // A program that uses the library, for tests.
    helper("prefs-sample", "Sample", ["Preferences"]),
    // Many hosts and a real etcd, for scripts/cloud-test.
    helper("cloud-simulation", "CloudSimulation", ["EtcdClient", "PreferenceCloud"] + model),
    // The example program of the README.
    helper("tab-editor", "Example", ["Preferences"], exclude: ["Schema"]),
    // A program whose keys are made from its schema.
    helper("tabs-example", "Example/Schema", ["Preferences"], exclude: ["org.example.tabs.plist"]),
    .target(
      name: "Support", dependencies: ["CLinux"], path: "Tests/Support", swiftSettings: strict),
    // Counts what Swift code allocates.
    .target(name: "CAllocations", path: "Tests/Programs/CAllocations"),
    // The functions that the fuzzers call; scripts/fuzz links them with libFuzzer.
    .target(
      name: "Fuzzing", dependencies: ["PreferenceStore", "PropertyList"],
      path: "Tests/Base/Fuzzing",
      exclude: ["Corpus"], swiftSettings: strict),
    tests("Base/FuzzingTests", ["Fuzzing"]),
    tests("Base/PropertyListTests", ["PropertyList", "Support"]),
    tests("Model/PreferenceModelTests", ["PreferenceModel", "PropertyList"]),
    tests(
      "Capabilities/EffectiveDocumentsTests",
      ["EffectiveDocuments", "PreferenceModel", "PropertyList", "Support"]),
    tests("Capabilities/PreferenceHistoryTests", ["PreferenceHistory", "Support"] + model),
    tests(
      "Capabilities/PreferenceSchemasTests", ["PreferenceSchemas", "PreferenceSchemaForms"] + model),
    tests(
      "Capabilities/PreferenceDeclarationsTests",
      ["PreferenceDeclarations", "PreferenceSearch", "PreferenceHistory", "CAllocations"] + model),
    tests(
      "Store/PreferenceStoreTests",
      ["PreferenceStore", "PreferenceHistory", "StoreAccess", "Support"] + model,
      exclude: ["Fixtures"]),
    tests(
      "Capabilities/ConfigurationProfilesTests",
      ["ConfigurationProfiles", "StoreAccess", "Support"] + model),
    tests(
      "Capabilities/PreferenceCloudTests", ["PreferenceCloud", "PreferenceModel", "PropertyList"]),
    tests(
      "Capabilities/DirectoryClientTests",
      ["DirectoryClient", "PreferenceCloud"] + model),
    tests(
      "Capabilities/CloudCarrierTests",
      [
        "CloudCarrier", "EtcdClient", "PreferenceCloud", "StoreAccess", "Support", "prefsfs",
        "prefsd", "prefs-cloud", "prefs-sample", "defaults",
      ] + model),
    tests(
      "Capabilities/PreferenceEffectsTests",
      ["PreferenceEffects", "PreferenceSearch", "StoreAccess", "Support"] + model),
    tests("Client/PreferenceSearchTests", ["PreferenceModel", "PreferenceSearch", "PropertyList"]),
    tests(
      "Owner/PreferenceEngineTests",
      [
        "PreferenceCloud", "PreferenceEngine", "PreferenceSearch", "PreferenceStore", "StoreAccess",
        "Support",
      ] + model),
    tests(
      "Client/PreferenceProtocolTests", ["PreferenceProtocol", "StoreAccess"] + model,
      exclude: ["Fixtures"]),
    tests(
      "Client/PreferenceClientTests",
      [
        "PreferenceClient", "PreferenceServer", "PreferenceSearch", "PreferenceProtocol",
        "StoreAccess", "Support",
      ] + model),
    tests(
      "Owner/PreferenceServerTests",
      [
        "PreferenceServer", "PreferenceClient", "PreferenceEngine", "PreferenceStore",
        "PreferenceProtocol", "PreferenceDeclarations", "StoreAccess", "Support",
      ] + model),
    tests(
      "Mount/PreferenceTreeTests", ["PreferenceTree", "PreferenceSearch", "CAllocations"] + model),
    tests(
      "Commands/DefaultsCommandTests",
      [
        "DefaultsCommand", "PreferenceHistory", "PreferenceSchemas", "Support", "defaults",
        "prefsd",
      ] + model),
    tests("Commands/TerminalScreenTests", ["TerminalScreen"]),
    tests(
      "Commands/PreferenceBrowserTests",
      [
        "PreferenceBrowser", "PreferenceDeclarations", "PreferenceHistory", "PreferenceSearch",
        "StoreAccess", "TerminalScreen", "Support", "prefsd", "defaults",
      ] + model),
    tests("Commands/PlutilCommandTests", ["PlutilCommand", "PropertyList", "Support", "plutil"]),
    tests(
      "Client/PreferencesTests",
      [
        "Preferences", "PreferenceModel", "PropertyList", "Support", "prefs-sample", "prefsd",
        "prefsfs", "defaults",
      ]),
    tests("Mount/ToolTests", ["Support", "prefsfs"]),
    tests("Base/SystemCallsTests", ["SystemCalls", "Support"]),
    tests("Commands/prefsfsTests", ["prefsfs", "FUSEDriver"]),
    tests(
      "Mount/ConformanceTests",
      [
        "Support", "prefsfs", "prefsd", "prefs-probe", "defaults", "plutil", "PreferenceTree",
        "PreferenceEngine", "PreferenceSearch", "PreferenceStore", "StoreAccess",
      ] + model),
  ]
)
