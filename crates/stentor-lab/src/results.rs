//! The results of a run: records by cell, verdicts on the claims, and the report.
//!
//! Everything here is computed from records alone, so that a report can be written again from published records. The fork is the unit of
//! replication. Invalid forks are listed and are in no figure.

mod basis;
mod batteries;
mod breakdown;
mod campaigns;
mod cell;
mod clocks;
mod columns;
mod compare;
mod connection_servers;
mod delays;
mod effects;
mod evidence;
mod features;
mod figures;
mod grounds;
mod instrument;
mod interruptions;
mod interviews;
mod judged_claims;
mod layers;
mod metric;
mod overhead;
mod own_figure;
mod page;
mod paper;
mod payload;
mod phases;
mod plots;
mod published;
mod ratios;
mod runs;
pub(crate) mod section;
mod setting;
mod sheet;
mod sizes;
mod tables;
mod verdicts;

use std::collections::BTreeMap;

use crate::claims::agreement::CodingAgreement;
use crate::claims::{ClaimsError, Dossier};
use crate::energy::processor::Processor;
use crate::plan::{Campaigns, StudyPlan};
use crate::probes::Probed;
use crate::probes::tried::TriedFeature;
use crate::record::modelled::model_again;
use crate::record::{CAMPAIGNS, ForkRecord, RECORDS};
use stentor_machine::emulation::NOT_TIMED;

pub use campaigns::{CellSummary, JudgedClaim, overview};
pub use cell::MeasuredCell;
pub use compare::{CellChange, CellComparison, compare};
pub use effects::{Design, designs};
pub use evidence::figures_csv;
pub use metric::{METRICS, Metric};
pub(crate) use page::frame;
pub use page::{markdown, page};
pub use plots::{Plot, plots};
pub use ratios::{RatioGroup, SubjectRatio as RatioRow, ratios};
pub use sheet::sheet;
pub(crate) use verdicts::first_level;
pub use verdicts::{AlternativeFindings, ClaimFindings, Finding, Verdicts, look, part, verdicts};

/// Confidence level of every reported interval.
pub const CONFIDENCE: f64 = 0.95;

/// Records of one study, by cell.
#[derive(Debug)]
pub struct Results {
    /// The study's id.
    pub study: String,
    /// Its claims and published figures; `None` for a study without a paper.
    pub dossier: Option<Dossier>,
    /// Every record, in the order of the file.
    pub records: Vec<ForkRecord>,
    /// The records by cell, in the order of subject and levels.
    pub cells: Vec<MeasuredCell>,
    /// Results of feature probes, if any.
    pub probed: Option<Probed>,
    /// Features tried at the server, if any.
    pub tried: Vec<TriedFeature>,
    /// The paper's levels of factors that its figures do not name; see [`StudyPlan::setting`].
    pub setting: BTreeMap<String, Vec<String>>,
    /// Other levels of the setting at which claims are judged too; see [`StudyPlan::alternatives`].
    pub alternatives: Vec<BTreeMap<String, Vec<String>>>,
    /// Its campaigns, if it is such a study.
    pub campaigns: Option<Campaigns>,
}

/// A report: results and remarks.
#[derive(Debug)]
pub struct Account {
    /// The records by cell.
    pub results: Results,
    /// Verdicts on the paper's claims; `None` for a study without claims.
    pub verdicts: Option<Verdicts>,
    /// The agreement of two codings of its interviews, if it has some.
    pub agreement: Option<CodingAgreement>,
    /// The drawings.
    pub plots: Vec<Plot>,
    /// The remarks.
    pub remarks: Remarks,
    /// Other runs of the study, which stand on the same page with figures of their own, each with its title.
    pub beside: Vec<(String, Self)>,
}

/// Remarks beside the results.
#[derive(Debug, Default, Clone)]
pub struct Remarks {
    /// Differences from the paper.
    pub differences: Vec<String>,
    /// Measurements of the paper that were not made here, each with the reason.
    pub not_here: Vec<(String, String)>,
    /// The command that repeats the run.
    pub command: String,
    /// The directory of the records.
    pub directory: String,
    /// The folder of the drawings, relative to the page in Markdown; empty if it has none.
    pub figures: String,
    /// Threats to validity.
    pub threats: Vec<String>,
    /// Caveats on the published figures.
    pub on_figures: Vec<String>,
    /// Provenance of campaign runs, by name; else null.
    pub provenance: serde_json::Value,
    /// Files of raw samples that currently exist; records also name files that existed once.
    pub raw_files: usize,
}

