//! Bars as SVG: the paper's rate, ours with its interval and its runs, and what Little's law allows.

use std::fmt::Write as _;

use super::Measured;
use crate::plot::Scale;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 70.0;
const ROW: f64 = 36.0;
const TOP: f64 = 44.0;
const BAR: f64 = 11.0;

pub(super) const PAPER: &str = "#b9bfc7";
pub(super) const OURS: &str = "#2b6cb0";
pub(super) const BOUND: &str = "#c05621";
pub(super) const INK: &str = "#1a202c";
pub(super) const FAINT: &str = "#718096";
pub(super) const GRID: &str = "#e2e8f0";

/// Draws the rates of cells.
#[must_use]
pub fn draw(cells: &[&Measured]) -> String {
    let rates = cells.iter().flat_map(|one| {
        let row = &one.row;
        [
            Some(row.pushes_per_second),
            row.published_pushes_per_second,
            row.bound_pushes_per_second,
            one.rate.and_then(|rate| rate.high),
        ]
    });
    let scale = Scale::new(limit(cells, rates.flatten().fold(1.0, f64::max)));
    let height = TOP + ROW * cells.len() as f64 + 8.0;
    let mut svg = open(WIDTH, height, "Pushes per second, published and measured");
    legend(cells, &mut svg);
    lines(scale, height, &mut svg);
    for (at, one) in cells.iter().enumerate() {
        bars(one, TOP + ROW * at as f64, scale, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Begins a drawing.
pub(super) fn open(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"system-ui,sans-serif\" font-size=\"11\" fill=\"{INK}\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    )
}

/// Keeps an interval of two or three runs, which may reach far, from making all bars small.
fn limit(cells: &[&Measured], largest: f64) -> f64 {
    let rates = cells.iter().flat_map(|one| {
        [
            Some(one.row.pushes_per_second),
            one.row.published_pushes_per_second,
            one.row.bound_pushes_per_second,
        ]
    });
    largest.min(1.3 * rates.flatten().fold(1.0, f64::max))
}

fn x_of(scale: Scale, rate: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * (rate / scale.most).min(1.0)
}

fn lines(scale: Scale, height: f64, svg: &mut String) {
    for rate in scale.values() {
        let x = x_of(scale, rate);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{height}\" stroke=\"{GRID}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{FAINT}\">{rate}</text>",
            TOP - 6.0
        );
    }
}

fn legend(cells: &[&Measured], svg: &mut String) {
    let any = |part: fn(&Measured) -> bool| cells.iter().any(|one| part(one));
    let parts = [
        (PAPER, "published", any(|one| one.row.published_pushes_per_second.is_some())),
        (OURS, "measured: median, 95 % interval, each run", true),
        (BOUND, "bound by Little's law", any(|one| one.row.bound_pushes_per_second.is_some())),
    ];
    let mut x = 0.0;
    for (color, word, _) in parts.into_iter().filter(|(_, _, is_there)| *is_there) {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"4\" width=\"10\" height=\"10\" rx=\"2\" fill=\"{color}\"/>\
             <text x=\"{}\" y=\"13\">{word}</text>",
            x + 14.0
        );
        x += 30.0 + 5.6 * word.len() as f64;
    }
}

fn bars(one: &Measured, y: f64, scale: Scale, svg: &mut String) {
    let row = &one.row;
    let name = crate::document::escape(&label(one));
    let middle = if row.published_pushes_per_second.is_some() { y + 20.0 } else { y + 26.0 };
    let _ = writeln!(svg, "<text x=\"0\" y=\"{middle:.1}\">{name}</text>");
    if let Some(published) = row.published_pushes_per_second {
        bar(published, y + 4.0, PAPER, scale, svg);
    }
    if row.was_made() {
        bar(row.pushes_per_second, y + 5.0 + BAR, OURS, scale, svg);
        whiskers(one, y + 5.0 + 1.5 * BAR, scale, svg);
    }
    if let Some(bound) = row.bound_pushes_per_second {
        let (x, from, to) = (x_of(scale, bound), y + 3.0, y + 6.0 + 2.0 * BAR);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{from:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\" stroke=\"{BOUND}\" stroke-width=\"2\"/>"
        );
    }
}

fn label(one: &Measured) -> String {
    let row = &one.row;
    if !row.was_made() {
        return format!("{}: not run here", row.id);
    }
    if !one.group.is_empty() {
        return row.id.clone();
    }
    let consumers = row.consumers.map_or_else(|| "adaptive".to_owned(), |count| format!("{count} in flight"));
    let pools = if row.pooled { "" } else { ", no pools" };
    format!("{}  {}, {consumers}{pools}", row.id, row.mix)
}

fn bar(rate: f64, y: f64, color: &str, scale: Scale, svg: &mut String) {
    let width = x_of(scale, rate) - LEFT;
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"1\" fill=\"{color}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" fill=\"{FAINT}\">{rate:.0}</text>",
        WIDTH - RIGHT + 8.0,
        y + BAR - 2.0
    );
}

/// Draws the interval as a line with ends, and each run as a dot.
fn whiskers(one: &Measured, y: f64, scale: Scale, svg: &mut String) {
    if let Some((Some(low), Some(high))) = one.rate.map(|rate| (rate.low, rate.high)) {
        let (from, to) = (x_of(scale, low), x_of(scale, high));
        let _ = writeln!(
            svg,
            "<path d=\"M{from:.1} {:.1}V{:.1}M{from:.1} {y:.1}H{to:.1}M{to:.1} {:.1}V{:.1}\" stroke=\"{INK}\" fill=\"none\"/>",
            y - 4.0,
            y + 4.0,
            y - 4.0,
            y + 4.0
        );
    }
    for rate in one.rates.values().iter().filter(|_| one.runs > 1) {
        let x = x_of(scale, *rate);
        let _ =
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"#fff\" stroke=\"{INK}\"/>");
    }
}
