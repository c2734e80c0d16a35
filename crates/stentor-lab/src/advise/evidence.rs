//! The evidence of advice: times of exchanges and verdicts, from given runs or from the committed ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::CHOICES;
use super::push;
use super::rules::rules;
use crate::claims::ClaimVerdict;
use crate::claims::ClaimsError;
use crate::results::{METRICS, MeasuredCell, Results, part, verdicts};

/// Evidence from the committed records of `docs/studies`, one object per line; see [`write()`].
const COMMITTED: &str = include_str!("committed.jsonl");
/// Factors of cells with special exchanges: interrupted ones, parts of a whole, or a fixed reply.
const UNUSUAL: [&str; 3] = ["interruption", "page", "reply"];
/// The variant in which the clock stops when a response begins.
const STOPPED_EARLY: &str = "code";
/// Rounding factor for milliseconds: three decimals are kept.
const MS_DECIMALS: f64 = 1000.0;
/// The folder of the runs that advice may cite: each study has a folder there. Runs of the server as a subject, in its folder
/// `server`, measured no transport of their own.
pub const FOLDER: &str = "docs/studies";
/// Letters of the date in a timestamp.
const DATE_LETTERS: usize = 10;

/// The evidence from the runs of one study.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyEvidence {
    /// The runs.
    pub source: EvidenceSource,
    /// Cells with a measured time.
    pub timed: Vec<Timed>,
    /// Verdicts on claims, by id.
    pub(super) verdicts: BTreeMap<String, EvidenceVerdict>,
}

/// The origin of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceSource {
    /// The study.
    pub study: String,
    /// The location of its records.
    pub records: String,
    /// The date of the last record.
    pub date: String,
}

/// A cell with a measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Transport and format.
    pub choice: String,
    /// Part of the study, and variant.
    pub part: String,
    /// The subject.
    pub subject: String,
    /// True if both halves are built-in subjects.
    pub is_ours: bool,
    /// Levels by factor.
    pub levels: BTreeMap<String, String>,
    /// Name of the link's profile.
    pub link: String,
    /// Bytes of the larger body, of the request or of the response.
    pub body_bytes: u64,
    /// Median duration of an exchange, in milliseconds, as geometric mean over the forks.
    pub median_ms: f64,
    /// Lower end of its interval.
    pub low_ms: Option<f64>,
    /// Upper end.
    pub high_ms: Option<f64>,
    /// Number of measured forks.
    pub forks: usize,
}

/// Our verdict on a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct EvidenceVerdict {
    /// The verdict.
    pub(super) verdict: ClaimVerdict,
    /// The compared part, if the claim could be tested in part only.
    pub(super) part: Option<String>,
}

/// A line of the committed file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EvidenceLine {
    Source(EvidenceSource),
    Timed(Timed),
    Verdict {
        claim: String,
        #[serde(rename = "told")]
        verdict: EvidenceVerdict,
    },
}

impl StudyEvidence {
    /// Extracts evidence from results.
    pub fn of(results: &Results, records: &str) -> Result<Self, ClaimsError> {
        let last = results.records.iter().map(|record| record.ended.as_str()).max().unwrap_or_default();
        let date = last.chars().take(DATE_LETTERS).collect();
        let source = EvidenceSource { study: results.study.clone(), records: records.to_owned(), date };
        let timed = results.cells.iter().filter_map(|cell| Timed::of(results, cell)).collect();
        Ok(Self { source, timed, verdicts: verdicts_of(results)? })
    }

    /// Returns the evidence of the committed records.
    #[must_use]
    pub fn committed() -> Vec<Self> {
        read(COMMITTED)
    }

    /// Adds the committed evidence of all studies that `given` does not contain.
    #[must_use]
    pub fn with_committed(mut given: Vec<Self>) -> Vec<Self> {
        let studies: Vec<String> = given.iter().map(|one| one.source.study.clone()).collect();
        given.extend(Self::committed().into_iter().filter(|one| !studies.contains(&one.source.study)));
        given
    }
}

