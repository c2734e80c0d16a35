//! `stentor lab claims`: claims of published studies, judged by their own tables and by our measurements.

mod description;

use super::report::{read_runs, runs_of};
use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::claims::agreement::CodingAgreement;
use stentor_lab::claims::figures::Figures;
use stentor_lab::claims::judge::Judgment;
use stentor_lab::claims::{Analysis, ClaimVerdict, Derived, Dossier, Judged, STUDIES};
use stentor_lab::probes::Probed;
use stentor_lab::record::file_of;
use stentor_lab::results::{ClaimFindings, verdicts};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::Output;

/// The file in which a record keeps its figures.
const FIGURES: &str = "figures.csv";

/// Judge the claims of a published study, by its own tables and by a record of ours
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab claims nunes-2014 --published-only
  stentor lab claims cai-2009 --published-only --json
  stentor lab claims anacleto-2012 --record results
  stentor lab claims anacleto-2012 --record monday --record tuesday --record thursday

Claims that the paper's own tables contradict come first, with the cells that contradict them. A record is a run, or your own
figures. For a directory with records.jsonl the verdicts are those of lab report: only software of the paper's period counts for
the paper, and claims about features use probes.json. A figures.csv has the columns of published.csv, and low and high for the
bounds of each figure. Exits 0 when every claim has a verdict and the paper's tables still give the recorded ones.")]
pub(crate) struct ClaimsArgs {
    /// Name of the study
    #[arg(value_parser = PossibleValuesParser::new(STUDIES))]
    study: String,
    /// Judge by the paper's own tables alone
    #[arg(long, conflicts_with = "record")]
    published_only: bool,
    /// Measurements to judge by as well; may be repeated for several runs, or name a directory of runs
    #[arg(long, value_name = "DIR")]
    record: Vec<PathBuf>,
}

/// The complete account of a study.
struct ClaimsAccount {
    dossier: Dossier,
    judged: Vec<Judged>,
    derived: Vec<Derived>,
    analyses: Vec<Analysis>,
    /// The agreement of two codings of statements; `None` for a study without them.
    agreement: Option<CodingAgreement>,
    /// Levels at which a run was judged; empty without a run.
    judged_at: String,
}

impl ClaimsArgs {
    /// Judges the claims and prints the verdicts.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let unknown = || CommandFailure::usage(format!("there is no study {}", self.study));
        let dossier = Dossier::open(&self.study)?.ok_or_else(unknown)?;
        let (derived, analyses) = (dossier.derive()?, dossier.analyse()?);
        let (judged, judged_at) = self.judge(&dossier)?;
        let agreement = dossier.agreement()?;
        let account = ClaimsAccount { judged, dossier, derived, analyses, agreement, judged_at };
        output.result(&account.object(), || description::describe(&account))?;
        Ok(if account.is_as_recorded() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Judges by the given evidence: a run in the same way as its report, a file of figures as it is, or the tables alone.
    fn judge(&self, dossier: &Dossier) -> anyhow::Result<(Vec<Judged>, String)> {
        let runs = runs_of(&self.record);
        match &runs[..] {
            [] => Ok((dossier.judge(None)?, String::new())),
            [own] if !is_run(own) => Ok((dossier.judge(Some(&figures(own)?))?, String::new())),
            runs => by_runs(&self.study, runs),
        }
    }
}

fn is_run(record: &Path) -> bool {
    file_of(record).is_some()
        || record.extension().is_some_and(|end| end == "jsonl" || end == "ndjson" || end == "zst")
}

/// Judges by the records of runs, with the same corrections as their report.
fn by_runs(study: &str, runs: &[PathBuf]) -> anyhow::Result<(Vec<Judged>, String)> {
    let results = read_runs(runs)?;
    if results.study != study {
        let named = runs.iter().map(|run| run.display().to_string()).collect::<Vec<_>>().join(", ");
        let sentence = format!("{named} is a run of {}, not of {study}", results.study);
        return Err(CommandFailure::usage(sentence).into());
    }
    let found = verdicts(&results)?;
    let judged_at = found.as_ref().map(stentor_lab::results::Verdicts::judged_at).unwrap_or_default();
    let claims = found.into_iter().flat_map(|found| found.claims);
    Ok((claims.map(ClaimFindings::into_judged).collect(), judged_at))
}

impl ClaimsAccount {
    fn is_as_recorded(&self) -> bool {
        self.judged.iter().all(Judged::is_as_recorded)
    }

    fn object(&self) -> Value {
        json!({
            "study": self.dossier.paper(),
            "claims": self.judged.iter().map(claim).collect::<Vec<_>>(),
            "derived": self.derived,
            "effects": self.analyses,
            "agreement": self.agreement,
            "judged_at": self.judged_at,
            "ok": self.is_as_recorded(),
        })
    }
}

fn claim(one: &Judged) -> Value {
    let statement = &one.statement;
    json!({
        "id": statement.id,
        "kind": statement.kind,
        "text": statement.text,
        "quote": statement.quote,
        "source": statement.source,
        "verdict_published": one.published.verdict,
        "verdict_recorded": statement.recorded,
        "verdict_ours": one.ours.as_ref().map_or_else(|| json!("not_run"), |ours| json!(ours.verdict)),
        "verdict_graded": one.ours.as_ref().and_then(Judgment::grade).map(|grade| grade.to_string()),
        "power": one.ours.as_ref().and_then(|ours| ours.power),
        "published": evidence(&one.published),
        "ours": one.ours.as_ref().map(evidence),
        "constructed": one.ours.as_ref().is_some_and(|ours| ours.verdict == ClaimVerdict::SetByExperiment),
        "at_settings": one.at_settings,
        "implied": statement.implied,
        "needs": statement.needs,
        "basis": statement.basis,
        "note": statement.note,
    })
}

fn evidence(judgment: &Judgment) -> Value {
    json!({ "comparisons": judgment.comparisons, "missing": judgment.missing })
}

/// Reads a file of figures, or that of a directory.
fn figures(record: &Path) -> anyhow::Result<Figures> {
    let path = if record.is_dir() { record.join(FIGURES) } else { record.to_owned() };
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let figures = Figures::parse(text.trim_start_matches('\u{feff}'));
    let mut figures =
        figures.map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))?;
    // Claims about features are judged by the probes of the record, if it has any.
    let probed = Probed::read(record).map_err(|error| CommandFailure::usage(error.to_string()))?;
    figures.extend(probed.map(|probed| probed.figures()).unwrap_or_default());
    Ok(figures)
}
