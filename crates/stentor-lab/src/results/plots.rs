//! Plots of results: each is self-contained, readable without colour, and has an accessible description.

mod anatomy;
mod band;
mod cost;
mod ecdf;
mod energy;
mod forest;
mod paper_figures;

use super::Results;
use crate::document::TextTable;
use crate::plot::{WIDTH, width_of};
use std::collections::BTreeMap;

pub(super) use energy::joules;
pub(super) use paper_figures::drawn;

/// A plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// A name for links and files.
    pub id: String,
    /// The title.
    pub title: String,
    /// A guide for reading it.
    pub words: String,
    /// The plot itself.
    pub svg: String,
    /// The values of a figure of the paper; empty for other plots, whose values are in tables of their own.
    pub(super) values: TextTable,
}

impl Plot {
    /// Returns true if it is a figure of the paper.
    #[must_use]
    pub fn is_of_paper(&self) -> bool {
        !self.values.rows.is_empty()
    }

    /// Returns the plot as a standalone file.
    #[must_use]
    pub fn file(&self) -> String {
        crate::plot::standalone(&self.svg)
    }
}

/// Draws all plots that the records allow.
#[must_use]
pub fn plots(results: &Results) -> Vec<Plot> {
    type Draw = fn(&Results) -> Vec<Plot>;
    let all: [Draw; 8] = [
        paper_figures::draw,
        forest::draw,
        band::draw,
        ecdf::draw,
        anatomy::phases,
        anatomy::bytes,
        cost::draw,
        energy::draw,
    ];
    // Without our own times, plots of time would show the paper's only.
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

/// Returns the left margin for the longest place and subject together, at most `most`.
fn margin<P: AsRef<str>>(rows: impl IntoIterator<Item = (P, P)>, most: f64) -> f64 {
    let widths =
        rows.into_iter().map(|(place, subject)| width_of(place.as_ref()) + width_of(subject.as_ref()));
    widths.map(|width| width + 34.0).fold(160.0, f64::max).min(most)
}

/// Returns the sentence on cells omitted from a plot.
fn left_out(cells: usize) -> String {
    if cells > 0 { format!(" {cells} more cells are in the CSV file.") } else { String::new() }
}

/// Makes an identifier for links from text.
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
