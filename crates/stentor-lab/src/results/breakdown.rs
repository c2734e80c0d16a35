//! Drawings as tables, for where nothing can be drawn: layers of bytes, costs and energy by cell.

use super::figures::{self, ForkFigure};
use super::interruptions::interval_text;
use super::payload::Payloads;
use super::ratios::place;
use super::{CONFIDENCE, MeasuredCell, Metric, Results, layers};
use crate::document::TextTable;
use crate::plot::short;
use crate::statistics::Samples;

/// Bytes of a whole exchange, both ways, by layer.
pub(super) fn bytes(results: &Results) -> TextTable {
    let [opening, headers, framing, markup, payload] = layers::NAMES;
    table(results, ["part", "cell", "subject", opening, headers, framing, markup, payload], layers::IDS)
}

/// One row for each cell that has any of the figures, after part, cell and subject.
fn table<const COLUMNS: usize, const FIGURES: usize>(
    results: &Results,
    header: [&str; COLUMNS],
    ids: [&str; FIGURES],
) -> TextTable {
    let mut payloads = Payloads::of(results);
    let rows = results.cells.iter().filter_map(|cell| {
        let payload = payloads.bytes(cell);
        let forks: Vec<Vec<ForkFigure>> = cell.forks.iter().map(|fork| figures::of(fork, payload)).collect();
        let middle = |id: &&str| {
            let of = |fork: &Vec<ForkFigure>| Some(fork.iter().find(|one| one.id == **id)?.value);
            forks.iter().filter_map(of).collect::<Samples>().quantile(0.5)
        };
        let found: Vec<Option<f64>> = ids.iter().map(middle).collect();
        let told = found.iter().map(|one| one.map_or_else(|| "–".to_owned(), short));
        found.iter().any(Option::is_some).then(|| about(results, cell).into_iter().chain(told).collect())
    });
    TextTable { header: header.map(str::to_owned).to_vec(), rows: rows.collect() }
}

fn about(results: &Results, cell: &MeasuredCell) -> [String; 3] {
    [results.part(&cell.experiment, &cell.variant), place(results, cell), cell.name.clone()]
}

/// Processor time and memory of each side.
pub(super) fn costs(results: &Results) -> TextTable {
    let metrics = ["client_cpu", "server_cpu", "client_memory", "server_memory"];
    let rows = results.cells.iter().filter_map(|cell| {
        let found = metrics.map(|id| Metric::find(id).and_then(|metric| cell.estimate(metric)));
        let [part, place, subject] = about(results, cell);
        let is_known = found.iter().any(Option::is_some);
        let [client, server, client_memory, server_memory] = found.map(interval_text);
        is_known.then_some([part, place, subject, client, server, client_memory, server_memory])
    });
    TextTable::new(
        [
            "part",
            "cell",
            "subject",
            "client CPU ms [95 %]",
            "server CPU ms [95 %]",
            "client memory MiB [95 %]",
            "server memory MiB [95 %]",
        ],
        rows,
    )
}

/// Energy of each exchange, with its kind and its meter or model.
pub(super) fn energy(results: &Results) -> TextTable {
    let rows = results.cells.iter().flat_map(|cell| {
        let [part, place, subject] = about(results, cell);
        super::plots::joules(cell).into_iter().map(move |((component, kind, model), samples)| {
            let energy = interval_text(samples.estimate(CONFIDENCE));
            [part.clone(), place.clone(), subject.clone(), component, energy, kind, model]
        })
    });
    TextTable::new(["part", "cell", "subject", "of what", "mJ [95 %]", "kind", "meter or model"], rows)
}
