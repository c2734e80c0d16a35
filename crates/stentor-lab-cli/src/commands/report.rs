//! `stentor lab report`: the results of a run, as a page, as Markdown and as CSV.

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::claims::ClaimVerdict;
use stentor_lab::plan::{StudyPlan, UnservedPart};
use stentor_lab::probes::{Probed, ProbedError, tried};
use stentor_lab::record::{self, CAMPAIGNS, ForkRecord};
use stentor_lab::results::{self, Account, CONFIDENCE, Remarks, Results};
use stentor_lab::runner::{ASKED, OWN_PLAN};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note, table};

/// Name of the file with the plan of a run.
const PLAN: &str = "plan.json";
/// Name of the file with the place, time and command of campaigns.
pub(super) const PROVENANCE: &str = "provenance.json";

/// Write the report of a run: verdicts, drawings, costs, and a list of untested claims
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab report results --html report.html
  stentor lab report results --html report.html --md report.md --csv figures.csv --svg drawings
  stentor lab report results --json
  stentor lab report monday tuesday thursday --html report.html
  stentor lab report cai-2009 --beside 'The server as a subject=server/cai-2009' --md cai-2009.md

Several directories are runs of one study, on different days or machines; a directory without records stands for the runs in it. From three
runs on, intervals are over runs; give each a --seed of its own.

