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
    .target(name: "PropertyList", swiftSettings: strict),
    .systemLibrary(name: "CLinux"),
    .target(name: "SystemCalls", dependencies: ["CLinux"], swiftSettings: strict),
    .systemLibrary(name: "CFUSE", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .target(name: "ManualPage", swiftSettings: strict),
    // 1: domains, places, search list, changesets, the engine protocol
    .target(
      name: "PreferenceModel", dependencies: ["PropertyList", "SystemCalls"], swiftSettings: strict),
    // 2: where a store is, and how its lists are read by threads that may wait
    .target(
      name: "StoreAccess", dependencies: ["PreferenceModel", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    // 2: what was changed, when and by whom
    .target(
      name: "PreferenceHistory", dependencies: ["PreferenceModel", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    // 2: what the keys of a domain are
    .systemLibrary(name: "CPCRE2", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
    .target(
      name: "PreferenceSchemas",
      dependencies: ["PreferenceModel", "PropertyList", "SystemCalls", "CPCRE2"],
      swiftSettings: strict),
    // 3: a schema as Swift, as JSON Schema and as a page
    .target(
      name: "PreferenceSchemaForms",
      dependencies: ["PreferenceSchemas", "PreferenceModel", "PropertyList"],
      swiftSettings: strict),
    // 3: property list files, journal, durability
    .target(
      name: "PreferenceStore",
      dependencies: [
        "PreferenceHistory", "PreferenceSchemas", "StoreAccess", "PreferenceModel", "PropertyList",
        "SystemCalls",
      ],
      swiftSettings: strict),
    // 3: reads the administrator's profiles
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .target(
      name: "ConfigurationProfiles",
      dependencies: ["StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls", "CCrypto"],
      swiftSettings: strict),
    // 3: keeps keys of a user the same on several machines
    .target(
      name: "PreferenceCloud",
      dependencies: ["StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    // 4: speaks with etcd
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .target(
      name: "EtcdClient",
      dependencies: ["PreferenceCloud", "PropertyList", "SystemCalls", "CCurl"],
      swiftSettings: strict),
    // 3: values that are declared, and what was there before
    .target(
      name: "PreferenceDeclarations",
      dependencies: ["PreferenceHistory", "PreferenceModel", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    // 4: the search list over any persistent places
    .target(
      name: "PreferenceSearch",
      dependencies: [
        "PreferenceSchemas", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
      ],
      swiftSettings: strict),
    // 5: what the control directory of a mount shows, and declarations over a search list
    .target(
      name: "PreferenceControl",
      dependencies: [
        "PreferenceSearch", "PreferenceDeclarations", "PreferenceHistory", "PreferenceSchemaForms",
        "PreferenceSchemas", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
      ],
      swiftSettings: strict),
    // 3: frames and messages
    .target(
      name: "PreferenceProtocol",
      dependencies: ["StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    // 4: the owner's engine: intents, observers, writer
    .target(
      name: "PreferenceEngine",
      dependencies: [
        "PreferenceCloud", "PreferenceSchemas", "PreferenceStore", "StoreAccess", "PreferenceModel",
        "PropertyList", "SystemCalls",
      ],
      swiftSettings: strict),
    // 5: the owner's side of the socket; 4: the client's
    .target(
      name: "PreferenceServer",
      dependencies: [
        "PreferenceCloud", "PreferenceEngine", "PreferenceProtocol", "PreferenceStore",
        "ConfigurationProfiles", "StoreAccess", "PreferenceModel", "SystemCalls",
      ], swiftSettings: strict),
    .target(
      name: "PreferenceClient",
      dependencies: [
        "PreferenceProtocol", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
      ],
      swiftSettings: strict),
    // 5: preferences as nodes, names and bytes
    .target(
      name: "PreferenceTree", dependencies: ["PreferenceModel", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    // 6: gives libfuse's requests to the tree, and carries out the tree's effects with libfuse
    .target(
      name: "FUSEDriver",
      dependencies: [
        "PreferenceTree", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls", "CFUSE",
        "CLinux",
      ],
      swiftSettings: strict),
    // 5: UserDefaults for programs
    .target(
      name: "Preferences",
      dependencies: [
        "PreferenceClient", "PreferenceHistory", "PreferenceSearch", "StoreAccess",
        "PreferenceModel", "PropertyList", "SystemCalls",
      ], swiftSettings: strict),
    // 6: the verbs of `defaults`
    .target(
      name: "DefaultsCommand",
      dependencies: [
        "PreferenceClient", "PreferenceCloud", "PreferenceControl", "PreferenceDeclarations",
        "PreferenceHistory", "PreferenceSchemaForms", "PreferenceSchemas", "PreferenceSearch",
        "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls", "CLinux", "ManualPage",
      ], swiftSettings: strict),
    // 5: carries changes between a store and the servers of its cloud
    .target(
      name: "CloudCarrier",
      dependencies: [
        "EtcdClient", "PreferenceCloud", "PreferenceClient", "StoreAccess", "PreferenceModel",
        "PropertyList",
        "SystemCalls", "CCrypto",
      ], swiftSettings: strict),
    .executableTarget(
      name: "prefs-cloud", dependencies: ["CloudCarrier"], swiftSettings: strict,
      linkerSettings: carriesRuntime),
    // 1: the verbs of `plutil`: property lists as files, without preferences
    .target(
      name: "PlutilCommand", dependencies: ["ManualPage", "PropertyList", "SystemCalls"],
      swiftSettings: strict),
    .executableTarget(
      name: "plutil", dependencies: ["PlutilCommand"], swiftSettings: strict,
      linkerSettings: standsAlone),
    // 7: compose, run, exit
    .executableTarget(
      name: "prefsfs",
      dependencies: [
        "FUSEDriver", "PreferenceTree", "PreferenceClient", "PreferenceControl",
        "PreferenceSearch", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
        "ManualPage",
      ], swiftSettings: strict, linkerSettings: standsAlone),
    .executableTarget(
      name: "defaults", dependencies: ["DefaultsCommand"], swiftSettings: strict,
      linkerSettings: startsFast),
    .executableTarget(
      name: "prefsd",
      dependencies: ["PreferenceServer", "StoreAccess", "PreferenceModel", "SystemCalls"],
      swiftSettings: strict, linkerSettings: standsAlone),

    .executableTarget(
      name: "prefsfs-bench",
      dependencies: [
        "Preferences", "PreferenceServer", "PreferenceClient", "PreferenceEngine",
        "PreferenceHistory", "PreferenceStore",
        "PreferenceSearch", "PreferenceProtocol", "StoreAccess", "PreferenceModel", "PropertyList",
        "SystemCalls",
        "CLinux",
      ], swiftSettings: strict),

    // A client of a store, as a program for tests.
    .executableTarget(
      name: "prefs-probe",
      dependencies: [
        "PreferenceClient", "PreferenceSearch", "StoreAccess", "PreferenceModel",
        "PropertyList", "SystemCalls",
      ], path: "Tests/Probe", swiftSettings: strict),
    // A program that uses the library, for tests.
    .executableTarget(
      name: "prefs-sample", dependencies: ["Preferences"], path: "Tests/Sample",
      swiftSettings: strict),
    // Many hosts and a real etcd, for scripts/cloud-test.
    .executableTarget(
      name: "cloud-simulation",
      dependencies: [
        "EtcdClient", "PreferenceCloud", "PreferenceModel", "PropertyList", "SystemCalls",
      ], path: "Tests/CloudSimulation", swiftSettings: strict),
    // The example program of the README.
    .executableTarget(
      name: "tab-editor", dependencies: ["Preferences"], path: "Tests/Example",
      exclude: ["Schema"], swiftSettings: strict),
    // A program whose keys are made from its schema.
    .executableTarget(
      name: "tabs-example", dependencies: ["Preferences"], path: "Tests/Example/Schema",
      exclude: ["org.example.tabs.plist"], swiftSettings: strict),
    .target(
      name: "Support", dependencies: ["CLinux"], path: "Tests/Support", swiftSettings: strict),
    // Counts what Swift code allocates.
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    // The functions that the fuzzers call; scripts/fuzz links them with libFuzzer.
    .target(
      name: "Fuzzing", dependencies: ["PreferenceStore", "PropertyList"], path: "Tests/Fuzzing",
      exclude: ["Corpus"], swiftSettings: strict),
    .testTarget(name: "FuzzingTests", dependencies: ["Fuzzing"], swiftSettings: strict),
    .testTarget(
      name: "PropertyListTests", dependencies: ["PropertyList", "Support"], swiftSettings: strict),
    .testTarget(
      name: "PreferenceModelTests", dependencies: ["PreferenceModel", "PropertyList"],
      swiftSettings: strict),
    .testTarget(
      name: "PreferenceHistoryTests",
      dependencies: [
        "PreferenceHistory", "PreferenceModel", "PropertyList", "SystemCalls", "Support",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceSchemasTests",
      dependencies: [
        "PreferenceSchemas", "PreferenceSchemaForms", "PreferenceModel", "PropertyList",
        "SystemCalls",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PreferenceDeclarationsTests",
      dependencies: [
        "PreferenceDeclarations", "PreferenceSearch", "PreferenceHistory", "PreferenceModel",
        "PropertyList", "SystemCalls", "CAllocations",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceStoreTests",
      dependencies: [
        "PreferenceStore", "PreferenceHistory", "StoreAccess", "PreferenceModel", "PropertyList",
        "SystemCalls",
        "Support",
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "ConfigurationProfilesTests",
      dependencies: [
        "ConfigurationProfiles", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
        "Support",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceCloudTests",
      dependencies: ["PreferenceCloud", "PreferenceModel", "PropertyList"], swiftSettings: strict),
    .testTarget(
      name: "CloudCarrierTests",
      dependencies: [
        "CloudCarrier", "EtcdClient", "PreferenceCloud", "StoreAccess", "PreferenceModel",
        "PropertyList",
        "SystemCalls", "Support", "prefsfs", "prefsd", "prefs-cloud", "prefs-sample", "defaults",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceSearchTests", dependencies: ["PreferenceSearch", "PropertyList"],
      swiftSettings: strict),
    .testTarget(
      name: "PreferenceEngineTests",
      dependencies: [
        "PreferenceCloud", "PreferenceEngine", "PreferenceSearch", "PreferenceStore",
        "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls", "Support",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceProtocolTests",
      dependencies: [
        "PreferenceProtocol", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "PreferenceClientTests",
      dependencies: [
        "PreferenceClient", "PreferenceServer", "PreferenceSearch", "PreferenceProtocol",
        "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls", "Support",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceServerTests",
      dependencies: [
        "PreferenceServer", "PreferenceClient", "PreferenceEngine", "PreferenceStore",
        "PreferenceProtocol", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
        "Support",
      ], swiftSettings: strict),
    .testTarget(
      name: "PreferenceTreeTests",
      dependencies: [
        "PreferenceTree", "PreferenceSearch", "PreferenceModel", "PropertyList", "SystemCalls",
        "CAllocations",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "DefaultsCommandTests",
      dependencies: [
        "DefaultsCommand", "PreferenceHistory", "PreferenceModel", "PreferenceSchemas",
        "PropertyList", "SystemCalls", "Support", "defaults", "prefsd",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PlutilCommandTests",
      dependencies: ["PlutilCommand", "PropertyList", "Support", "plutil"],
      swiftSettings: strict),
    .testTarget(
      name: "PreferencesTests",
      dependencies: [
        "Preferences", "PreferenceModel", "PropertyList", "Support", "prefs-sample", "prefsd",
        "prefsfs", "defaults",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ToolTests", dependencies: ["Support", "prefsfs"], swiftSettings: strict),
    .testTarget(
      name: "SystemCallsTests", dependencies: ["SystemCalls", "Support"], swiftSettings: strict),
    .testTarget(
      name: "prefsfsTests", dependencies: ["prefsfs", "FUSEDriver"], swiftSettings: strict),
    .testTarget(
      name: "ConformanceTests",
      dependencies: [
        "Support", "prefsfs", "prefsd", "prefs-probe", "defaults", "plutil", "PreferenceTree",
        "PreferenceEngine",
        "PreferenceSearch",
        "PreferenceStore", "StoreAccess", "PreferenceModel", "PropertyList", "SystemCalls",
      ], swiftSettings: strict),
  ]
)
