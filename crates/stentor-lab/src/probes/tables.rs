//! The paper's tables 9 and 10, with the results of probes beside each cell.

use super::ProbeResult;
use crate::claims::figures::{Figure, FigureValue, Figures};
use serde::Serialize;

/// A cell of the paper's tables, with the results of probes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperCell {
    /// The table.
    pub table: String,
    /// Its row.
    pub feature: String,
    /// Its column.
    pub subject: String,
    /// The paper's value.
    pub paper: String,
    /// The results of probes, each with its evidence.
    pub probes: Vec<ProbeResult>,
}

/// Lists the cells in the order of the paper.
#[must_use]
pub fn rows(figures: &Figures, results: &[ProbeResult]) -> Vec<PaperCell> {
    let of_tables = |figure: &&Figure| ["Table 9", "Table 10"].contains(&figure.source.as_str());
    let row = |figure: &Figure| {
        let FigureValue::Word(paper) = &figure.value else { return None };
        let bears = |one: &&ProbeResult| one.feature == figure.metric && one.subject == figure.subject;
        Some(PaperCell {
            table: figure.source.clone(),
            feature: figure.metric.clone(),
            subject: figure.subject.clone(),
            paper: paper.clone(),
            probes: results.iter().filter(bears).cloned().collect(),
        })
    };
    figures.iter().filter(of_tables).filter_map(row).collect()
}
