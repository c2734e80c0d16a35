//! Rates over consumers as lines: the paper's only figure, with its own values and with ours.

use std::fmt::Write as _;

use super::Report;
use super::drawing::{FAINT, GRID, open};
use crate::plot::Scale;
use crate::study::Mix;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const PANEL: f64 = 350.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 40.0;
const GAP: f64 = 80.0;
const LEFT: f64 = 50.0;

/// One place of a line.
#[derive(Clone, Copy)]
struct Point {
    consumers: f64,
    rate: f64,
    interval: Option<(f64, f64)>,
}

struct Line {
    name: &'static str,
    color: &'static str,
    points: Vec<Point>,
}

/// Draws the rate over the number of consumers with pools, as published and as measured.
#[must_use]
pub fn figure(report: &Report) -> String {
    let published = lines(report, |report, id| {
        let rate = report.published.pushes_per_second(id)?;
        Some((rate, None))
    });
    let ours = lines(report, |report, id| {
        let rate = report.cell(id)?.rate?;
        Some((rate.median, rate.low.zip(rate.high)))
    });
    let mut svg = open(WIDTH, HEIGHT, "Pushes per second over consumers, published and measured");
    legend(&published, &mut svg);
    panel("published", LEFT, &published, &mut svg);
    panel("measured", LEFT + PANEL + GAP, &ours, &mut svg);
    svg.push_str("</svg>\n");
    svg
}

fn lines(report: &Report, figure: impl Fn(&Report, &str) -> Option<(f64, Option<(f64, f64)>)>) -> Vec<Line> {
    let kinds =
        [(Mix::Gcm, "GCM", "#2f855a"), (Mix::Apns, "APNs", "#805ad5"), (Mix::Both, "both", "#2b6cb0")];
    let line = |(mix, name, color)| {
        let wanted = report.study.scenarios.iter().filter(|one| one.pooled && one.mix == mix);
        let mut points: Vec<Point> = wanted
            .filter_map(|one| {
                let (rate, interval) = figure(report, &one.id)?;
                Some(Point { consumers: f64::from(one.consumers), rate, interval })
            })
            .collect();
        points.sort_by(|one, other| one.consumers.total_cmp(&other.consumers));
        Line { name, color, points }
    };
    kinds.into_iter().map(line).collect()
}

fn legend(lines: &[Line], svg: &mut String) {
    for (at, line) in lines.iter().enumerate() {
        let x = LEFT + 80.0 * at as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"6\" width=\"10\" height=\"10\" rx=\"2\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"15\">{}</text>",
            line.color,
            x + 14.0,
            line.name
        );
    }
}

/// Where a value lies in a panel.
struct Frame {
    left: f64,
    scale: Scale,
}

impl Frame {
    fn x(&self, consumers: f64) -> f64 {
        self.left + PANEL * consumers / 110.0
    }

    fn y(&self, rate: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (rate / self.scale.most).clamp(0.0, 1.0)
    }
}

fn panel(title: &str, left: f64, lines: &[Line], svg: &mut String) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let largest = points().map(|point| point.rate).fold(1.0, f64::max);
    let frame = Frame { left, scale: Scale::new(1.05 * largest) };
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"40\" font-weight=\"600\">{title}, pushes/s</text>");
    axes(&frame, svg);
    if points().next().is_none() {
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"{}\" fill=\"{FAINT}\">not run</text>", HEIGHT / 2.0);
    }
    for line in lines {
        draw_line(line, &frame, svg);
    }
}

fn axes(frame: &Frame, svg: &mut String) {
    for rate in frame.scale.values() {
        let (y, right) = (frame.y(rate), frame.left + PANEL);
        let _ = writeln!(
            svg,
            "<line x1=\"{}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"{GRID}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{FAINT}\">{rate}</text>",
            frame.left,
            frame.left - 6.0,
            y + 4.0
        );
    }
    for consumers in [20.0, 50.0, 100.0] {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{FAINT}\">{consumers}</text>",
            frame.x(consumers),
            HEIGHT - BOTTOM + 16.0
        );
    }
    let (x, y) = (frame.left + PANEL / 2.0, HEIGHT - 8.0);
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"{FAINT}\">consumers per platform</text>"
    );
}

fn draw_line(line: &Line, frame: &Frame, svg: &mut String) {
    let place = |point: &Point| format!("{:.1},{:.1}", frame.x(point.consumers), frame.y(point.rate));
    let places: Vec<String> = line.points.iter().map(place).collect();
    let color = line.color;
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
        places.join(" ")
    );
    for point in &line.points {
        let (x, y) = (frame.x(point.consumers), frame.y(point.rate));
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{color}\"/>");
        if let Some((low, high)) = point.interval {
            let (low, high) = (frame.y(low), frame.y(high));
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {low:.1}h8M{x:.1} {low:.1}V{high:.1}M{:.1} {high:.1}h8\" stroke=\"{color}\"/>",
                x - 4.0,
                x - 4.0
            );
        }
    }
}
