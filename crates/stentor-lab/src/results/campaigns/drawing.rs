//! Plots of rates: a bar for each test, and lines over the number of consumers.

use super::{CellSummary, Plot, tables};
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
const PANEL: f64 = 380.0;
const HEIGHT: f64 = 220.0;
const PANEL_TOP: f64 = 62.0;
/// Levels of consumers in the paper.
const CONSUMERS: [f64; 3] = [20.0, 50.0, 100.0];

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
    Plot { id: id.to_owned(), title, words, svg }
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

/// A point of a line: consumers, rate, and its interval.
type RatePoint = (f64, f64, Option<(f64, f64)>);

/// Reads a rate and its interval.
type RateOfCell = fn(&CellSummary) -> Option<(f64, Option<(f64, f64)>)>;

/// Returns the lines of each platform and of both.
fn lines(tests: &[CellSummary], rate: RateOfCell) -> [Vec<RatePoint>; 3] {
    ["gcm", "apns", "gcm+apns"].map(|mix| {
        let of_mix = tests.iter().filter(|one| one.pooled && one.mix == mix);
        let point = |one: &CellSummary| rate(one).zip(one.consumers);
        let points = of_mix.filter_map(point);
        let mut points: Vec<RatePoint> =
            points.map(|((rate, interval), consumers)| (f64::from(consumers), rate, interval)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    })
}

/// Draws the rate over the number of consumers with pools, published and measured: the paper's only figure.
pub(super) fn consumers(tests: &[CellSummary]) -> Plot {
    let looks = SeriesStyle::each(&["GCM", "APNs", "both"]);
    let published = lines(tests, |one| Some((one.published_pushes_per_second?, None)));
    let ours = lines(tests, |one| one.rate.map(|rate| (rate.median, rate.low.zip(rate.high))));
    let mut canvas = Canvas::new(WIDTH, PANEL_TOP + HEIGHT + 44.0);
    canvas.legend(16.0, &looks);
    panel(&mut canvas, "published, pushes/s", 58.0, &published, &looks);
    panel(&mut canvas, "measured here, pushes/s", 58.0 + PANEL + 90.0, &ours, &looks);
    let title = "Pushes per second over consumers".to_owned();
    let words =
        "With pools, consumers of each platform; whiskers are 95 % intervals. The heights of the two differ."
            .to_owned();
    let svg = canvas.finish(
        &title,
        "Lines for both platforms and each, published on the left and measured on the right.",
    );
    Plot { id: "consumers".to_owned(), title, words, svg }
}

fn panel(
    canvas: &mut Canvas,
    title: &str,
    left: f64,
    lines: &[Vec<RatePoint>],
    looks: &[(&str, SeriesStyle)],
) {
    canvas.heading((left, PANEL_TOP - 12.0), title);
    let most = lines.iter().flatten().map(|point| point.1).fold(1.0, f64::max);
    let bottom = PANEL_TOP + HEIGHT;
    let up = Axis::linear(1.05 * most, bottom, PANEL_TOP);
    up.draw_left(canvas, left, left + PANEL);
    let across = |consumers: f64| left + PANEL * consumers / 110.0;
    for consumers in CONSUMERS {
        canvas.text((across(consumers), bottom + 16.0), "middle", FAINT, &short(consumers));
    }
    canvas.text((left + PANEL, bottom + 34.0), "end", FAINT, "consumers per platform");
    if lines.iter().all(Vec::is_empty) {
        canvas.text((left + 8.0, PANEL_TOP + HEIGHT / 2.0), "start", FAINT, "not run");
    }
    for (points, (_, look)) in lines.iter().zip(looks) {
        let places: Vec<(f64, f64)> =
            points.iter().map(|point| (across(point.0), up.place(point.1))).collect();
        canvas.polyline(&places, *look);
        for (place, point) in places.iter().zip(points) {
            canvas.mark(*place, *look);
            if let Some((low, high)) = point.2 {
                canvas.whiskers((place.0, up.place(low)), (place.0, up.place(high)), look.color);
            }
        }
    }
}
