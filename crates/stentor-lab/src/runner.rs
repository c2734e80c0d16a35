//! The runner of a plan's cells: fresh processes for each fork, in random order; records are kept as forks end.
//!
//! An invalid fork (the machine was busy, frames were late, an exchange failed) is repeated at most twice. Every attempt is kept, and
//! invalid ones are never averaged. A subject with wrong answers is refused, and none of its exchanges are timed.

mod environment;
mod fork;
pub mod gate;
mod interruption;
mod journal;
mod keeper;
mod pages;
pub mod power;
pub mod rigged;
pub mod roster;
mod samples;
pub mod seed;
pub mod testbed;
mod watch;

pub use environment::environment;
pub use fork::time_of_day;
pub use journal::{ASKED, OWN_PLAN, PLAN, RAW};
pub use pages::late_pages_percent;
pub use watch::InstrumentWatch;

use crate::looks::{LookFindings, Looks};
use crate::order::rounds;
use crate::plan::{Cell, NotRun};
use crate::record::{ForkRecord, NOT_MADE, Quantiles, RECORDS, RecordError};
use crate::subject::SubjectError;
use crate::subject::certificate;
use fork::ForkAttempt;
use gate::ValidityLimits;
use journal::Journal;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use testbed::Testbed;

/// The settings of a run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The study's id.
    pub study: String,
    /// The directory of the results.
    pub out: PathBuf,
    /// If set, the run continues in that directory.
    pub resume: bool,
    /// The seed of the run: of the order, and a part of the seed of each fork; see [`seed::ForkIdentity`].
    pub seed: u64,
    /// The limits beyond which a fork is invalid and is not attempted again.
    pub gate: ValidityLimits,
    /// Timeout for a silent subject.
    pub patience: Duration,
    /// The energy models.
    pub models: power::Models,
    /// If set, clocks that are set by time queries are evaluated beside the shared clock.
    pub queries_clocks: bool,
    /// The commit of the program; written into every record.
    pub commit: String,
    /// Settings that must be equal to resume in a directory.
    pub plan: Value,
    /// The planned looks at the results; without them, every round is run.
    pub looks: Option<PlannedLooks>,
}

/// Looks that can end a run.
#[derive(Debug, Clone)]
pub struct PlannedLooks {
    /// Their rounds.
    pub looks: Looks,
    /// Judges the records so far, by the share of a difference whose exclusion settles a comparison.
    pub judge: fn(&[ForkRecord], f64) -> Result<LookFindings, String>,
}

/// A progress event of a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The run has started.
    Begun {
        /// Remaining forks.
        forks: u64,
        /// Their estimated duration, in seconds.
        seconds: f64,
    },
    /// An attempt has ended.
    Attempt {
        /// Completed forks.
        done: u64,
        /// Estimated duration of the remaining forks, in seconds.
        seconds_left: f64,
        /// The record of the attempt.
        record: &'a ForkRecord,
    },
    /// A subject was refused or could not be started; its cells are left out.
    LeftOut(&'a NotRun),
    /// The results were looked at after a round.
    Looked {
        /// The round.
        round: u32,
        /// What was seen.
        findings: LookFindings,
    },
}

/// The summary of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunSummary {
    /// Cells of the plan.
    pub cells: usize,
    /// Cells with their minimum of valid forks.
    pub cells_complete: usize,
    /// Valid forks.
    pub forks_valid: u64,
    /// Invalid attempts.
    pub forks_invalid: u64,
    /// Parts that were not run, with the reasons.
    pub not_run: Vec<NotRun>,
    /// Pairs of subjects that were refused or could not be started; their cells are not among `cells`.
    pub refused: usize,
    /// Duration, in seconds.
    pub seconds: f64,
    /// Resource use of the laboratory itself.
    pub instrument: InstrumentSummary,
}

/// Resource use of the laboratory itself.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct InstrumentSummary {
    /// Processor time while subjects ran, in seconds.
    pub cpu_seconds: f64,
    /// The 99th percentile of wake-up lateness in the worst valid fork, in microseconds.
    pub lateness_p99_us: f64,
}