impl Timed {
    fn of(results: &Results, cell: &MeasuredCell) -> Option<Self> {
        let choice = push::choice(dialect_of(&cell.client), &cell.levels);
        let is_unusual = cell.levels.keys().any(|factor| UNUSUAL.contains(&factor.as_str()));
        let is_finished = cell.outcome().is_none();
        if is_unusual || !is_finished || cell.variant == STOPPED_EARLY || !CHOICES.contains(&choice) {
            return None;
        }
        let estimate = cell.estimate(&METRICS[0])?;
        Some(Self {
            choice: choice.to_owned(),
            part: results.part(&cell.experiment, &cell.variant),
            subject: cell.name.clone(),
            is_ours: cell.stack == "rust",
            levels: cell.levels.clone(),
            link: cell.link.clone(),
            body_bytes: cell.body_bytes()?.round() as u64,
            median_ms: rounded(estimate.mean),
            low_ms: estimate.low.map(rounded),
            high_ms: estimate.high.map(rounded),
            forks: estimate.count,
        })
    }
}

/// Returns the dialect, which is the first part of a subject's id.
fn dialect_of(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

fn rounded(ms: f64) -> f64 {
    (ms * MS_DECIMALS).round() / MS_DECIMALS
}

/// Returns our verdicts on the claims cited by rules, as far as the results bear on them.
fn verdicts_of(results: &Results) -> Result<BTreeMap<String, EvidenceVerdict>, ClaimsError> {
    let mut all = BTreeMap::new();
    let rules = rules()?;
    let cited = |id: &str| {
        let claim = format!("{} {id}", results.study);
        rules.iter().find(|rule| rule.claim.as_ref() == Some(&claim))
    };
    for one in verdicts(results)?.into_iter().flat_map(|all| all.claims) {
        let id = one.judged.statement.id.clone();
        let Some(rule) = cited(&id) else { continue };
        let verdict = one.best().verdict;
        if !is_silent(verdict) {
            all.insert(id, EvidenceVerdict { verdict, part: None });
        } else if let Some(check) = &rule.part {
            let judgment = part(results, check)?;
            let compared = judgment.comparisons.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
            if !is_silent(judgment.verdict) {
                all.insert(
                    id,
                    EvidenceVerdict { verdict: judgment.verdict, part: Some(compared.join("; ")) },
                );
            }
        }
    }
    Ok(all)
}

/// Returns true if a verdict says nothing about the claim.
const fn is_silent(verdict: ClaimVerdict) -> bool {
    matches!(verdict, ClaimVerdict::SetByExperiment | ClaimVerdict::NotTestable)
}

/// Writes evidence in the format of the committed file; `cargo run -p stentor-lab --example committed-figures` does so with `docs/studies`.
pub fn write(all: &[StudyEvidence]) -> serde_json::Result<String> {
    let lines = all.iter().flat_map(|one| {
        let verdicts = one.verdicts.iter();
        let verdicts = verdicts
            .map(|(claim, verdict)| EvidenceLine::Verdict { claim: claim.clone(), verdict: verdict.clone() });
        let timed = one.timed.iter().cloned().map(EvidenceLine::Timed);
        std::iter::once(EvidenceLine::Source(one.source.clone())).chain(verdicts).chain(timed)
    });
    lines.map(|line| Ok(serde_json::to_string(&line)? + "\n")).collect()
}

/// Parses the output of [`write()`]; invalid lines are ignored.
fn read(text: &str) -> Vec<StudyEvidence> {
    let mut all: Vec<StudyEvidence> = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<EvidenceLine>(line).ok()) {
        match (line, all.last_mut()) {
            (EvidenceLine::Source(source), _) => {
                all.push(StudyEvidence { source, timed: Vec::new(), verdicts: BTreeMap::new() });
            }
            (EvidenceLine::Timed(timed), Some(last)) => last.timed.push(timed),
            (EvidenceLine::Verdict { claim, verdict }, Some(last)) => {
                last.verdicts.insert(claim, verdict);
            }
            (_, None) => {}
        }
    }
    all
}
