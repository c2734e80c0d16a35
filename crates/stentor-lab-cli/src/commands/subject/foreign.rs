//! Foreign subjects: their list, their readiness on this machine, and their builds.

use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::subject::Definition;
use stentor_lab::subject::catalogue::{self, CatalogueEntry, FOLDER, SubjectReadiness};
use stentor_lab::subject::dialect::DIALECTS;
use stentor_lab::subject::needs::{Missing, Probes};
use stentor_terminal::failure::{CommandFailure, Exit};
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::PhaseProgress;

/// The folder of foreign subjects.
#[derive(Debug, Args)]
pub(in crate::commands) struct SubjectFolderArgs {
    /// Folder of definitions; otherwise `lab/subjects` here, above, or above this program
    #[arg(long, value_name = "DIR")]
    pub(in crate::commands) subjects: Option<PathBuf>,
}

/// List our own subjects, and foreign ones with their missing requirements on this machine
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab subject list
  stentor lab subject list --subjects my-subjects --json")]
pub(super) struct SubjectListArgs {
    #[command(flatten)]
    place: SubjectFolderArgs,
}

/// Build foreign subjects with their own tools
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab subject build soap/cxf-2.7.4
  stentor lab subject build --all

Java's subjects are built by Maven, which downloads their dependencies the first time. Subjects of one build are built once.
Nothing is installed; missing tools are listed.")]
pub(super) struct SubjectBuildArgs {
    /// A subject, by its id or the beginning of it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Build every subject with installed tools
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    place: SubjectFolderArgs,
}

impl SubjectFolderArgs {
    fn folder(&self) -> Option<PathBuf> {
        let program = std::env::current_exe().ok();
        let here = std::env::current_dir().ok();
        let places = here.iter().chain(&program).map(PathBuf::as_path);
        self.subjects.clone().or_else(|| catalogue::folder(places))
    }

    /// Finds a subject that can run here. The error names the missing requirements or steps.
    pub(in crate::commands) fn ready(&self, id: &str) -> anyhow::Result<Definition> {
        let entry = self.entry(id)?;
        let (id, readiness) = (&entry.definition.id, entry.readiness(&mut Probes::default()));
        if !readiness.missing.is_empty() {
            let sentence = format!("{id} cannot run here, missing: {}", listed(&readiness.missing));
            return Err(CommandFailure::not_done(sentence).into());
        }
        if !readiness.built {
            return Err(CommandFailure::not_done(format!(
                "{id} is not built: stentor lab subject build {id}"
            ))
            .into());
        }
        Ok(entry.definition)
    }

    /// Reads the definitions; empty if there is no folder and none was named.
    pub(super) fn entries(&self) -> anyhow::Result<Vec<CatalogueEntry>> {
        let Some(folder) = self.folder() else { return Ok(Vec::new()) };
        catalogue::read(&folder).map_err(|error| CommandFailure::usage(error.to_string()).into())
    }

    /// Finds a subject by its id or the beginning of it.
    pub(super) fn entry(&self, id: &str) -> anyhow::Result<CatalogueEntry> {
        let entries = self.entries()?;
        let found = catalogue::find(&entries, id).cloned();
        found.ok_or_else(|| {
            let beginning = entries.iter().map(|entry| entry.definition.id.as_str());
            let beginning: Vec<&str> = beginning.filter(|known| known.starts_with(id)).collect();
            let sentence = match &beginning[..] {
                [] if entries.is_empty() => {
                    format!(
                        "there is no subject {id:?}, and no folder {FOLDER} here: name one with --subjects"
                    )
                }
                [] => format!("there is no subject {id:?}: stentor lab subject list names them"),
                several => format!("{id:?} is the beginning of several: {}", several.join(", ")),
            };
            CommandFailure::new(Exit::NotFound, sentence).into()
        })
    }
}

impl SubjectListArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ours = DIALECTS.map(|dialect| Definition::built_in(dialect, Vec::new()).id);
        let mut probes = Probes::default();
        let entries = self.place.entries()?;
        let foreign: Vec<(CatalogueEntry, SubjectReadiness)> = entries
            .into_iter()
            .map(|entry| {
                let readiness = entry.readiness(&mut probes);
                (entry, readiness)
            })
            .collect();
        let objects: Vec<Value> = foreign.iter().map(|(entry, readiness)| object(entry, readiness)).collect();
        output.result(&json!({ "subjects": ours, "foreign": objects }), || describe(&ours, &foreign))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn object(entry: &CatalogueEntry, readiness: &SubjectReadiness) -> Value {
    let definition = &entry.definition;
    json!({
        "id": definition.id,
        "file": entry.file,
        "ops": definition.ops,
        "roles": definition.roles,
        "can": definition.can,
        "can_run": readiness.can_run(),
        "needs_building": !definition.build.is_empty(),
        "built": readiness.built,
        "missing": readiness.missing,
        "missing_to_build": readiness.missing_to_build,
    })
}

fn describe(ours: &[String], foreign: &[(CatalogueEntry, SubjectReadiness)]) -> String {
    let built_in = ours.iter().map(|id| [id.clone(), String::new(), "can run".to_owned()]);
    let rows = foreign.iter().map(|(entry, readiness)| {
        let roles: Vec<String> =
            entry.definition.roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
        [entry.definition.id.clone(), roles.join(" "), state(readiness)]
    });
    table(["subject", "halves", "here"], built_in.chain(rows))
}

fn state(readiness: &SubjectReadiness) -> String {
    if readiness.can_run() {
        return "can run".into();
    }
    let mut missing: Vec<&Missing> = readiness.missing.iter().collect();
    if !readiness.built {
        missing.extend(&readiness.missing_to_build);
    }
    if missing.is_empty() { "not built".into() } else { format!("missing: {}", listed(missing)) }
}

fn listed<'a>(missing: impl IntoIterator<Item = &'a Missing>) -> String {
    missing.into_iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl SubjectBuildArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let entries = match &self.id {
            Some(id) => vec![self.place.entry(id)?],
            None => self.place.entries()?,
        };
        let mut probes = Probes::default();
        let mut built: Vec<&CatalogueEntry> = Vec::new();
        let mut skipped = Vec::new();
        let mut progress = PhaseProgress::start("building", entries.len() as u64);
        for (done, entry) in entries.iter().enumerate() {
            let missing = entry.readiness(&mut probes).missing_to_build;
            if !missing.is_empty() {
                skipped.push(json!({ "id": entry.definition.id, "missing": missing }));
                progress.remark(&format!("skipped: {}, missing: {}", entry.definition.id, listed(&missing)));
            } else if !built.iter().any(|other| is_same_build(other, entry)) {
                entry.build().await.map_err(|error| CommandFailure::not_done(error.to_string()))?;
            }
            if missing.is_empty() {
                built.push(entry);
            }
            progress.update(done as u64 + 1);
        }
        progress.finish(entries.len() as u64);
        let ids: Vec<&str> = built.iter().map(|entry| entry.definition.id.as_str()).collect();
        output.result(&json!({ "built": ids, "skipped": skipped }), || ids.join("\n"))?;
        // A subject that was requested by name must be built; with `--all`, skipped ones are permitted.
        Ok(if self.all || skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn is_same_build(one: &CatalogueEntry, other: &CatalogueEntry) -> bool {
    one.definition.build == other.definition.build && one.definition.directory == other.definition.directory
}
