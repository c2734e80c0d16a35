//! Columns shared by tables of cells, and the formats of their figures.

use super::ratios::place;
use super::{MeasuredCell, Results};
use crate::document::{TextColumn, TextTable};
use crate::plot::short;
use crate::statistics::Estimate;

/// The first columns of every table of cells.
pub(super) const ABOUT: [&str; 3] = ["part", "cell", "subject"];

pub(super) fn about(results: &Results, cell: &MeasuredCell) -> [String; 3] {
    [results.part(&cell.experiment, &cell.variant), place(results, cell), cell.name.clone()]
}

/// Makes a table of cells: the identifying columns, then the given ones.
pub(super) fn of_cells<'a>(
    results: &Results,
    cells: impl IntoIterator<Item = &'a MeasuredCell>,
    columns: &[TextColumn<'_, MeasuredCell>],
) -> TextTable {
    let mut header = ABOUT.map(str::to_owned).to_vec();
    header.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    let row = |cell| {
        let values = columns.iter().map(|(_, write)| write(cell));
        about(results, cell).into_iter().chain(values).collect()
    };
    TextTable { header, rows: cells.into_iter().map(row).collect() }
}

/// Formats a figure, or a dash without one.
pub(super) fn number_text(figure: Option<f64>) -> String {
    figure.map_or_else(|| "–".to_owned(), short)
}

/// Formats the mean of an estimate.
pub(super) fn mean_text(estimate: Option<Estimate>) -> String {
    number_text(estimate.map(|one| one.mean))
}

/// Formats an estimate with its interval.
pub(super) fn estimate_text(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "–".to_owned(), |one| figure(one.mean, one.low.zip(one.high)))
}

/// Formats a figure with its interval, if it has one.
pub(super) fn figure(value: f64, interval: Option<(f64, f64)>) -> String {
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", short(value), short(low), short(high)),
        None => short(value),
    }
}

/// Formats a metric of a cell with its interval.
pub(super) fn metric_text(cell: &MeasuredCell, id: &str) -> String {
    estimate_text(cell.metric(id))
}
