//! `stentor lab artifact`: a run as one folder, for reviewers and for an archive.

mod folder;

use super::report;
use anyhow::Context;
use clap::Args;
use folder::ArtifactFolder;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::artifact::{
    Artifact, ArtifactRun, appendix, claims_data, crate_metadata, licenses, reproduce,
};
use stentor_lab::record::{ForkRecord, file_of};
use stentor_lab::results::{self, Account};
use stentor_lab::runner::OWN_PLAN;
use stentor_lab::subject::catalogue;
use stentor_lab::subject::needs::debian_package;
use stentor_stage::programs::Program;
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note};

/// Folder of the runs that come with the sources.
const STUDIES_FOLDER: &str = "docs/studies";
/// Files that the sources have for those who cite them, and the licence.
const CITED_BY: [&str; 3] = ["CITATION.cff", "codemeta.json", "LICENSE"];

/// Write a run as an artifact: claims, experiments, records, captures, program, licences, checksums, instructions
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab artifact cai-2009 --run study --out artifact
  stentor lab artifact nunes-2014 --out artifact
  stentor lab artifact echo-of-two-sizes --run study --subjects lab/skeleton --out artifact --json

The folder has README.md with claims C1, C2 … and experiments E1, E2 …, the records with the samples and captures that the run still
has, the report, the program, foreign subjects as sources, licences, SHA256SUMS, and ro-crate-metadata.json (RO-Crate 1.1). On an
empty Debian its one command, ./reproduce, repeats the run. docs/lab/artifact.md has the rest.")]
pub(crate) struct ArtifactArgs {
    /// Id of the study
    #[arg(value_name = "STUDY")]
    study: String,
    /// Directory of a run of it; by default docs/studies/STUDY, here or above
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Folder to write; it must be empty or not exist
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Folder of the foreign subjects; otherwise `lab/subjects` here, above, or above this program
    #[arg(long, value_name = "DIR")]
    subjects: Option<PathBuf>,
}

