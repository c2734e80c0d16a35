//! Times over size, with bands for their intervals, beside the paper's times.

use std::collections::{BTreeMap, BTreeSet};

use super::super::cell::{by_size, size};
use super::super::{METRICS, paper};
use super::{Plot, Results, WIDTH, parts, slug, subjects};
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, SeriesStyle};
use crate::results::MeasuredCell;

const PANEL: f64 = 400.0;
const HEIGHT: f64 = 230.0;
const GAP: f64 = 90.0;
const LEFT: f64 = 58.0;
/// Maximum of rows of panels in a plot.
const ROWS_MAX: usize = 6;

/// A point of a line: size, value, and its interval.
type BandPoint = (f64, f64, Option<(f64, f64)>);
/// Reads a cell's value and its interval.
type BandReader<'a> = dyn Fn(&MeasuredCell) -> Option<(f64, Option<(f64, f64)>)> + 'a;

/// Draws each part of the study that has a factor with sizes as levels.
pub(super) fn draw(results: &Results) -> Vec<Plot> {
    let draw = |((experiment, variant), cells): ((&str, &str), Vec<&MeasuredCell>)| {
        part(results, &results.part(experiment, variant), &sized(&cells)?, &cells)
    };
    parts(results).into_iter().filter_map(draw).collect()
}

/// Selects the factor with sizes as levels that has the most levels.
fn sized(cells: &[&MeasuredCell]) -> Option<String> {
    let mut factors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, level) in cells.iter().flat_map(|cell| &cell.levels) {
        factors.entry(name).or_default().insert(level);
    }
    let is_sized = |name: &str, levels: &BTreeSet<&str>| {
        // A clock rate is not the size of any content.
        name != "cpu" && levels.len() > 1 && levels.iter().all(|level| size(level).is_some())
    };
    let sizes = factors.iter().filter(|(name, levels)| is_sized(name, levels));
    sizes.max_by_key(|(_, levels)| levels.len()).map(|(name, _)| (*name).to_owned())
}

fn part(results: &Results, name: &str, factor: &str, cells: &[&MeasuredCell]) -> Option<Plot> {
    let rest = |cell: &MeasuredCell| {
        let factors = results.factors();
        let others =
            cell.levels.iter().filter(|(name, _)| *name != factor && factors.contains_key(name.as_str()));
        others
            .map(|(name, level)| if level.len() < 3 { format!("{name} {level}") } else { level.clone() })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut rows: BTreeMap<String, Vec<&MeasuredCell>> = BTreeMap::new();
    cells.iter().for_each(|cell| rows.entry(rest(cell)).or_default().push(cell));
    let names = subjects(cells);
    let looks = SeriesStyle::each(&names);
    let count = rows.len().min(ROWS_MAX);
    let is_published = cells.iter().any(|cell| paper::published_ms(results, cell).is_some());
    let mut canvas = Canvas::new(WIDTH, 64.0 + (HEIGHT + 60.0) * count as f64);
    let top = canvas.legend(16.0, &looks) + 36.0;
    for (place, (title, cells)) in rows.iter().take(ROWS_MAX).enumerate() {
        let y = top + (HEIGHT + 60.0) * place as f64;
        let ours = |cell: &MeasuredCell| {
            let estimate = cell.estimate(&METRICS[0])?;
            Some((estimate.mean, estimate.low.zip(estimate.high)))
        };
        let published = |cell: &MeasuredCell| Some((paper::published_ms(results, cell)?, None));
        let heading = |what: &str| {
            if title.is_empty() { format!("{what}, ms") } else { format!("{title}: {what}, ms") }
        };
        let measured_left = if is_published { LEFT + PANEL + GAP } else { LEFT };
        if is_published {
            let lines = lines(cells, &names, factor, &published);
            panel(&mut canvas, (LEFT, y), &heading("published"), factor, &lines);
        }
        let lines = lines(cells, &names, factor, &ours);
        panel(&mut canvas, (measured_left, y), &heading("measured here"), factor, &lines);
    }
    let title = format!("Time over {factor}: {name}");
    let words = "The middle exchange of each fork; lines join geometric means over forks, the shaded band is their 95 % interval. \
                 Both axes are logarithmic: a straight line is a power, parallel lines are a constant factor. The machines differ, so \
                 compare shapes, not heights."
        .to_owned();
    let svg = canvas.finish(
        &title,
        &format!(
            "Lines for {} over {factor}{}.",
            names.join(", "),
            if is_published { ", published on the left and measured on the right" } else { ", measured" }
        ),
    );
    Some(Plot { id: format!("size-{}", slug(name)), title, words, svg, values: TextTable::default() })
}

fn lines<'a>(
    cells: &[&MeasuredCell],
    names: &[&'a str],
    factor: &str,
    value: &BandReader<'_>,
) -> Vec<(&'a str, SeriesStyle, Vec<BandPoint>)> {
    let line = |(place, name): (usize, &&'a str)| {
        let mut of: Vec<&&MeasuredCell> = cells.iter().filter(|cell| cell.name == **name).collect();
        of.sort_by(|one, other| by_size(&one.levels[factor], &other.levels[factor]));
        let point = |cell: &&MeasuredCell| {
            let (value, interval) = value(cell)?;
            Some((size(&cell.levels[factor])?, value, interval))
        };
        (*name, SeriesStyle::of(place), of.into_iter().filter_map(point).collect::<Vec<BandPoint>>())
    };
    names.iter().enumerate().map(line).collect()
}

fn panel(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    title: &str,
    factor: &str,
    lines: &[(&str, SeriesStyle, Vec<BandPoint>)],
) {
    canvas.heading((left, top - 8.0), title);
    let name = format!("{} (logarithmic)", factor.replace('_', " "));
    canvas.text((left + PANEL, top + HEIGHT + 32.0), "end", FAINT, &name);
    let points = || lines.iter().flat_map(|(_, _, points)| points);
    let bottom = top + HEIGHT;
    let across = Axis::log(points().map(|point| point.0), left, left + PANEL);
    let up = Axis::log(points().map(|point| point.1), bottom, top + 6.0);
    let (Some(across), Some(up)) = (across, up) else {
        canvas.text(
            (left + PANEL / 2.0, top + HEIGHT / 2.0),
            "middle",
            FAINT,
            "the paper prints no figures of these cells",
        );
        return;
    };
    up.draw_left(canvas, left, left + PANEL);
    let mut sizes: Vec<f64> = points().map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    for size in sizes {
        canvas.line((across.place(size), bottom), (across.place(size), bottom + 4.0), FAINT, 1.0);
        canvas.text((across.place(size), bottom + 17.0), "middle", FAINT, &crate::plot::short(size));
    }
    for (_, look, points) in lines {
        let end = |high: bool| {
            let of =
                move |point: &BandPoint| point.2.map(|(low, top)| (point.0, if high { top } else { low }));
            points.iter().filter_map(of).collect::<Vec<_>>()
        };
        let on_canvas = |(x, y): (f64, f64)| (across.place(x), up.place(y));
        let mut outline: Vec<(f64, f64)> = end(true).into_iter().map(on_canvas).collect();
        outline.extend(end(false).into_iter().rev().map(on_canvas));
        canvas.area(&outline, *look);
        let middle: Vec<(f64, f64)> = points.iter().map(|point| on_canvas((point.0, point.1))).collect();
        canvas.polyline(&middle, *look);
        middle.iter().for_each(|at| canvas.mark(*at, *look));
    }
}
