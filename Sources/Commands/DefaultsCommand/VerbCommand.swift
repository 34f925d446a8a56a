/// What a verb does, and what the help says of it. Both stand in the file of the verb.
struct VerbCommand {
  let manual: () -> VerbManual
  /// Carries the verb out, and returns the exit status.
  let run: (inout Arguments) throws(Refusal) -> Int32

  init(
    _ manual: @escaping @autoclosure () -> VerbManual,
    _ run: @escaping (inout Arguments) throws(Refusal) -> Int32
  ) { (self.manual, self.run) = (manual, run) }

  /// A verb whose exit status is 0 unless it throws.
  init(
    _ manual: @escaping @autoclosure () -> VerbManual,
    done: @escaping (inout Arguments) throws(Refusal) -> Void
  ) {
    self.init(manual()) { arguments throws(Refusal) in
      try done(&arguments)
      return 0
    }
  }
}

extension Verb {
  var command: VerbCommand {
    switch self {
    case .read: .init(Read.manual, done: Read.run)
    case .readType: .init(Read.typeManual, done: Read.runType)
    case .write: .init(Write.manual, done: Write.run)
    case .rename: .init(Rename.manual, done: Rename.run)
    case .delete, .deleteAll: .init(Delete.manual, done: Delete.run)
    case .import: .init(Import.manual, done: Import.run)
    case .export: .init(Export.manual, done: Export.run)
    case .domains: .init(Domains.manual, done: Domains.run)
    case .find: .init(Find.manual, done: Find.run)
    case .help: .init(HelpVerb.manual, HelpVerb.run)
    case .hostIdentifier: .init(Domains.hostManual, done: Domains.printHostIdentifier)
    case .explain: .init(Explain.manual, done: Explain.run)
    case .watch: .init(Watch.manual, done: Watch.run)
    case .synchronize: .init(Synchronize.manual, done: Synchronize.run)
    case .suites: .init(Suites.manual, done: Suites.run)
    case .apply: .init(Apply.manual, Apply.run)
    case .profiles: .init(Profiles.manual, Profiles.run)
    case .cloud: .init(Cloud.manual, Cloud.run)
    case .history: .init(History.manual, done: History.run)
    case .undo: .init(Undo.manual, Undo.run)
    case .record: .init(Record.manual, Record.run)
    case .diff: .init(Diff.manual, done: Diff.run)
    case .declared: .init(Declared.manual, Declared.run)
    case .importFrom: .init(ImportFrom.manual, done: ImportFrom.run)
    case .check: .init(Check.manual, Check.run)
    case .describe: .init(Describe.manual, done: Describe.run)
    case .changed: .init(Changed.manual, done: Changed.run)
    case .lint: .init(Lint.manual, Lint.run)
    case .schema: .init(SchemaVerb.manual, done: SchemaVerb.run)
    case .complete: .init(Complete.manual, done: Complete.run)
    case .confirm: .init(Declared.confirmManual, Declared.confirm)
    case .undeclare: .init(Declared.undeclareManual, Declared.undeclare)
    case .effects: .init(Effects.manual, Effects.run)
    case .browse: .init(Browse.manual, Browse.run)
    case .gsettings: .init(GSettingsSwitch.manual, done: GSettingsSwitch.run)
    }
  }

  /// What the help says of the verb.
  var manual: VerbManual { command.manual() }
}
