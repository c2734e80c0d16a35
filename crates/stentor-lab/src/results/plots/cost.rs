//! Costs: processor time and memory, on each side.

use super::super::Metric;
use super::super::ratios::place;
use super::{Plot, Results, WIDTH, left_out, margin};
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, INK, SeriesStyle};
use crate::results::MeasuredCell;

const ROW: f64 = 20.0;
const TOP: f64 = 62.0;
/// Maximum of rows in a plot.
const ROWS_MAX: usize = 72;

/// Draws processor time and memory side by side.
pub(super) fn draw(results: &Results) -> Vec<Plot> {
    let metrics = ["client_cpu", "server_cpu", "client_memory", "server_memory"].map(Metric::find);
    let [Some(client_cpu), Some(server_cpu), Some(client_memory), Some(server_memory)] = metrics else {
        return Vec::new();
    };
    let pairs = [
        ("processor time of each exchange, ms", [client_cpu, server_cpu]),
        ("most memory, MiB", [client_memory, server_memory]),
    ];
    let has = |cell: &&MeasuredCell| {
        pairs.iter().flat_map(|(_, pair)| pair).any(|metric| cell.estimate(metric).is_some())
    };
    let all: Vec<&MeasuredCell> = results.cells.iter().filter(has).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let cells = &all[..all.len().min(ROWS_MAX)];
    let left = margin(cells.iter().map(|cell| (place(results, cell), cell.name.clone())), 440.0);
    let width = (WIDTH - left - 40.0) / 2.0;
    let height = TOP + ROW * cells.len() as f64 + 34.0;
    let mut canvas = Canvas::new(WIDTH, height);
    canvas.legend(16.0, &[("client", SeriesStyle::of(0)), ("server", SeriesStyle::of(5))]);
    rows(results, &mut canvas, cells, left);
    for (number, (title, pair)) in pairs.iter().enumerate() {
        let from = left + number as f64 * (width + 30.0);
        column(&mut canvas, (from, from + width), title, *pair, cells, height - 24.0);
    }
    let more = left_out(all.len() - cells.len());
    let words = format!(
        "Geometric means over forks with 95 % intervals. Processor time is seconds of work, not a percentage: a slow service with a \
         low load may still cost more. Memory is the most that the process held at once.{more}"
    );
    let title = "Processor time and memory of each side".to_owned();
    let svg = canvas.finish(
        &title,
        "Dots for client and server in each cell, processor time on the left and memory on the right.",
    );
    vec![Plot { id: "costs".to_owned(), title, words, svg, values: TextTable::default() }]
}

fn rows(results: &Results, canvas: &mut Canvas, cells: &[&MeasuredCell], left: f64) {
    let mut last = String::new();
    for (number, cell) in cells.iter().enumerate() {
        let y = TOP + ROW * number as f64 + 14.0;
        let place = place(results, cell);
        if place != last {
            canvas.text((8.0, y), "start", INK, &place);
        }
        canvas.text((left - 12.0, y), "end", FAINT, &cell.name);
        last = place;
    }
}

fn column(
    canvas: &mut Canvas,
    (from, to): (f64, f64),
    title: &str,
    pair: [&Metric; 2],
    cells: &[&MeasuredCell],
    bottom: f64,
) {
    canvas.heading((from, TOP - 14.0), title);
    let means =
        cells.iter().flat_map(|cell| pair.map(|metric| cell.estimate(metric).map(|one| one.mean))).flatten();
    let Some(axis) = Axis::log(means, from, to) else {
        canvas.text((from, TOP + 20.0), "start", FAINT, "not measured here");
        return;
    };
    axis.draw_below(canvas, TOP, bottom);
    for (number, cell) in cells.iter().enumerate() {
        for (metric, look, off) in [(pair[0], SeriesStyle::of(0), -2.0), (pair[1], SeriesStyle::of(5), 3.0)] {
            let y = TOP + ROW * number as f64 + 10.0 + off;
            let Some(estimate) = cell.estimate(metric) else { continue };
            if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                canvas.line((axis.place(low), y), (axis.place(high), y), look.color, 1.4);
            }
            canvas.mark((axis.place(estimate.mean), y), look);
        }
    }
}