/// Errors that end a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Records cannot be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The directory cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The directory already holds results.
    #[error("{0} is not empty: name a new directory with --out, or go on there with --resume")]
    InUse(String),
    /// The directory holds results of other settings.
    #[error(
        "{0} was made with other settings: give the same study, profile, scale, seed, link, latency and samples"
    )]
    OtherSettings(String),
    /// The adapter cannot continue.
    #[error("{0}")]
    Adapter(String),
    /// The results so far cannot be judged, so that no look can end the run.
    #[error("the results so far cannot be judged: {0}")]
    Look(String),
    /// A subject could not be used at all.
    #[error(transparent)]
    Subject(#[from] SubjectError),
}

/// The result of an attempt.
pub enum AttemptResult {
    /// A record, valid or not.
    Kept(Box<ForkRecord>),
    /// The cell cannot be run here, for this reason.
    Skipped(String),
    /// The cell's subjects cannot be measured, for this reason.
    LeftOut(String),
}

/// A cell, as seen by the scheduler.
pub trait Scheduled {
    /// Returns the key of a fork's records.
    fn key(&self, fork: u32) -> String;
    /// Returns its number of forks and the minimum of valid ones.
    fn forks(&self) -> (u32, u32);
    /// Returns the estimated duration of a fork, in seconds.
    fn fork_seconds(&self) -> f64;
    /// Returns its label for one line of output.
    fn label_text(&self) -> String;
    /// Returns the name of its subject.
    fn subject(&self) -> String;
    /// Returns true if both cells have the same subject, so that a defect of the subject affects both.
    fn is_of_subject(&self, other: &Self) -> bool;
}

/// Runs forks of cells: pairs of subjects, or our server between emulators.
pub trait Adapter {
    /// Its cells.
    type Cell: Scheduled;

    /// Returns the name of the record file in the directory of a run.
    fn file(&self) -> &'static str;

    /// Prepares the directory of a run.
    fn begin(&mut self, directory: &Path) -> impl Future<Output = Result<(), RunError>>;

    /// Makes one attempt at a fork; an error ends the run.
    fn attempt(
        &mut self,
        cell: &Self::Cell,
        fork: u32,
        attempt: u32,
    ) -> impl Future<Output = Result<AttemptResult, RunError>>;
}

