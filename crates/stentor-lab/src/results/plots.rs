//! Drawings of results: each stands on its own, is readable without colour, and says aloud what it shows.

mod anatomy;
mod band;
mod cost;
mod ecdf;
mod energy;
mod forest;

use super::Results;
use crate::plot::{WIDTH, width_of};
use std::collections::BTreeMap;

pub(super) use energy::joules;

/// A drawing.
#[derive(Debug, Clone)]
pub struct Plot {
    /// A name for links and files.
    pub id: String,
    /// What is seen.
    pub title: String,
    /// How it is read.
    pub words: String,
    /// The drawing.
    pub svg: String,
}

impl Plot {
    /// Returns the drawing as a file of its own.
    #[must_use]
    pub fn file(&self) -> String {
        crate::plot::standalone(&self.svg)
    }
}

/// Draws what the records allow.
#[must_use]
pub fn plots(results: &Results) -> Vec<Plot> {
    type Draw = fn(&Results) -> Vec<Plot>;
    let all: [Draw; 7] =
        [forest::draw, band::draw, ecdf::draw, anatomy::phases, anatomy::bytes, cost::draw, energy::draw];
    // Without times of ours, drawings of time would show the paper's alone.
    let kinds = if results.is_untimed() { &[anatomy::bytes as Draw][..] } else { &all };
    kinds.iter().flat_map(|draw| draw(results)).chain(super::campaigns::plots(results)).collect()
}

/// Groups cells by part of the study: experiment and variant.
fn parts(results: &Results) -> BTreeMap<(&str, &str), Vec<&super::MeasuredCell>> {
    let mut parts: BTreeMap<(&str, &str), Vec<&super::MeasuredCell>> = BTreeMap::new();
    for cell in &results.cells {
        parts.entry((&cell.experiment, &cell.variant)).or_default().push(cell);
    }
    parts
}

/// Returns the room at the left that the longest place and subject take together, at most so much.
fn margin<P: AsRef<str>>(rows: impl IntoIterator<Item = (P, P)>, most: f64) -> f64 {
    let widths =
        rows.into_iter().map(|(place, subject)| width_of(place.as_ref()) + width_of(subject.as_ref()));
    widths.map(|width| width + 34.0).fold(160.0, f64::max).min(most)
}

/// Returns the sentence on cells that a drawing has no room for.
fn left_out(cells: usize) -> String {
    if cells > 0 { format!(" {cells} more cells are in the CSV file.") } else { String::new() }
}

/// Makes a name for links of text.
fn slug(text: &str) -> String {
    let letters = text
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let parts: String = letters.collect();
    parts.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Lists the subjects of cells, in order.
fn subjects<'a>(cells: &[&'a super::MeasuredCell]) -> Vec<&'a str> {
    let mut names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