The page is self-contained: no scripts, no fonts, nothing from the network. It can be printed, has a dark mode and does not
depend on colours. Records are only read, so a report can be written at any time, also during a run. For isikligil-2017 --csv
writes the rates beside the paper's, and --svg the drawings of its page.")]
pub(crate) struct ReportArgs {
    /// Directory of a run, a file of records, or a directory of runs; several are runs of one study
    #[arg(value_name = "DIR", required = true)]
    runs: Vec<PathBuf>,
    /// Another run of the study for the same page, with figures of its own below the others; repeatable
    #[arg(long, value_name = "TITLE=DIR", value_parser = titled_run)]
    beside: Vec<(String, PathBuf)>,
    /// Write one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the tables as Markdown, and the paper's figures into a folder beside it
    #[arg(long, value_name = "FILE.md")]
    md: Option<PathBuf>,
    /// Write every figure of cells and of forks, ratios of subjects and effects of factors
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write each drawing as a file of its own, for print
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

impl ReportArgs {
    /// Writes the report.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let mut account = account(&self.runs)?;
        account.beside =
            self.beside.iter().map(|run| beside(&account, run)).collect::<anyhow::Result<_>>()?;
        let mut written: Vec<String> = Vec::new();
        if let Some(md) = &self.md {
            account.remarks.figures = write_figures(&account, md, &mut written)?;
        }
        let files = [
            (&self.html, results::page as fn(&Account) -> String),
            (&self.md, results::markdown),
            (&self.csv, sheet),
        ];
        for (path, make) in files {
            if let Some(path) = path {
                write(path, &make(&account))?;
                written.push(path.display().to_string());
            }
        }
        if let Some(directory) = &self.svg {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("{} cannot be made", directory.display()))?;
            for plot in &account.plots {
                let path = directory.join(format!("{}.svg", plot.id));
                write(&path, &plot.file())?;
                written.push(path.display().to_string());
            }
        }
        if account.results.is_of_campaigns() {
            let mut object = campaigns(&account)?;
            object["written"] = json!(written);
            let description = describe_campaigns(&account)?;
            output.result(&object, || format!("{description}\n\n{}", files_text(&written)))?;
        } else {
            output.result(&object(&account, &written), || describe(&account, &written))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the drawings of the paper's figures into the folder that has the name of the page; returns that name, or nothing without figures.
fn write_figures(account: &Account, page: &Path, written: &mut Vec<String>) -> anyhow::Result<String> {
    let figures: Vec<_> = account.plots.iter().filter(|plot| plot.is_of_paper()).collect();
    let name = page.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if figures.is_empty() {
        return Ok(String::new());
    }
    let folder = page.with_file_name(&name);
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for plot in figures {
        let path = folder.join(format!("{}.svg", plot.id));
        write(&path, &plot.file())?;
        written.push(path.display().to_string());
    }
    Ok(name)
}

/// Parses the title and the directory of a run.
fn titled_run(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(title, run)| !title.is_empty() && !run.is_empty());
    let (title, run) = parts.ok_or("a title, = and a directory are wanted")?;
    Ok((title.to_owned(), PathBuf::from(run)))
}

/// Returns the account of another run of the same study, with its title.
fn beside(main: &Account, (title, run): &(String, PathBuf)) -> anyhow::Result<(String, Account)> {
    let account = account(std::slice::from_ref(run))?;
    let (study, other) = (&main.results.study, &account.results.study);
    if study != other {
        let sentence = format!("{} is a run of {other}, and the page is of {study}", run.display());
        return Err(CommandFailure::usage(sentence).into());
    }
    Ok((title.clone(), account))
}

/// Writes every figure as CSV; for campaigns the rates beside the paper's.
pub(super) fn sheet(account: &Account) -> String {
    let results = &account.results;
    if results.is_of_campaigns() {
        results::figures_csv(results, CONFIDENCE)
    } else {
        results::sheet(results)
    }
}

/// Returns the account of runs of one study, even if one was interrupted or has not ended.
pub(super) fn account(paths: &[PathBuf]) -> anyhow::Result<Account> {
    let runs = runs_of(paths);
    let results = read_runs(&runs)?;
    let remarks = remarks(&results, &runs);
    Ok(Account::of(results, remarks)?)
}

/// Returns the results of campaigns as an object for programs.
pub(super) fn campaigns(account: &Account) -> anyhow::Result<Value> {
    let (tests, beyond) = account.results.measured();
    Ok(json!({
        "study": account.results.study,
        "scenarios": tests,
        "beyond": beyond,
        "claims": account.answers()?,
        "uncounted": account.results.uncounted_runs(),
        "provenance": account.remarks.provenance,
    }))
}

/// Describes every cell of campaigns and every claim.
pub(super) fn describe_campaigns(account: &Account) -> anyhow::Result<String> {
    let (tests, beyond) = account.results.measured();
    let cells: Vec<_> = tests.into_iter().chain(beyond).collect();
    let claims = account.answers()?.into_iter().filter_map(|one| {
        let ours = format!("  by ours: {} ({})", one.ours.word(), one.our_figures);
        if one.group.is_empty() {
            let (published, figures) = (one.published.word(), &one.published_figures);
            return Some(format!("{}\n  by the paper's figures: {published} ({figures})\n{ours}", one.text));
        }
        (one.ours != ClaimVerdict::NotTestable).then(|| format!("{}\n{ours}", one.text))
    });
    let (header, rows) = results::overview(&cells);
    Ok(format!("{}\n\n{}", table(header, rows), claims.collect::<Vec<_>>().join("\n")))
}

/// Reads records of exchanges. Fails if the records are those of campaigns.
pub(super) fn read_exchanges(path: &Path) -> anyhow::Result<Results> {
    let results = read(path)?;
    if results.is_of_campaigns() {
        return Err(CommandFailure::usage(format!("{} has {NO_EXCHANGES}", path.display())).into());
    }
    Ok(results)
}

const NO_EXCHANGES: &str = "campaigns of isikligil-2017 and no records of subjects: rates with intervals are in its report.html \
    and figures.csv";

/// Reads the records of a directory, or of a file.
pub(super) fn read(path: &Path) -> anyhow::Result<Results> {
    read_runs(&runs_of(&[path.to_owned()]))
}

/// Lists the runs of paths: a directory without records stands for the runs in it.
pub(super) fn runs_of(paths: &[PathBuf]) -> Vec<PathBuf> {
    let of_path = |path: &PathBuf| {
        let has_none = path.is_dir() && record::file_of(path).is_none();
        let inside = if has_none { record::runs_in(path).unwrap_or_default() } else { Vec::new() };
        // A directory without any run is named in the error of reading it.
        if inside.is_empty() { vec![path.clone()] } else { inside }
    };
    paths.iter().flat_map(of_path).collect()
}

/// Reads the records of runs of one study.
pub(super) fn read_runs(runs: &[PathBuf]) -> anyhow::Result<Results> {
    let records = runs.iter().map(|run| records(run)).collect::<anyhow::Result<Vec<_>>>()?;
    let named = runs.iter().map(|run| run.display().to_string()).collect::<Vec<_>>().join(", ");
    let results = Results::of(record::joined(records));
    let results = results.map_err(|error| CommandFailure::usage(format!("{named}: {error}")))?;
    results.not_timed().iter().for_each(|not_timed_sentence| note(&format!("{named}: {not_timed_sentence}")));
    runs.iter().rev().try_fold(results, |results, run| with_features(results, run))
}

/// Adds the results of a run's feature probes, in place of those of a later run.
fn with_features(results: Results, run: &Path) -> anyhow::Result<Results> {
    let refused = |error: ProbedError| CommandFailure::usage(error.to_string());
    let probed = Probed::read(run).map_err(refused)?;
    let tried = tried::read(run).map_err(refused)?;
    let results = if probed.is_some() { results.with_probed(probed) } else { results };
    Ok(if tried.is_empty() { results } else { results.with_tried(tried) })
}

/// Reads the records of one run.
fn records(path: &Path) -> anyhow::Result<Vec<ForkRecord>> {
    let hint = || {
        let is_of_campaigns = path.join(CAMPAIGNS).is_file();
        let none = "no records: stentor lab run STUDY --out DIR makes some";
        let what = if is_of_campaigns { NO_EXCHANGES } else { none };
        CommandFailure::usage(format!("{} has {what}", path.display()))
    };
    if !path.exists() {
        let sentence = format!("there is no {}: stentor lab run STUDY --out DIR makes one", path.display());
        return Err(CommandFailure::usage(sentence).into());
    }
    if path.is_dir() && record::file_of(path).is_none() {
        return Err(hint().into());
    }
    let records = if path.is_dir() { record::read_directory(path) } else { record::read(path) };
    let records = records.map_err(|error| CommandFailure::usage(error.to_string()))?;
    if records.is_empty() { Err(hint().into()) } else { Ok(records) }
}

/// Gathers the remarks of a report, which are not in the records.
fn remarks(results: &Results, runs: &[PathBuf]) -> Remarks {
    let directories: Vec<PathBuf> = runs.iter().map(|run| directory_of(run)).collect();
    let names: Vec<String> = directories.iter().map(|directory| name_of(directory)).collect();
    let raw_files = directories.iter().map(|directory| raw_files(results, directory)).sum();
    let provenance = match &directories[..] {
        [directory] if results.is_of_campaigns() => provenance(directory),
        _ => Value::Null,
    };
    let command = provenance["command"].as_str().map_or_else(
        || {
            let run = |(directory, name): (&PathBuf, &String)| {
                format!("{} --out {name}\n", again(&results.study, &directory.join(PLAN)))
            };
            let runs: String = directories.iter().zip(&names).map(run).collect();
            format!("{runs}stentor lab report {} --html report.html", names.join(" "))
        },
        str::to_owned,
    );
    let name = names.join(", ");
    let Some(plan) = directories.first().and_then(|directory| study_plan(&results.study, directory)) else {
        return Remarks { command, directory: name, raw_files, ..Remarks::default() };
    };
    let unserved = plan.unserved.iter().map(UnservedPart::not_run);
    let not_here = plan.not_here.into_iter().chain(unserved).map(|one| (one.what, one.reason)).collect();
    let on_figures = if results.is_of_campaigns() { on_figures(results) } else { Vec::new() };
    let (differences, threats) = (plan.differences, plan.threats);
    let directory = name;
    Remarks {
        differences,
        threats,
        not_here,
        on_figures,
        command,
        directory,
        provenance,
        raw_files,
        ..Remarks::default()
    }
}

/// Returns the plan of a study: a published one's, or the user's, which the run recorded.
fn study_plan(study: &str, directory: &Path) -> Option<StudyPlan> {
    let shipped = StudyPlan::shipped(study).ok().flatten();
    shipped.or_else(|| StudyPlan::own(recorded_plan(&directory.join(PLAN))[OWN_PLAN].as_str()?).ok())
}

/// Reads the recorded plan of a run; null if there is none.
fn recorded_plan(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap_or_default()).unwrap_or_default()
}

