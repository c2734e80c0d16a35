//! Effects of factors: 2^k analyses over the cells of a run.
//!
//! A factor with more than two levels takes part with its extremes: the smallest and the largest of numeric levels, otherwise the two
//! levels with the most distant means. The response is the logarithm of the time, so that an effect is a ratio, and the slowest cells do
//! not dominate the shares.

use std::collections::BTreeMap;

use super::cell::{by_size, size};
use super::setting::is_papers;
use super::{CONFIDENCE, METRICS, MeasuredCell, Results, joined, published};
use crate::statistics::{Factorial, Samples, factorial};

/// Maximum of factors in a design; with more, it has too many cells to be readable.
const FACTORS_MAX: usize = 5;

/// A design and its effects.
#[derive(Debug, Clone)]
pub struct Design {
    /// Experiment, variant, and the stack if there are several.
    pub name: String,
    /// The part of the study.
    pub experiment: String,
    /// The variant (reading) of the study.
    pub variant: String,
    /// `period`, or the family of the substitute software.
    pub stack: String,
    /// Factors, each with its low and its high level.
    pub factors: Vec<(String, [String; 2])>,
    /// The result; effects are logarithms.
    pub effects: Factorial,
    /// Number of runs in all cells.
    pub forks: usize,
}

/// Finds the full design of each part of the study, if it has one: over all cells, or else over those at the paper's setting.
#[must_use]
pub fn designs(results: &Results) -> Vec<Design> {
    let mut parts: BTreeMap<(&str, &str, &str), Vec<&MeasuredCell>> = BTreeMap::new();
    for cell in results.cells.iter().filter(|cell| !cell.forks.is_empty()) {
        parts.entry((&cell.experiment, &cell.variant, &cell.stack)).or_default().push(cell);
    }
    let stacks =
        results.cells.iter().map(|cell| cell.stack.as_str()).collect::<std::collections::BTreeSet<_>>().len();
    let designs = parts.into_iter().filter_map(|((experiment, variant, stack), cells)| {
        let stack_label = if stacks > 1 { stack } else { "" };
        let name = |setting| joined(&[&results.part(experiment, variant), stack_label, setting], " · ");
        let at_papers = || cells.iter().copied().filter(|cell| is_papers(results, cell)).collect::<Vec<_>>();
        design(results, name(""), &cells)
            .or_else(|| design(results, name("at the paper's setting"), &at_papers()))
    });
    designs.collect()
}

fn design(results: &Results, name: String, cells: &[&MeasuredCell]) -> Option<Design> {
    let factors = factors(results, cells);
    if factors.len() < 2 || factors.len() > FACTORS_MAX {
        return None;
    }
    // Counting order: the first factor varies fastest, its low level first.
    let count = 1_usize << factors.len();
    let responses: Vec<Samples> =
        (0..count).map(|number| responses(cells, &factors, number)).collect::<Option<_>>()?;
    let names: Vec<&str> = factors.iter().map(|(name, _)| name.as_str()).collect();
    let effects = factorial(&names, &responses, CONFIDENCE)?;
    let forks = responses.iter().map(|cell| cell.values().len()).sum();
    let first = cells.first()?;
    let (experiment, variant, stack) = (first.experiment.clone(), first.variant.clone(), first.stack.clone());
    Some(Design { name, experiment, variant, stack, factors, effects, forks })
}

fn level<'a>(cell: &'a MeasuredCell, factor: &str) -> Option<&'a str> {
    if factor == "subject" { Some(&cell.name) } else { cell.levels.get(factor).map(String::as_str) }
}

fn factors(results: &Results, cells: &[&MeasuredCell]) -> Vec<(String, [String; 2])> {
    let mut names: Vec<&str> = cells.iter().flat_map(|cell| cell.levels.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.push("subject");
    let extremes = names.into_iter().filter_map(|name| {
        let mut levels: Vec<&str> = cells.iter().filter_map(|cell| level(cell, name)).collect();
        levels.sort_by(|one, other| by_size(one, other));
        levels.dedup();
        // Levels shared with the paper are preferred; others are used only if fewer than two are shared.
        let known = published::levels(results, name);
        if levels.iter().filter(|level| known.contains(*level)).count() > 1 {
            levels.retain(|level| known.contains(level));
        }
        if levels.len() < 2 {
            return None;
        }
        let are_numbers = levels.iter().all(|level| size(level).is_some());
        if !are_numbers {
            levels.sort_by(|one, other| mean(cells, name, one).total_cmp(&mean(cells, name, other)));
        }
        Some((name.to_owned(), [levels.first()?.to_string(), levels.last()?.to_string()]))
    });
    extremes.collect()
}

fn logs(cell: &MeasuredCell) -> impl Iterator<Item = f64> {
    let times = cell.samples(&METRICS[0]);
    times.values().iter().filter(|time| **time > 0.0).map(|time| time.ln()).collect::<Vec<_>>().into_iter()
}

fn mean(cells: &[&MeasuredCell], factor: &str, wanted: &str) -> f64 {
    let inside = cells.iter().filter(|cell| level(cell, factor) == Some(wanted));
    let times: Vec<f64> = inside.flat_map(|cell| logs(cell)).collect();
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

fn responses(cells: &[&MeasuredCell], factors: &[(String, [String; 2])], number: usize) -> Option<Samples> {
    let fits = |cell: &&&MeasuredCell| {
        factors
            .iter()
            .enumerate()
            .all(|(place, (name, levels))| level(cell, name) == Some(levels[number >> place & 1].as_str()))
    };
    let found: Samples = cells.iter().filter(fits).flat_map(|cell| logs(cell)).collect();
    (!found.values().is_empty()).then_some(found)
}
