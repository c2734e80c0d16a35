//! Ratios between subjects: their times relative to a base subject, here and in the paper.

use std::collections::BTreeMap;

use super::cell::size;
use super::{CONFIDENCE, METRICS, MeasuredCell, Results, joined, paper};
use crate::statistics::{Ratio, ratio};

/// Ratios of one part of the study, all to the same subject.
#[derive(Debug, Clone)]
pub struct RatioGroup<'a> {
    /// Experiment and variant.
    pub name: String,
    /// The base subject of the comparison.
    pub base: String,
    /// One ratio per cell with another subject, in the order of the cells.
    pub rows: Vec<SubjectRatio<'a>>,
}

/// One ratio.
#[derive(Debug, Clone)]
pub struct SubjectRatio<'a> {
    /// The cell of the compared subject.
    pub cell: &'a MeasuredCell,
    /// Levels, as text.
    pub place: String,
    /// The subject.
    pub subject: String,
    /// The measured ratio.
    pub ours: Option<Ratio>,
    /// The paper's ratio, from its printed figures.
    pub published: Option<f64>,
}

/// Compares subjects within each part of the study.
#[must_use]
pub fn ratios(results: &Results) -> Vec<RatioGroup<'_>> {
    let mut parts: BTreeMap<(&str, &str, bool), Vec<&MeasuredCell>> = BTreeMap::new();
    for cell in &results.cells {
        parts.entry((&cell.experiment, &cell.variant, !cell.is_period())).or_default().push(cell);
    }
    let has_both = |period: bool| results.cells.iter().any(|cell| cell.is_period() == period);
    let mixed = has_both(true) && has_both(false);
    let groups = parts.into_iter().filter_map(|((experiment, variant, modern), cells)| {
        let stack = match (mixed, modern) {
            (false, _) => "",
            (true, false) => "period software",
            (true, true) => "today's software",
        };
        group(results, joined(&[&results.part(experiment, variant), stack], " · "), &cells)
    });
    groups.collect()
}

fn group<'a>(results: &Results, name: String, cells: &[&'a MeasuredCell]) -> Option<RatioGroup<'a>> {
    let base = base(results, cells)?;
    let rows = cells.iter().copied().filter(|cell| cell.name != base).filter_map(|cell| {
        let other = cells
            .iter()
            .find(|other| other.name == base && other.levels == cell.levels && other.link == cell.link)?;
        let times = |cell: &MeasuredCell| cell.samples(&METRICS[0]);
        let ours = ratio(&times(cell), &times(other), CONFIDENCE);
        let published = paper::published_ms(results, cell).zip(paper::published_ms(results, other));
        let published = published.map(|(one, other)| one / other);
        let place = place(results, cell);
        (ours.is_some() || published.is_some()).then(|| SubjectRatio {
            cell,
            place,
            subject: cell.name.clone(),
            ours,
            published,
        })
    });
    let rows: Vec<SubjectRatio<'_>> = rows.collect();
    (!rows.is_empty()).then_some(RatioGroup { name, base, rows })
}

/// Selects the subject with the most cells, and among those the fastest on average.
fn base(results: &Results, cells: &[&MeasuredCell]) -> Option<String> {
    let mut subjects: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for cell in cells {
        let time =
            cell.estimate(&METRICS[0]).map(|one| one.mean).or_else(|| paper::published_ms(results, cell));
        let Some(time) = time.filter(|time| *time > 0.0) else { continue };
        let entry = subjects.entry(&cell.name).or_default();
        *entry = (entry.0 + 1, entry.1 + time.ln());
    }
    let mean = |(count, sum): (usize, f64)| sum / count as f64;
    let best = subjects.into_iter().max_by(|one, other| {
        one.1
            .0
            .cmp(&other.1.0)
            .then_with(|| mean(other.1).total_cmp(&mean(one.1)))
            .then_with(|| other.0.cmp(one.0))
    });
    best.map(|(name, _)| name.to_owned())
}

/// Returns the varying levels; self-explanatory ones are shown without their factor.
pub(super) fn place(results: &Results, cell: &MeasuredCell) -> String {
    let factors = results.factors();
    let levels = cell.levels.iter().filter(|(name, _)| factors.contains_key(name.as_str()));
    let (sizes, words): (Vec<_>, Vec<_>) = levels.partition(|(_, level)| size(level).is_some());
    let words_of_levels = words.into_iter().chain(sizes).map(|(name, level)| {
        let is_number = level.chars().all(|letter| letter.is_ascii_digit());
        let is_switch = ["on", "off", "yes", "no", "true", "false", "0", "1"].contains(&level.as_str());
        if is_number || is_switch { format!("{level} {}", name.replace('_', " ")) } else { level.clone() }
    });
    words_of_levels.collect::<Vec<_>>().join(", ")
}