/// Returns the directory of a run.
fn directory_of(run: &Path) -> PathBuf {
    if run.is_dir() { run.to_owned() } else { run.parent().map(Path::to_owned).unwrap_or_default() }
}

/// Returns the name of a directory; its full path would be of no use to readers elsewhere.
fn name_of(directory: &Path) -> String {
    directory.file_name().map_or_else(|| "results".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Reads the provenance of campaigns, or their plan if the run did not end, because the provenance is written last.
fn provenance(directory: &Path) -> Value {
    let object = |name: &str| serde_json::from_str(&std::fs::read_to_string(directory.join(name)).ok()?).ok();
    object(PROVENANCE).or_else(|| object(PLAN)).unwrap_or_default()
}

/// Lists the notes on published figures.
fn on_figures(results: &Results) -> Vec<String> {
    let figures = results.dossier.iter().flat_map(|dossier| dossier.figures().iter());
    let noted = figures.filter(|figure| !figure.note.is_empty());
    let notes = noted.map(|figure| {
        let (source, experiment, metric) = (&figure.source, &figure.experiment, &figure.metric);
        format!("{source}, {experiment} {metric} = {}: {}", figure.value, figure.note)
    });
    notes.collect()
}

/// Counts the existing files of raw samples that the records name.
fn raw_files(results: &Results, directory: &Path) -> usize {
    let named = results.records.iter().flat_map(|record| &record.raw);
    named.filter(|raw| directory.join(&raw.path).is_file()).count()
}

/// Returns the command that repeats a run, of which a user's own plan is expected in a file of the study's name, with the options of its plan: profile, link, seed, samples, and selected parts.
fn again(study: &str, plan: &Path) -> String {
    let plan = recorded_plan(plan);
    let study = match plan[OWN_PLAN].is_string() {
        true => format!("--plan {study}.toml"),
        false => study.to_owned(),
    };
    let profile = plan["profile"].as_str().filter(|profile| ["quick", "standard", "full"].contains(profile));
    let options = [
        profile.map(|profile| format!(" --{profile}")),
        plan["link"].as_str().map(|link| format!(" --link {link}")),
        plan["seed"].as_u64().map(|seed| format!(" --seed {seed}")),
        plan["samples"].as_u64().map(|samples| format!(" --samples {samples}")),
    ];
    let requested = plan[ASKED].as_array().into_iter().flatten().filter_map(Value::as_str);
    let requested = requested.map(|word| {
        let is_plain = !word.contains(|letter: char| letter.is_whitespace() || "'\"$`\\".contains(letter));
        if is_plain { format!(" {word}") } else { format!(" '{}'", word.replace('\'', "'\\''")) }
    });
    let options: String = options.into_iter().flatten().chain(requested).collect();
    format!("stentor lab run {study}{options}")
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

fn object(account: &Account, written: &[String]) -> Value {
    let results = &account.results;
    let claims = account.verdicts.iter().flat_map(|verdicts| &verdicts.claims).map(|one| {
        let finding = |finding: &results::Finding| {
            json!({
                "verdict": finding.verdict,
                "p": finding.p,
                "deterministic": finding.is_deterministic,
                "why": finding.why,
                "run": finding.judgment.is_some(),
            })
        };
        json!({
            "id": one.judged.statement.id,
            "text": one.judged.statement.text,
            "verdict_published": one.judged.published.verdict,
            "verdict_ours": ours(one),
            "basis": one.judged.statement.basis,
            "period": finding(&one.period),
            "modern": finding(&one.modern),
            "alternatives": one.alternatives.iter().map(|other| json!({
                "setting": other.setting,
                "period": finding(&other.period),
                "modern": finding(&other.modern),
            })).collect::<Vec<_>>(),
        })
    });
    json!({
        "study": results.study,
        "not_timed": results.not_timed(),
        "cells": results.cells.len(),
        "forks": results.cells.iter().map(|cell| cell.forks.len()).sum::<usize>(),
        "forks_invalid": results.uncounted().count(),
        "period": account.verdicts.as_ref().map(|verdicts| verdicts.period),
        "setting": account.verdicts.as_ref().map(|verdicts| {
            json!({"period": verdicts.period_setting, "modern": verdicts.modern_setting})
        }),
        "claims": claims.collect::<Vec<_>>(),
        "plots": account.plots.iter().map(|plot| json!({"id": plot.id, "title": plot.title})).collect::<Vec<_>>(),
        "written": written,
    })
}

fn ours(one: &results::ClaimFindings) -> Value {
    one.speaking().map_or_else(|| json!("not_run"), |finding| json!(finding.verdict))
}

fn describe(account: &Account, written: &[String]) -> String {
    let results = &account.results;
    let forks: usize = results.cells.iter().map(|cell| cell.forks.len()).sum();
    let mut lines = vec![format!(
        "{}: {} cells, {forks} forks that count, {} that do not",
        results.study,
        results.cells.len(),
        results.uncounted().count()
    )];
    lines.extend(results.not_timed());
    if let Some(verdicts) = &account.verdicts {
        let count = |wanted: ClaimVerdict| {
            let ours = verdicts.claims.iter().map(results::ClaimFindings::best);
            ours.filter(|finding| finding.verdict == wanted).count()
        };
        let counts: Vec<String> = ClaimVerdict::ALL
            .into_iter()
            .map(|verdict| format!("{} {}", count(verdict), verdict.word()))
            .collect();
        let software = if verdicts.period {
            "the period's software"
        } else {
            "today's software only, so that none speaks for the paper"
        };
        let software = if results.probed.is_some() {
            format!("{software}, and by probes of our own faces")
        } else {
            software.to_owned()
        };
        lines.push(format!("claims, by {software}: {}", counts.join(", ")));
        lines.extend(Some(verdicts.judged_at()).filter(|sentence| !sentence.is_empty()));
    }
    lines.push(files_text(written));
    lines.join("\n")
}

fn files_text(written: &[String]) -> String {
    if written.is_empty() {
        return "nothing was written: give --html FILE, --md FILE, --csv FILE or --svg DIR".to_owned();
    }
    written.iter().map(|file| format!("written: {file}")).collect::<Vec<_>>().join("\n")
}
