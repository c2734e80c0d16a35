//! Cumulative distributions of durations over all exchanges.

use super::super::ratios::place;
use super::{Plot, Results, WIDTH, parts, slug, subjects};
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, GRID, SeriesStyle};
use crate::results::MeasuredCell;
use crate::statistics::shares;

const PANEL: f64 = 262.0;
const HEIGHT: f64 = 180.0;
const STEP: f64 = 318.0;
const LEFT: f64 = 48.0;
/// Maximum of panels in a plot.
const PANELS_MAX: usize = 15;
/// Points of a line; more would not be visible.
const POINTS_MAX: usize = 160;
/// One subject's times and shares, with their style.
type StyledLine = (SeriesStyle, Vec<(f64, f64)>);
/// Nanoseconds of a millisecond.
const MS: f64 = 1e6;

/// Draws each part of the study, a panel for each place.
pub(super) fn draw(results: &Results) -> Vec<Plot> {
    let draw = |((experiment, variant), cells): ((&str, &str), Vec<&MeasuredCell>)| {
        let name = results.part(experiment, variant);
        part(results, &name, &cells)
    };
    parts(results).into_iter().filter_map(draw).collect()
}

fn part(results: &Results, name: &str, cells: &[&MeasuredCell]) -> Option<Plot> {
    let names = subjects(cells);
    let mut panels: Vec<(String, Vec<StyledLine>)> = Vec::new();
    for cell in cells {
        let Some(histogram) = cell.distribution() else { continue };
        let look = SeriesStyle::of(names.iter().position(|name| *name == cell.name).unwrap_or_default());
        let line: Vec<(f64, f64)> =
            shares(&histogram).into_iter().map(|(time, share)| (time as f64 / MS, share)).collect();
        let title = place(results, cell);
        match panels.iter_mut().find(|(other, _)| *other == title) {
            Some((_, lines)) => lines.push((look, line)),
            None => panels.push((title, vec![(look, line)])),
        }
    }
    if panels.is_empty() {
        return None;
    }
    let left_out = panels.len().saturating_sub(PANELS_MAX);
    panels.truncate(PANELS_MAX);
    let looks = SeriesStyle::each(&names);
    let rows = panels.len().div_ceil(3);
    let mut canvas = Canvas::new(WIDTH, 70.0 + (HEIGHT + 64.0) * rows as f64);
    let top = canvas.legend(16.0, &looks) + 36.0;
    for (number, (title, lines)) in panels.iter().enumerate() {
        let at = (LEFT + STEP * (number % 3) as f64, top + (HEIGHT + 64.0) * (number / 3) as f64);
        panel(&mut canvas, at, title, lines);
    }
    let more =
        if left_out > 0 { format!(" {left_out} more cells are in the records.") } else { String::new() };
    let words = format!(
        "The height of a line is the share of exchanges, of all forks together, that took no longer than the time below it. \
         A steep line is a steady service; a long foot to the right shows slow exchanges, which users remember.{more}"
    );
    let title = format!("All exchanges: {name}");
    let svg = canvas.finish(
        &title,
        &format!("Distributions of times for {}, one panel for each cell.", names.join(", ")),
    );
    Some(Plot { id: format!("spread-{}", slug(name)), title, words, svg, values: TextTable::default() })
}

fn panel(canvas: &mut Canvas, (left, top): (f64, f64), title: &str, lines: &[StyledLine]) {
    canvas.heading((left, top - 8.0), title);
    let times = lines
        .iter()
        .flat_map(|(_, line)| line.iter().filter(|(_, share)| *share <= 0.995).map(|point| point.0));
    let Some(across) = Axis::log(times, left, left + PANEL) else { return };
    let bottom = top + HEIGHT;
    let up = |share: f64| bottom - HEIGHT * share;
    for (share, label) in [(0.0, "0"), (0.5, "half"), (0.95, "95 %")] {
        canvas.line((left, up(share)), (left + PANEL, up(share)), GRID, 1.0);
        canvas.text((left - 6.0, up(share) + 4.0), "end", FAINT, label);
    }
    across.draw_below(canvas, top, bottom);
    canvas.text((left + PANEL, bottom + 31.0), "end", FAINT, "ms");
    for (look, line) in lines {
        let every = line.len().div_ceil(POINTS_MAX).max(1);
        let mut points = vec![(across.place(line.first().map_or(0.0, |point| point.0)), up(0.0))];
        for (number, (time, share)) in line.iter().enumerate() {
            if number % every == 0 || number + 1 == line.len() {
                let x = across.place(*time);
                let before = points.last().map_or(up(0.0), |point| point.1);
                points.push((x, before));
                points.push((x, up(*share)));
            }
        }
        canvas.polyline(&points, *look);
        // A mark in the middle distinguishes lines without colour.
        if let Some((time, share)) = line.iter().find(|(_, share)| *share >= 0.5) {
            canvas.mark((across.place(*time), up(*share)), *look);
        }
    }
}