/// Runs cells of pairs of subjects until every fork is valid or out of attempts.
pub async fn run(
    cells: &[Cell],
    not_run: Vec<NotRun>,
    testbed: &mut dyn Testbed,
    settings: &Settings,
    report: &mut dyn FnMut(RunEvent<'_>),
) -> Result<RunSummary, RunError> {
    let is_encrypted = |cell: &Cell| cell.settings.get("tls").is_some_and(|level| level == "on");
    let encrypts = cells.iter().any(is_encrypted);
    let mut pairs = Pairs { testbed, settings, encrypts, directory: PathBuf::new() };
    run_with(&mut pairs, cells, not_run, settings, report).await
}

/// Runs cells until every fork is valid or out of attempts.
pub async fn run_with<A: Adapter>(
    adapter: &mut A,
    cells: &[A::Cell],
    not_run: Vec<NotRun>,
    settings: &Settings,
    report: &mut dyn FnMut(RunEvent<'_>),
) -> Result<RunSummary, RunError> {
    let began = Instant::now();
    let (mut journal, recorded) = Journal::open(settings, adapter.file())?;
    adapter.begin(journal.directory()).await?;
    let attempts_max = settings.gate.attempts_max;
    let mut state =
        RunState { cells, attempts_max, records: recorded, not_run, left_out: BTreeSet::new(), refused: 0 };
    let most = cells.iter().map(|cell| cell.forks().0).max().unwrap_or(0);
    let order = rounds(cells.len(), most, settings.seed);
    let mut steps: VecDeque<(usize, u32)> =
        order.into_iter().filter(|(place, fork)| state.is_left(*place, *fork)).collect();
    let mut pace = RemainingTime::new(steps.iter().map(|(place, _)| cells[*place].fork_seconds()));
    report(RunEvent::Begun { forks: steps.len() as u64, seconds: pace.left });
    let mut last_round = 0;
    while let Some((place, fork)) = steps.pop_front() {
        if state.is_settled(settings, last_round, fork, report)? {
            break;
        }
        last_round = fork;
        let cell = &cells[place];
        if state.left_out.contains(&place) {
            pace.skip(cell.fork_seconds());
            continue;
        }
        let attempt = state.attempts(cell, fork) + 1;
        let record = match adapter.attempt(cell, fork, attempt).await? {
            AttemptResult::Kept(record) => *record,
            AttemptResult::Skipped(reason) => {
                state.left_out.insert(place);
                state.not_run.push(NotRun { what: cell.label_text(), reason });
                continue;
            }
            AttemptResult::LeftOut(reason) => {
                report(RunEvent::LeftOut(state.leave_out(place, &reason)));
                continue;
            }
        };
        journal.add(&record)?;
        if state.is_over(&record) {
            pace.done(cell.fork_seconds());
        } else {
            // What disturbed the machine may be gone at the end of the round.
            steps.insert(steps.partition_point(|(_, round)| *round <= fork), (place, fork));
        }
        report(RunEvent::Attempt { done: pace.forks, seconds_left: pace.seconds_left(), record: &record });
        state.records.push(record);
    }
    Ok(state.summary(began.elapsed()))
}

/// The adapter for pairs of subjects; each fork has fresh processes.
struct Pairs<'a> {
    testbed: &'a mut dyn Testbed,
    settings: &'a Settings,
    encrypts: bool,
    directory: PathBuf,
}

impl Adapter for Pairs<'_> {
    type Cell = Cell;

    fn file(&self) -> &'static str {
        RECORDS
    }

    async fn begin(&mut self, directory: &Path) -> Result<(), RunError> {
        directory.clone_into(&mut self.directory);
        let wrong = |source| RunError::Io { path: directory.display().to_string(), source };
        std::fs::create_dir_all(directory.join(RAW)).map_err(wrong)?;
        if self.encrypts { Ok(certificate::make(directory)?) } else { Ok(()) }
    }

    async fn attempt(&mut self, cell: &Cell, fork: u32, attempt: u32) -> Result<AttemptResult, RunError> {
        let trial = ForkAttempt { cell, fork, attempt, settings: self.settings, raw: &self.directory };
        Ok(trial.run(self.testbed).await)
    }
}

impl Scheduled for Cell {
    fn key(&self, fork: u32) -> String {
        fork::key(self, fork)
    }

    fn forks(&self) -> (u32, u32) {
        (self.amount.forks, self.amount.forks_min)
    }

    fn fork_seconds(&self) -> f64 {
        self.fork_seconds
    }

    fn label_text(&self) -> String {
        Self::label_text(self)
    }

    fn subject(&self) -> String {
        let (client, server) = (&self.client.id, &self.server.id);
        let halves = if client == server { client.clone() } else { format!("{client} with {server}") };
        format!("{} ({halves})", self.label)
    }

    fn is_of_subject(&self, other: &Self) -> bool {
        (&self.client.id, &self.server.id, self.op) == (&other.client.id, &other.server.id, other.op)
    }
}

/// The state of a run.
struct RunState<'a, C> {
    cells: &'a [C],
    attempts_max: u32,
    records: Vec<ForkRecord>,
    not_run: Vec<NotRun>,
    /// Indexes of cells that cannot be run here, or that have a refused subject.
    left_out: BTreeSet<usize>,
    /// Pairs of subjects that are refused.
    refused: usize,
}