impl ArtifactArgs {
    /// Writes the folder.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let run = self.directory()?;
        let account = report::account(std::slice::from_ref(&run))?;
        if account.results.study != self.study {
            let sentence =
                format!("{} is a run of {}, not of {}", run.display(), account.results.study, self.study);
            return Err(CommandFailure::usage(sentence).into());
        }
        let mut folder = ArtifactFolder::create(&self.out)?;
        let missing = self.fill(&mut folder, &run, &account)?;
        let artifact = Artifact::of(&account, self.facts(&run, &account)?)?;
        texts(&mut folder, &artifact, &account)?;
        folder.finish(|files| crate_metadata(&artifact, files))?;
        missing.iter().for_each(|sentence| note(sentence));
        let object = json!({"study": self.study, "out": self.out, "artifact": artifact, "missing": missing});
        output.result(&object, || {
            let (claims, experiments) = (artifact.claims.len(), artifact.experiments.len());
            let (captures, out) = (&artifact.captures, self.out.display());
            format!(
                "{out}: {claims} claims, {experiments} experiments, captures of {} of {} cells\nnext: {out}/reproduce",
                captures.cells_with, captures.cells
            )
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn directory(&self) -> anyhow::Result<PathBuf> {
        if let Some(run) = &self.run {
            return Ok(run.clone());
        }
        let found = beside(STUDIES_FOLDER)?.map(|folder| folder.join(&self.study));
        found.filter(|run| file_of(run).is_some()).ok_or_else(|| {
            let sentence = format!(
                "there are no records of {} here: name the directory of a run (--run DIR)",
                self.study
            );
            CommandFailure::usage(sentence).into()
        })
    }

    /// Copies the run, its report, the program, the subjects and the sources; returns a sentence for each that is missing.
    fn fill(
        &self,
        folder: &mut ArtifactFolder,
        run: &Path,
        account: &Account,
    ) -> anyhow::Result<Vec<String>> {
        let mut missing = Vec::new();
        folder.copy_flat(run, "run")?;
        for raw in account.results.records.iter().flat_map(|record| &record.raw) {
            let place = Path::new("run").join(&raw.path);
            if run.join(&raw.path).is_file() {
                folder.copy(&run.join(&raw.path), &place)?;
            }
        }
        folder.copy_program(
            &std::env::current_exe().context("the path of this program is not known")?,
            "stentor-lab",
        )?;
        // Only campaigns start the product.
        if account.results.is_of_campaigns() {
            folder.copy_program(&Program::Product.find()?, "stentor")?;
        }
        match self.subjects_folder()? {
            Some(subjects) => folder.copy_sources(&subjects, "subjects")?,
            None => missing.push("no folder of foreign subjects was found: name it by --subjects".to_owned()),
        }
        for name in CITED_BY {
            match source_file(name)? {
                Some(file) => folder.copy(&file, Path::new(name))?,
                None => missing.push(format!("{name} was not found: run this command within the sources")),
            }
        }
        if !folder.archive_sources(source_file("Cargo.toml")?.as_deref())? {
            missing.push("no sources are included: run this command within their repository".to_owned());
        }
        Ok(missing)
    }

    fn subjects_folder(&self) -> anyhow::Result<Option<PathBuf>> {
        self.subjects.clone().map_or_else(|| beside(catalogue::FOLDER), |subjects| Ok(Some(subjects)))
    }

    fn facts(&self, run: &Path, account: &Account) -> anyhow::Result<ArtifactRun> {
        let (mut packages, mut subjects) = (BTreeSet::new(), BTreeSet::new());
        let records = &account.results.records;
        let used: BTreeSet<&str> = records
            .iter()
            .flat_map(|one| [one.subject.client.as_str(), one.subject.server.as_str()])
            .collect();
        let folder = self.subjects_folder()?;
        let entries = folder.map(|folder| catalogue::read(&folder)).transpose();
        for entry in entries.map_err(|error| CommandFailure::usage(error.to_string()))?.unwrap_or_default() {
            let definition = entry.definition;
            if used.contains(definition.id.as_str()) {
                packages.extend(definition.needs.iter().filter_map(|need| debian_package(need)));
                subjects.insert(definition.id);
            }
        }
        let cells_captured = captured(run, records);
        Ok(ArtifactRun {
            command: command(account),
            seconds: seconds(records),
            cells_captured,
            packages,
            subjects,
        })
    }
}

/// Writes the texts of an artifact.
fn texts(folder: &mut ArtifactFolder, artifact: &Artifact, account: &Account) -> anyhow::Result<()> {
    folder.write("README.md", &appendix(artifact))?;
    folder.write("LICENSES.md", &licenses(artifact))?;
    folder.write("artifact.json", &serde_json::to_string_pretty(artifact)?)?;
    folder.write("claims.json", &serde_json::to_string_pretty(&claims_data()?)?)?;
    folder.write("report.html", &results::page(account))?;
    folder.write("report.md", &results::markdown(account))?;
    folder.write("figures.csv", &report::sheet(account))?;
    if let Some(plan) = folder.recorded_plan()[OWN_PLAN].as_str() {
        folder.write(&format!("{}.toml", artifact.study), plan)?;
    }
    folder.write_program("reproduce", &reproduce(artifact))
}

/// Returns the command that repeats a run, from the folder of the artifact.
fn command(account: &Account) -> String {
    let recorded = account.remarks.command.lines().next().unwrap_or_default();
    let options = recorded.split_once(" run ").map_or(recorded, |(_, options)| options);
    let (before, after) = options.split_once(" --out ").unwrap_or((options, ""));
    let further = after.split_once(' ').map_or(String::new(), |(_, further)| format!(" {further}"));
    let subjects = if account.results.is_of_campaigns() { "" } else { " --subjects subjects" };
    format!("bin/stentor-lab run {before}{further}{subjects} --out again")
}

/// Returns the time between the first and the last fork of a run.
fn seconds(records: &[ForkRecord]) -> f64 {
    let ended = records.iter().filter_map(|record| record.ended.parse::<jiff::Timestamp>().ok());
    let ended: Vec<jiff::Timestamp> = ended.collect();
    let span = ended.iter().min().zip(ended.iter().max());
    span.map_or(0.0, |(first, last)| last.duration_since(*first).as_secs_f64())
}

/// Counts the cells of which a capture is still there.
fn captured(run: &Path, records: &[ForkRecord]) -> usize {
    let has_capture = |record: &&ForkRecord| {
        record.raw.iter().any(|raw| raw.path.ends_with(".pcap") && run.join(&raw.path).is_file())
    };
    let cells = records.iter().filter(has_capture).map(|record| {
        let subject = &record.subject;
        (&record.variant, &record.experiment, &record.cell, &subject.label, &subject.stack, &subject.client)
    });
    cells.collect::<BTreeSet<_>>().len()
}

/// Finds a folder of the project here, above, or above this program.
fn beside(name: &str) -> anyhow::Result<Option<PathBuf>> {
    let (here, program) = (std::env::current_dir()?, std::env::current_exe()?);
    Ok(catalogue::folder_named(name, [here.as_path(), program.as_path()]))
}

/// Finds a file at the top of the sources.
fn source_file(name: &str) -> anyhow::Result<Option<PathBuf>> {
    let top = beside(STUDIES_FOLDER)?.and_then(|folder| Some(folder.parent()?.parent()?.to_owned()));
    Ok(top.map(|top| top.join(name)).filter(|file| file.is_file()))
}
