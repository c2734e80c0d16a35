//! Plots as tables, for output without graphics: layers of bytes, costs and energy by cell.

use super::columns::{ABOUT, about, estimate_text, metric_text, number_text, of_cells};
use super::figures::{self, ForkFigure};
use super::payload::Payloads;
use super::{CONFIDENCE, MeasuredCell, Results, layers};
use crate::document::TextTable;
use crate::statistics::Samples;

/// Bytes of a whole exchange in both directions, by layer; one row for each cell with known bytes.
pub(super) fn bytes(results: &Results) -> TextTable {
    let mut payloads = Payloads::of(results);
    let rows = results.cells.iter().filter_map(|cell| {
        let payload = payloads.bytes(cell);
        let forks: Vec<Vec<ForkFigure>> = cell.forks.iter().map(|fork| figures::of(fork, payload)).collect();
        let middle = |id: &&str| {
            let of = |fork: &Vec<ForkFigure>| Some(fork.iter().find(|one| one.id == **id)?.value);
            forks.iter().filter_map(of).collect::<Samples>().quantile(0.5)
        };
        let found = layers::IDS.each_ref().map(middle);
        let texts = found.iter().map(|one| number_text(*one));
        found.iter().any(Option::is_some).then(|| about(results, cell).into_iter().chain(texts).collect())
    });
    let header = ABOUT.into_iter().chain(layers::NAMES).map(str::to_owned);
    TextTable { header: header.collect(), rows: rows.collect() }
}

/// Processor time and memory of each side.
pub(super) fn costs(results: &Results) -> TextTable {
    let metrics = ["client_cpu", "server_cpu", "client_memory", "server_memory"];
    let is_known = |cell: &&MeasuredCell| metrics.iter().any(|id| cell.metric(id).is_some());
    of_cells(
        results,
        results.cells.iter().filter(is_known),
        &[
            ("client CPU ms [95 %]", &|cell| metric_text(cell, "client_cpu")),
            ("server CPU ms [95 %]", &|cell| metric_text(cell, "server_cpu")),
            ("client memory MiB [95 %]", &|cell| metric_text(cell, "client_memory")),
            ("server memory MiB [95 %]", &|cell| metric_text(cell, "server_memory")),
        ],
    )
}

/// Energy of each exchange, with its kind and its meter or model.
pub(super) fn energy(results: &Results) -> TextTable {
    let rows = results.cells.iter().flat_map(|cell| {
        let [part, place, subject] = about(results, cell);
        super::plots::joules(cell).into_iter().map(move |((component, kind, model), samples)| {
            let energy = estimate_text(samples.estimate(CONFIDENCE));
            [part.clone(), place.clone(), subject.clone(), component, energy, kind, model]
        })
    });
    TextTable::new(["part", "cell", "subject", "component", "mJ [95 %]", "kind", "meter or model"], rows)
}