impl<C: Scheduled> RunState<'_, C> {
    fn of<'r>(&'r self, cell: &'r C, fork: u32) -> impl Iterator<Item = &'r ForkRecord> {
        let key = cell.key(fork);
        self.records.iter().filter(move |record| record.key() == key)
    }

    fn attempts(&self, cell: &C, fork: u32) -> u32 {
        self.of(cell, fork).map(|record| record.attempt).max().unwrap_or(0)
    }

    fn is_left(&self, place: usize, fork: u32) -> bool {
        let cell = &self.cells[place];
        fork <= cell.forks().0 && !self.of(cell, fork).any(|record| self.is_over(record))
    }

    /// Returns true if a fork needs no further attempt: it is valid, out of attempts, or cannot be run here.
    fn is_over(&self, record: &ForkRecord) -> bool {
        record.valid || record.attempt >= self.attempts_max || record.outcome == NOT_MADE
    }

    /// Looks at the results if a look is due between two rounds; returns true if they need no further rounds.
    fn is_settled(
        &self,
        settings: &Settings,
        last_round: u32,
        round: u32,
        report: &mut dyn FnMut(RunEvent<'_>),
    ) -> Result<bool, RunError> {
        let due = settings.looks.as_ref().filter(|planned| planned.looks.is_due(last_round, round));
        let Some(PlannedLooks { looks, judge }) = due else { return Ok(false) };
        let findings = judge(&self.records, looks.effect_share).map_err(RunError::Look)?;
        report(RunEvent::Looked { round: round - 1, findings });
        Ok(findings.open == 0)
    }

    /// Leaves out every cell of the same subject, and returns the entry for it.
    fn leave_out(&mut self, place: usize, reason: &str) -> &NotRun {
        let wrong = &self.cells[place];
        let same = self.cells.iter().enumerate().filter(|(_, cell)| cell.is_of_subject(wrong));
        self.left_out.extend(same.map(|(place, _)| place));
        self.refused += 1;
        self.not_run.push(NotRun { what: wrong.subject(), reason: reason.to_owned() });
        // The entry was pushed just before.
        &self.not_run[self.not_run.len() - 1]
    }

    fn summary(self, took: Duration) -> RunSummary {
        let mut valid: BTreeMap<String, u64> = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.valid) {
            *valid.entry(record.key()).or_default() += 1;
        }
        let forks = |cell: &C| {
            let keys = (1..=cell.forks().0).filter(|fork| valid.contains_key(&cell.key(*fork)));
            keys.count() as u64
        };
        let run: Vec<&C> = (self.cells.iter().enumerate())
            .filter(|(place, _)| !self.left_out.contains(place))
            .map(|(_, cell)| cell)
            .collect();
        let counting = self.records.iter().filter(|record| record.valid);
        let late = counting.map(|record| record.instrument.lateness_us.p99).fold(0.0, f64::max);
        RunSummary {
            cells: run.len(),
            cells_complete: run.iter().filter(|cell| forks(cell) >= u64::from(cell.forks().1)).count(),
            forks_valid: run.iter().map(|cell| forks(cell)).sum(),
            forks_invalid: self.records.iter().filter(|record| !record.valid).count() as u64,
            not_run: self.not_run,
            refused: self.refused,
            seconds: took.as_secs_f64(),
            instrument: InstrumentSummary {
                cpu_seconds: self.records.iter().map(|record| record.instrument.cpu_ns).sum::<u64>() as f64
                    / 1e9,
                lateness_p99_us: late,
            },
        }
    }
}

impl RunSummary {
    /// Returns true if every cell has its minimum of valid forks, and no subject was refused.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.cells > 0 && self.cells_complete == self.cells && self.refused == 0
    }
}

/// Estimates the remaining time, scaling the expectation by the ratio of elapsed to expected time.
struct RemainingTime {
    forks: u64,
    done: f64,
    left: f64,
    began: Instant,
}

impl RemainingTime {
    fn new(expected: impl Iterator<Item = f64>) -> Self {
        Self { forks: 0, done: 0.0, left: expected.sum(), began: Instant::now() }
    }

    fn done(&mut self, expected: f64) {
        self.done += expected;
        self.skip(expected);
    }

    fn skip(&mut self, expected: f64) {
        self.forks += 1;
        self.left = (self.left - expected).max(0.0);
    }

    fn seconds_left(&self) -> f64 {
        if self.done > 0.0 { self.began.elapsed().as_secs_f64() * self.left / self.done } else { self.left }
    }
}

/// Computes the quantiles of times in microseconds.
pub(crate) fn quantiles(times_us: &mut [f64]) -> Quantiles {
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * times_us.len() as f64).ceil() as usize;
        times_us.get(place.clamp(1, times_us.len().max(1)) - 1).copied().unwrap_or(0.0)
    };
    Quantiles { p50: at(0.5), p99: at(0.99), max: at(1.0) }
}

#[cfg(test)]
mod tests;
