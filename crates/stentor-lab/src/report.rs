//! What is told of a study: cells beside the published figures, drawings, one page that needs nothing else.

mod drawing;
mod figure;
mod figures;
mod markdown;
mod measured;
mod page;
mod row;
mod tables;

use serde::Serialize;
use serde_json::Value;

use crate::statistics::Samples;
use crate::study::{Claim, Evidence, Found, Published, Study, Verdict};

pub use drawing::draw;
pub use figure::figure;
pub use figures::figures;
pub use markdown::markdown;
pub use measured::Measured;
pub use page::page;
pub use row::Row;

/// A study that was run.
#[derive(Debug)]
pub struct Report {
    /// What was run.
    pub study: Study,
    /// What was published.
    pub published: Published,
    /// One for each of the study's scenarios that was run.
    pub scenarios: Vec<Measured>,
    /// What the paper did not do.
    pub beyond: Vec<Measured>,
    /// Every run, in the order in which they were made.
    pub runs: Vec<Row>,
    /// Machine, date, versions, command, load; an object.
    pub provenance: Value,
}

/// A claim beside what figures say of it.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// By the paper's own figures.
    pub published: Verdict,
    /// Those figures.
    pub published_figures: String,
    /// By ours.
    pub ours: Verdict,
    /// Our figures.
    pub our_figures: String,
}

impl Report {
    /// Judges the study's claims, by the paper's figures and by ours.
    #[must_use]
    pub fn judged(&self) -> Vec<Judged> {
        let judge = |claim: &Claim| {
            let (published, ours): (Found, Found) = (claim.judge(&self.published), claim.judge(self));
            Judged {
                claim: claim.clone(),
                published: published.verdict,
                published_figures: published.figures,
                ours: ours.verdict,
                our_figures: ours.figures,
            }
        };
        self.study.claims.iter().map(judge).collect()
    }

    /// Lists the runs that were made and do not count, or that could not be made.
    pub fn uncounted(&self) -> impl Iterator<Item = &Row> {
        self.runs.iter().filter(|row| !row.is_valid())
    }

    fn cell(&self, id: &str) -> Option<&Measured> {
        self.scenarios.iter().chain(&self.beyond).find(|one| one.row.id == id)
    }
}

/// Our runs.
impl Evidence for Report {
    fn rates(&self, test: &str) -> Option<Samples> {
        self.cell(test).filter(|one| one.runs > 0).map(|one| one.rates.clone())
    }

    fn finished_share(&self, test: &str) -> Option<f64> {
        let runs = || self.runs.iter().filter(|row| row.id == test && row.is_valid());
        let pushes: u64 = runs().map(|row| row.pushes).sum();
        let open: u64 = runs().map(|row| row.stuck).sum();
        (pushes > 0).then(|| 1.0 - open as f64 / pushes as f64)
    }

    fn is_of_the_paper(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
