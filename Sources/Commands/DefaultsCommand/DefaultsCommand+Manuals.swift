extension Verb {
  /// What the help says of the verb.
  var manual: VerbManual {
    switch self {
    case .read: Read.manual
    case .readType: Read.typeManual
    case .write: Write.manual
    case .rename: Rename.manual
    case .delete, .deleteAll: Delete.manual
    case .import: Import.manual
    case .export: Export.manual
    case .domains: Domains.manual
    case .find: Find.manual
    case .help: HelpVerb.manual
    case .hostIdentifier: Domains.hostManual
    case .explain: Explain.manual
    case .watch: Watch.manual
    case .synchronize: Synchronize.manual
    case .suites: Suites.manual
    case .apply: Apply.manual
    case .profiles: Profiles.manual
    case .cloud: Cloud.manual
    case .history: History.manual
    case .undo: Undo.manual
    case .record: Record.manual
    case .diff: Diff.manual
    case .declared: Declared.manual
    case .importFrom: ImportFrom.manual
    case .check: Check.manual
    case .describe: Describe.manual
    case .changed: Changed.manual
    case .lint: Lint.manual
    case .schema: SchemaVerb.manual
    case .complete: Complete.manual
    case .confirm: Declared.confirmManual
    case .undeclare: Declared.undeclareManual
    case .gsettings: GSettingsSwitch.manual
    case .effects: Effects.manual
    case .browse: Browse.manual
    }
  }
}