impl Account {
    /// Judges the claims and draws the plots.
    pub fn of(results: Results, remarks: Remarks) -> Result<Self, ResultsError> {
        let agreement = results.dossier.as_ref().map(Dossier::agreement).transpose()?.flatten();
        let (verdicts, plots) = (verdicts(&results)?, plots(&results));
        Ok(Self { results, verdicts, agreement, plots, remarks, beside: Vec::new() })
    }
}

/// Errors of making a report.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// No records.
    #[error("there are no records")]
    Empty,
    /// The records belong to several studies; each study needs a report of its own.
    #[error("the records are of several studies: {0}")]
    Mixed(String),
    /// The study's claims cannot be judged.
    #[error(transparent)]
    Claims(#[from] ClaimsError),
}

impl Results {
    /// Groups records of one study by cell. Fails if there are none, or records of several studies.
    pub fn of(mut records: Vec<ForkRecord>) -> Result<Self, ResultsError> {
        let first = records.first().ok_or(ResultsError::Empty)?;
        let study = first.study.clone();
        let others: std::collections::BTreeSet<&str> = records.iter().map(|one| one.study.as_str()).collect();
        if others.len() > 1 {
            return Err(ResultsError::Mixed(others.into_iter().collect::<Vec<_>>().join(", ")));
        }
        let dossier = Dossier::open(&study)?;
        let plan = StudyPlan::shipped(&study).ok().flatten();
        let processors = Processor::all();
        let processor = plan.as_ref().and_then(|plan| processors.iter().find(|one| one.id == plan.processor));
        if let Some(processor) = processor {
            records.iter_mut().for_each(|record| model_again(record, processor));
        }
        let cells = MeasuredCell::all(&records);
        let parts = plan.map(|plan| (plan.setting, plan.alternatives, plan.campaigns));
        let (setting, alternatives, campaigns) = parts.unwrap_or_default();
        Ok(Self {
            study,
            dossier,
            records,
            cells,
            probed: None,
            tried: Vec::new(),
            setting,
            alternatives,
            campaigns,
        })
    }

    /// Returns the number of times that the results were looked at, to decide whether the run goes on: the planned one.
    #[must_use]
    pub fn looks(&self) -> u32 {
        self.records.iter().filter_map(|record| record.looks).max().unwrap_or(1)
    }

    /// Returns the name of the file that holds these records.
    pub(crate) const fn file(&self) -> &'static str {
        if self.campaigns.is_some() { CAMPAIGNS } else { RECORDS }
    }

    /// Adds results of the study's feature probes; those of another study are ignored.
    #[must_use]
    pub fn with_probed(mut self, probed: Option<Probed>) -> Self {
        self.probed = probed.filter(|probed| probed.study == self.study);
        self
    }

    /// Adds features that were tried at the server.
    #[must_use]
    pub fn with_tried(mut self, tried: Vec<TriedFeature>) -> Self {
        self.tried = tried;
        self
    }

    /// Returns the name of a part of the study: the experiment, and the variant if there are several.
    pub(crate) fn part(&self, experiment: &str, variant: &str) -> String {
        let several = self.cells.iter().any(|cell| cell.variant != variant);
        joined(&[experiment, if several { variant } else { "" }], " · ")
    }

    /// Returns true if no cell with forks has times, because the processor was emulated.
    pub(crate) fn is_untimed(&self) -> bool {
        let mut ran = self.cells.iter().filter(|cell| !cell.forks.is_empty()).peekable();
        ran.peek().is_some() && ran.all(MeasuredCell::is_untimed)
    }

    /// Returns a remark if records have no times because the processor was emulated; `None` if all have times.
    #[must_use]
    pub fn not_timed(&self) -> Option<String> {
        let emulated = self.records.iter().filter(|record| record.is_emulated()).count();
        match self.records.len() - emulated {
            _ if emulated == 0 => None,
            0 => Some(NOT_TIMED.to_owned()),
            _ => Some(format!("{emulated} of {} forks are {NOT_TIMED}", self.records.len())),
        }
    }

    /// Lists the invalid records.
    pub fn uncounted(&self) -> impl Iterator<Item = &ForkRecord> {
        self.records.iter().filter(|record| !record.valid)
    }

    /// Lists the factors that have more than one level, each with its levels in order.
    #[must_use]
    pub fn factors(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut factors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, level) in self.cells.iter().flat_map(|cell| &cell.levels) {
            let levels = factors.entry(name).or_default();
            if !levels.contains(&level.as_str()) {
                levels.push(level);
            }
        }
        factors.retain(|_, levels| levels.len() > 1);
        factors.values_mut().for_each(|levels| levels.sort_by(|one, other| cell::by_size(one, other)));
        factors
    }
}

/// Joins the non-empty parts of a name.
fn joined(parts: &[&str], between: &str) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
pub(crate) mod tests;
