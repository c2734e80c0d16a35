//! The extent of a paper's figures.

use std::collections::BTreeSet;

use super::Results;

/// Returns true if the paper has figures of this metric.
pub(super) fn has(results: &Results, metric: &str) -> bool {
    results.dossier.iter().any(|dossier| dossier.figures().iter().any(|figure| figure.metric == metric))
}

/// Lists the subjects in the paper's figures.
pub(super) fn subjects(results: &Results) -> BTreeSet<&str> {
    let figures = results.dossier.iter().flat_map(|dossier| dossier.figures().iter());
    figures.map(|figure| figure.subject.as_str()).collect()
}

/// Lists the factors in the paper's figures.
pub(super) fn factors(results: &Results) -> BTreeSet<&str> {
    let figures = results.dossier.iter().flat_map(|dossier| dossier.figures().iter());
    figures.flat_map(|figure| figure.factors.keys()).map(String::as_str).collect()
}

/// Lists the levels of a factor in the paper's figures.
pub(super) fn levels<'a>(results: &'a Results, factor: &str) -> BTreeSet<&'a str> {
    let figures = results.dossier.iter().flat_map(|dossier| dossier.figures().iter());
    figures.filter_map(|figure| figure.factors.get(factor)).map(String::as_str).collect()
}
