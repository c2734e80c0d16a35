//! The artifact of a study: what a stranger needs to judge a run and to repeat it.
//!
//! A claim keeps its stable id everywhere; the numbers C1, C2 … of an artifact only put claims in an order, as reviewers expect it.

mod appendix;
mod claims_data;
mod crate_metadata;
mod reproduce;
mod sha256;

use crate::claims::{ClaimVerdict, ClaimsError, Dossier};
use crate::results::Account;
use serde::Serialize;
use std::collections::BTreeSet;

pub use appendix::{appendix, licenses};
pub use claims_data::{FILE as CLAIMS_FILE, claims_data};
pub use crate_metadata::{CONFORMS_TO, CrateFile, crate_metadata};
pub use reproduce::reproduce;
pub use sha256::Sha256;

/// Minutes of a person's attention that a repetition takes.
const HUMAN_MINUTES: u32 = 5;
/// Seconds of a minute.
const MINUTE_SECONDS: f64 = 60.0;

/// The contents of an artifact, besides its files.
#[derive(Debug, Clone, Serialize)]
pub struct Artifact {
    /// The study.
    pub study: String,
    /// Title of the paper; empty for a study of a user's own.
    pub paper: String,
    /// Version of the laboratory.
    pub version: String,
    /// The commit of its sources.
    pub commit: String,
    /// End of the last fork, as RFC 3339.
    pub ended: String,
    /// The machine, in facts.
    pub machine: Vec<(String, String)>,
    /// Claims, C1 and so on.
    pub claims: Vec<ArtifactClaim>,
    /// Experiments, E1 and so on.
    pub experiments: Vec<ArtifactExperiment>,
    /// Captures of packets.
    pub captures: Captures,
    /// Debian packages for the foreign subjects of the run.
    pub packages: BTreeSet<String>,
    /// Foreign subjects of the run.
    pub subjects: BTreeSet<String>,
}

/// A claim in an artifact.
#[derive(Debug, Clone, Serialize)]
pub struct ArtifactClaim {
    /// Its number in the artifact.
    pub number: String,
    /// Its stable id.
    pub id: String,
    /// The claim.
    pub text: String,
    /// Its place in the paper.
    pub source: String,
    /// The verdict of the paper's own tables.
    pub published: ClaimVerdict,
    /// The verdict of the run, which a repetition should give again; absent if the run does not bear on the claim.
    pub expected: Option<ClaimVerdict>,
    /// Experiments that decide it.
    pub experiments: Vec<String>,
}

/// An experiment of an artifact.
#[derive(Debug, Clone, Serialize)]
pub struct ArtifactExperiment {
    /// Its number in the artifact.
    pub number: String,
    /// Its purpose, in a sentence.
    pub text: String,
    /// The command, from the folder of the artifact.
    pub command: String,
    /// Minutes of a person.
    pub human_minutes: u32,
    /// Minutes of the machine, as in the run.
    pub machine_minutes: u32,
}

/// The captured packets of a run, of which there should be one file for each cell.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Captures {
    /// Cells with a capture in the artifact.
    pub cells_with: usize,
    /// Cells of the run.
    pub cells: usize,
    /// The reason why some have none; empty if all have one.
    pub why_missing: String,
}

/// Facts about a run that are not in its account.
#[derive(Debug, Clone, Default)]
pub struct ArtifactRun {
    /// The command that repeats it, with `--out again` and from the folder of the artifact.
    pub command: String,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Cells with a capture.
    pub cells_captured: usize,
    /// Debian packages for its foreign subjects.
    pub packages: BTreeSet<String>,
    /// Ids of its foreign subjects.
    pub subjects: BTreeSet<String>,
}

impl Artifact {
    /// Describes the artifact of a run.
    pub fn of(account: &Account, run: ArtifactRun) -> Result<Self, ClaimsError> {
        let results = &account.results;
        let first = results.records.first().map(|record| record.env.clone()).unwrap_or_default();
        let ended = results.records.iter().map(|record| record.ended.as_str()).max().unwrap_or_default();
        let paper = results.dossier.as_ref().map(|dossier| dossier.paper().title.clone());
        let machine = [
            ("processor", format!("{} × {}", first.cores, first.cpu)),
            ("memory", format!("{} MiB", first.memory_bytes >> 20)),
            ("kernel", first.kernel.clone()),
            ("between the halves", first.rig.clone()),
        ];
        Ok(Self {
            study: results.study.clone(),
            paper: paper.unwrap_or_default(),
            version: first.tool_version.clone(),
            commit: first.commit,
            ended: ended.to_owned(),
            machine: machine.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect(),
            claims: claims(account)?,
            experiments: experiments(account, &run),
            captures: captures(results.cells.len(), run.cells_captured),
            packages: run.packages,
            subjects: run.subjects,
        })
    }
}

fn claims(account: &Account) -> Result<Vec<ArtifactClaim>, ClaimsError> {
    let Some(dossier) = Dossier::open(&account.results.study)? else { return Ok(Vec::new()) };
    let found = account.verdicts.iter().flat_map(|verdicts| &verdicts.claims);
    let verdict = |id: &str| {
        let mut of_id = found.clone().filter(|one| one.judged.statement.id == id);
        of_id.next().and_then(|one| one.speaking()).map(|finding| finding.verdict)
    };
    let claims = dossier.judge(None)?.into_iter().zip(1..).map(|(one, number)| {
        let statement = one.statement;
        ArtifactClaim {
            number: format!("C{number}"),
            expected: verdict(&statement.id),
            experiments: vec![if statement.is_probed() { "E2".to_owned() } else { "E1".to_owned() }],
            id: statement.id,
            text: statement.text,
            source: statement.source,
            published: one.published.verdict,
        }
    });
    Ok(claims.collect())
}

fn experiments(account: &Account, run: &ArtifactRun) -> Vec<ArtifactExperiment> {
    let study = &account.results.study;
    let minutes = (run.seconds / MINUTE_SECONDS).ceil() as u32;
    let experiment = |number: &str, text: &str, command: String, machine_minutes: u32| ArtifactExperiment {
        number: number.to_owned(),
        text: text.to_owned(),
        command,
        human_minutes: HUMAN_MINUTES,
        machine_minutes,
    };
    let judged = format!("bin/stentor-lab claims {study} --record again");
    let mut all =
        vec![experiment("E1", "Runs every cell again, in fresh processes.", run.command.clone(), minutes)];
    if account.results.dossier.is_some() {
        let text =
            "Judges every claim by the new records, and by the probes of features where the study has them.";
        all.push(experiment("E2", text, judged, 1));
    }
    all
}

fn captures(cells: usize, cells_with: usize) -> Captures {
    let why_missing = match cells - cells_with.min(cells) {
        0 => String::new(),
        missing => format!(
            "{missing} of {cells} cells have no capture: the folder of the run no longer has the file, or its link saw no packets"
        ),
    };
    Captures { cells_with, cells, why_missing }
}

#[cfg(test)]
mod tests;
