//! Plots of rates: a bar for each test, and the paper's figure over the number of consumers.

use super::super::plots::drawn;
use super::{CellSummary, Plot, tables};
use crate::claims::PaperFigure;
use crate::claims::figures::Interval;
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, INK, PAPER, SeriesStyle, WIDTH, short, width_of};

const ROW: f64 = 36.0;
const BAR: f64 = 11.0;
const TOP: f64 = 52.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 70.0;
/// The style of the bound by Little's law.
const BOUND: SeriesStyle = SeriesStyle::of(1);
/// The interval of two or three runs may be very wide; it is clipped at this multiple of the largest rate.
const BEYOND: f64 = 1.3;
/// Levels of consumers in the paper.
const CONSUMERS: [u32; 3] = [20, 50, 100];

/// Draws the rates of cells: the paper's, ours with its interval and its runs, and the bound by Little's law.
pub(super) fn rates(id: &str, cells: &[&CellSummary]) -> Plot {
    let figures = |one: &&CellSummary| {
        let rate = Some(one.campaign.pushes_per_second);
        [rate, one.published_pushes_per_second, one.bound_pushes_per_second]
    };
    let largest = cells.iter().flat_map(figures).flatten().fold(1.0, f64::max);
    let intervals = cells.iter().filter_map(|one| one.rate?.high);
    let most = intervals.fold(largest, f64::max).min(BEYOND * largest);
    let height = TOP + ROW * cells.len() as f64 + 30.0;
    let mut canvas = Canvas::new(WIDTH, height);
    let axis = Axis::linear(most, LEFT, WIDTH - RIGHT);
    axis.draw_below(&mut canvas, TOP - 6.0, height - 24.0);
    legend(&mut canvas, cells);
    for (at, one) in cells.iter().enumerate() {
        bars(&mut canvas, &axis, one, TOP + ROW * at as f64);
    }
    let descriptions =
        cells.iter().map(|one| format!("{} {}", one.id, short(one.campaign.pushes_per_second)));
    let title = "Pushes per second".to_owned();
    let svg = canvas
        .finish("Pushes per second, published and measured", &descriptions.collect::<Vec<_>>().join("; "));
    let words = "The bar is the median of the runs, the line its 95 % interval, each ring a run.".to_owned();
    Plot { id: id.to_owned(), title, words, svg, values: TextTable::default() }
}

fn legend(canvas: &mut Canvas, cells: &[&CellSummary]) {
    let any = |part: fn(&CellSummary) -> bool| cells.iter().any(|one| part(one));
    let parts = [
        (PAPER, "published", any(|one| one.published_pushes_per_second.is_some())),
        (SeriesStyle::of(0).color, "measured: median, 95 % interval, each run", true),
        (BOUND.color, "bound by Little's law", any(|one| one.bound_pushes_per_second.is_some())),
    ];
    let mut x = 8.0;
    for (color, word, _) in parts.into_iter().filter(|(_, _, is_there)| *is_there) {
        canvas.rectangle((x, 8.0), (12.0, BAR), color, "none");
        canvas.text((x + 18.0, 18.0), "start", INK, word);
        x += 40.0 + width_of(word);
    }
}

fn bars(canvas: &mut Canvas, axis: &Axis, one: &CellSummary, y: f64) {
    let bar = |canvas: &mut Canvas, rate: f64, y: f64, color: &str| {
        canvas.rectangle((LEFT, y), (axis.place(rate) - LEFT, BAR), color, "none");
        canvas.text((WIDTH - 8.0, y + BAR - 1.0), "end", FAINT, &short(rate));
    };
    canvas.text((8.0, y + 20.0), "start", INK, &label(one));
    if let Some(published) = one.published_pushes_per_second {
        bar(canvas, published, y + 3.0, PAPER);
    }
    if one.was_made() {
        let top = y + 4.0 + BAR;
        bar(canvas, one.campaign.pushes_per_second, top, SeriesStyle::of(0).color);
        let middle = top + BAR / 2.0;
        if let Some((low, high)) = one.rate.and_then(|rate| rate.low.zip(rate.high)) {
            canvas.whiskers((axis.place(low), middle), (axis.place(high), middle), INK);
        }
        for rate in one.rates.values().iter().filter(|_| one.runs > 1) {
            canvas.mark((axis.place(*rate), middle), SeriesStyle::of(5));
        }
    }
    if let Some(bound) = one.bound_pushes_per_second {
        let x = axis.place(bound);
        canvas.line((x, y + 1.0), (x, y + 6.0 + 2.0 * BAR), BOUND.color, 2.0);
    }
}

fn label(one: &CellSummary) -> String {
    if !one.was_made() {
        return format!("{}: not run here", one.id);
    }
    if !one.question.is_empty() {
        return one.id.clone();
    }
    let pools = if one.pooled { "" } else { ", no pools" };
    format!("{}  {}, {} in flight{pools}", one.id, one.mix, tables::consumers(one))
}

/// The mixes of the paper's only figure, each with the name of its line.
const MIXES: [(&str, &str); 3] = [("gcm", "GCM"), ("apns", "APNs"), ("gcm+apns", "both")];

/// Draws the rate over the number of consumers with pools, published and measured: the paper's only figure.
pub(super) fn consumers(tests: &[CellSummary]) -> Plot {
    let published = figure(tests, |one| one.published_pushes_per_second.map(Interval::point));
    let measured = figure(tests, |one| {
        let rate = one.rate?;
        let (low, high) = rate.low.zip(rate.high).unwrap_or((rate.median, rate.median));
        Some(Interval { low, value: rate.median, high })
    });
    drawn(&published, &[("measured: our server", &measured)])
}

fn figure(tests: &[CellSummary], rate: fn(&CellSummary) -> Option<Interval>) -> PaperFigure {
    let value = |mix: &str, consumers: u32| {
        let is_place = |one: &&CellSummary| one.pooled && one.mix == mix && one.consumers == Some(consumers);
        tests.iter().find(is_place).and_then(rate)
    };
    PaperFigure {
        id: "figure-3".to_owned(),
        title: "Figure 3: pushes per second over consumers of each platform, with pools".to_owned(),
        unit: "push/s".to_owned(),
        systems: MIXES.map(|(_, name)| name.to_owned()).to_vec(),
        points: CONSUMERS.map(|consumers| consumers.to_string()).to_vec(),
        joined: CONSUMERS.len(),
        values: MIXES.map(|(mix, _)| CONSUMERS.map(|consumers| value(mix, consumers)).to_vec()).to_vec(),
    }
}
