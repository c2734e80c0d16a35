//! The setting of the paper: its levels of factors that its figures do not name, such as the heap of its phone.

use std::collections::{BTreeMap, BTreeSet};

use super::{MeasuredCell, Results, published};

/// Levels by factor: the first one that a client ran counts.
pub(super) type SettingLevels = BTreeMap<String, Vec<String>>;

/// Returns true if a cell has the paper's levels, or their substitutes where its client has no such level.
pub(super) fn is_papers(results: &Results, cell: &MeasuredCell) -> bool {
    fits(results, cell, &results.setting)
}

/// Returns true if a cell has the levels of a setting, or their substitutes where its client has no such level.
pub(super) fn fits(results: &Results, cell: &MeasuredCell, setting: &SettingLevels) -> bool {
    setting.iter().all(|(factor, levels)| {
        let level = cell.levels.get(factor);
        level.is_none_or(|level| taken(results, cell, factor, levels) == Some(level))
    })
}

/// Returns true if the client of a cell ran neither at a setting's level of a factor nor at a substitute. Factors that the cell does not
/// have are ignored.
pub(super) fn is_elsewhere(results: &Results, cell: &MeasuredCell, setting: &SettingLevels) -> bool {
    let mut factors = setting.iter().filter(|(factor, _)| cell.levels.contains_key(*factor));
    factors.any(|(factor, levels)| taken(results, cell, factor, levels).is_none())
}

fn taken<'a>(
    results: &Results,
    cell: &MeasuredCell,
    factor: &str,
    levels: &'a [String],
) -> Option<&'a String> {
    let of_client =
        |other: &&MeasuredCell| (&other.client, &other.experiment) == (&cell.client, &cell.experiment);
    let ran = |level: &&String| {
        let mut cells = results.cells.iter().filter(of_client);
        cells.any(|other| other.levels.get(factor) == Some(*level))
    };
    levels.iter().find(ran)
}

/// Lists the alternatives to the setting that were run, each with its name and the whole setting.
pub(super) fn alternatives(results: &Results) -> Vec<(String, SettingLevels)> {
    let has_run = |other: &&SettingLevels| {
        let has = |(factor, levels): (&String, &Vec<String>)| {
            let mut cells = results.cells.iter().filter_map(|cell| cell.levels.get(factor));
            cells.any(|level| levels.contains(level))
        };
        other.iter().all(has)
    };
    let whole = |other: &SettingLevels| {
        let setting = results.setting.clone().into_iter().chain(other.clone()).collect();
        (levels_text(other), setting)
    };
    results.alternatives.iter().filter(has_run).map(whole).collect()
}

/// Names the paper's setting by the factors that its alternatives vary; empty without alternatives.
pub(super) fn own_name(results: &Results) -> String {
    let factors: BTreeSet<&String> = results.alternatives.iter().flat_map(BTreeMap::keys).collect();
    let own =
        factors.into_iter().filter_map(|factor| Some((factor.clone(), results.setting.get(factor)?.clone())));
    levels_text(&own.collect())
}

fn levels_text(levels: &SettingLevels) -> String {
    let texts =
        levels.iter().map(|(factor, levels)| format!("{} {}", factor.replace('_', " "), levels.join(" or ")));
    texts.collect::<Vec<_>>().join(", ")
}

/// Describes the levels of factors that the paper's figures do not name, and the subjects at other levels.
pub(super) fn setting_text(results: &Results, cells: &[&MeasuredCell]) -> String {
    let known = published::factors(results);
    let mut factors: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for cell in cells {
        let levels = cell.levels.iter().map(|(factor, level)| (factor.as_str(), level.as_str()));
        for (factor, level) in levels.chain([("link", cell.link.as_str())]) {
            if !known.contains(factor) && !level.is_empty() {
                factors.entry(factor).or_default().entry(level).or_default().insert(&cell.subject);
            }
        }
    }
    let descriptions = factors.into_iter().filter_map(|(factor, levels)| {
        let (usual, _) = levels.iter().max_by_key(|(_, subjects)| subjects.len())?;
        let others = levels.iter().filter(|(level, _)| level != &usual);
        let others = others.map(|(level, subjects)| {
            let subjects: Vec<&str> = subjects.iter().copied().collect();
            format!(" ({level} for {}, which ran with no other)", subjects.join(", "))
        });
        Some(format!("{} {usual}{}", factor.replace('_', " "), others.collect::<String>()))
    });
    descriptions.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
