//! The report of a campaign study: rates beside the paper's, their bounds by Little's law, proof, and questions.

mod drawing;
mod measured;
mod tables;

use super::section::{Section, SectionBlock};
use super::{Account, Plot, Results, ResultsError, grounds};
use crate::claims::{ClaimVerdict, Judged};
use crate::plan::OpenQuestion;
use crate::record::ForkRecord;
use serde::Serialize;

pub use measured::CellSummary;
pub use tables::overview;

/// The measured system, as heading above the verdicts.
pub(super) const MEASURED: &str = "measured: our server, emulated push services";
/// The software that represents the paper.
pub(super) const WHO_SPEAKS: &str = "A fork is the run of a fresh server. The paper's prototype is not available: our server, between \
    emulated push services, stands in for it. The paper ran each test once, so its figures have no intervals.";
const PROOF: &str = "Each device of the audience was looked up in the counts of the emulators. The known device of each platform \
    listened there. p50, p95 and p99 are the times from the request until that share of the deliveries had ended.";

/// A claim with the verdicts of figures.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedClaim {
    /// A short name.
    pub id: String,
    /// The conclusion.
    pub text: String,
    /// The claim's place in the paper; empty for a conclusion of ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The question beyond the paper that it answers; empty for the paper's own conclusions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind of claim.
    pub kind: String,
    /// Checks over the figures.
    pub checks: Vec<String>,
    /// A remark on the comparison.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The verdict of the paper's own figures.
    pub published: ClaimVerdict,
    /// Those figures.
    pub published_figures: String,
    /// The verdict of our figures.
    pub ours: ClaimVerdict,
    /// Our figures.
    pub our_figures: String,
}

impl Results {
    /// Returns true if its runs are campaigns instead of exchanges of two halves.
    #[must_use]
    pub const fn is_of_campaigns(&self) -> bool {
        self.campaigns.is_some()
    }

    /// Summarizes the runs of each cell, in the order of the plan: the study's own tests, and those beyond them.
    #[must_use]
    pub fn measured(&self) -> (Vec<CellSummary>, Vec<CellSummary>) {
        let figures = self.dossier.as_ref().map(|dossier| dossier.figures());
        let cells = self.campaigns.iter().flat_map(|campaigns| &campaigns.cells);
        let measured = cells.filter_map(|cell| {
            let of_cell: Vec<&ForkRecord> =
                self.records.iter().filter(|one| one.experiment == cell.id).collect();
            CellSummary::of(cell, figures, &of_cell)
        });
        measured.partition(|one| one.question.is_empty())
    }

    /// Lists the campaign runs that are invalid or were not possible.
    #[must_use]
    pub fn uncounted_runs(&self) -> Vec<CellSummary> {
        let figures = self.dossier.as_ref().map(|dossier| dossier.figures());
        let cells = || self.campaigns.iter().flat_map(|campaigns| &campaigns.cells);
        let run = |record: &ForkRecord| {
            let cell = cells().find(|cell| cell.id == record.experiment)?;
            CellSummary::of_run(cell, figures, record)
        };
        self.records.iter().filter(|one| one.pushes_per_second().is_none()).filter_map(run).collect()
    }
}

impl Account {
    /// Judges the claims of a campaign study: those of its paper and our own.
    pub fn answers(&self) -> Result<Vec<JudgedClaim>, ResultsError> {
        let claims = self.verdicts.iter().flat_map(|verdicts| &verdicts.claims);
        let of_paper = claims.map(|one| {
            let ours = JudgedClaim::of(&one.judged, &grounds::of_judgment(&one.judged.published));
            let finding = one.best();
            JudgedClaim {
                ours: finding.verdict,
                our_figures: grounds::of_finding(&one.judged.statement, finding).join("; "),
                ..ours
            }
        });
        let mut answers: Vec<JudgedClaim> = of_paper.collect();
        for (question, judged) in super::verdicts::expected(&self.results)? {
            let found = judged.ours.as_ref();
            let our_figures = found.map(grounds::of_judgment).unwrap_or_default().join("; ");
            let ours = found.map_or(ClaimVerdict::NotTestable, |found| found.verdict);
            answers.push(JudgedClaim { group: question, ours, our_figures, ..JudgedClaim::of(&judged, &[]) });
        }
        Ok(answers)
    }
}

impl JudgedClaim {
    fn of(judged: &Judged, published_figures: &[String]) -> Self {
        let statement = &judged.statement;
        let id = if statement.name.is_empty() { &statement.id } else { &statement.name };
        Self {
            id: id.clone(),
            text: statement.text.clone(),
            source: statement.source.clone(),
            group: String::new(),
            kind: statement.kind.clone(),
            checks: statement.checks.clone(),
            note: statement.note.clone(),
            published: judged.published.verdict,
            published_figures: published_figures.join("; "),
            ours: ClaimVerdict::NotTestable,
            our_figures: String::new(),
        }
    }
}

/// Draws the rates of a campaign study.
pub(super) fn plots(results: &Results) -> Vec<Plot> {
    let (tests, _) = results.measured();
    if tests.is_empty() {
        return Vec::new();
    }
    let cells: Vec<&CellSummary> = tests.iter().collect();
    vec![drawing::consumers(&tests), drawing::rates("rates", &cells)]
}

/// Lists the sections that only campaign studies have.
pub(super) fn sections(account: &Account) -> Vec<Section> {
    let Some(campaigns) = &account.results.campaigns else { return Vec::new() };
    let (tests, beyond) = account.results.measured();
    let cells: Vec<&CellSummary> = tests.iter().collect();
    let mut sections = vec![
        Section::tabled("tests", "Pushes per second, each test", "", tables::rates(&cells), ""),
        Section::tabled("little", "Little's law", &little(&cells), tables::little(&cells), ""),
        Section::tabled("proof", "Proof", PROOF, tables::proof(&cells), ""),
        Section::tabled("cost", "Cost", "", tables::costs(&cells), ""),
    ];
    let answers = account.answers().unwrap_or_default();
    for question in &campaigns.questions {
        let cells: Vec<&CellSummary> = beyond.iter().filter(|one| one.question == question.id).collect();
        if !cells.is_empty() {
            sections.push(of_question(question, &cells, &answers));
        }
    }
    sections
}

fn little(cells: &[&CellSummary]) -> String {
    let latency = cells.first().map_or(0.0, |one| one.campaign.latency_mean_ms);
    format!(
        "The bound is the rate that the places for requests in flight allow if each is taken for {latency:.1} ms on average. The time \
         held is the number of places divided by the rate: if it grows with the places while the rate does not, something other \
         than the push service limits the rate. The taken places were counted during the tests, between the first and the last \
         tenth: from 90 % on the requests in flight are the limit, below 70 % the supply of deliveries is. Without pools a place \
         is also held while a connection opens, which the count does not include."
    )
}

fn of_question(question: &OpenQuestion, cells: &[&CellSummary], answers: &[JudgedClaim]) -> Section {
    let costs =
        vec![SectionBlock::Table(tables::proof(cells), ""), SectionBlock::Table(tables::costs(cells), "")];
    Section::new(&question.id, &format!("Beyond the paper: {}", question.title))
        .both(SectionBlock::Words(question.text.clone()))
        .both(SectionBlock::Table(tables::answers(answers, &question.id), "words"))
        .page(SectionBlock::Html(drawing::rates(&question.id, cells).svg))
        .both(SectionBlock::Table(tables::group(cells), ""))
        .both(SectionBlock::Folded("Proof and cost".to_owned(), costs))
}

#[cfg(test)]
mod tests;
