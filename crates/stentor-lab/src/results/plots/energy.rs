//! Energy, with its kind in every plot.

use std::collections::BTreeMap;

use super::super::metric::wholes;
use super::super::ratios::place;
use super::{Plot, Results, WIDTH, margin, slug};
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, INK, SeriesStyle, short};
use crate::results::MeasuredCell;
use crate::statistics::{Estimate, Samples};

const ROW: f64 = 20.0;
const TOP: f64 = 50.0;
/// Millijoules of a joule.
const MILLI: f64 = 1000.0;
/// Maximum of rows in a plot.
const ROWS_MAX: usize = 60;

/// Component, kind and model.
pub(in crate::results) type JouleSource = (String, String, String);

/// Draws each kind and model separately: measured, imported and modelled figures are never in one plot.
pub(super) fn draw(results: &Results) -> Vec<Plot> {
    let mut kinds: BTreeMap<JouleSource, Vec<(&MeasuredCell, Estimate)>> = BTreeMap::new();
    for cell in &results.cells {
        for (key, samples) in joules(cell) {
            if let Some(estimate) = samples.estimate(crate::results::CONFIDENCE) {
                kinds.entry(key).or_default().push((cell, estimate));
            }
        }
    }
    let pictures = kinds.iter().enumerate().map(|(number, ((component, kind, model), rows))| {
        let plot = picture(results, component, kind, model, rows);
        Plot { id: format!("{}-{}", plot.id, number + 1), ..plot }
    });
    pictures.collect()
}

/// Returns the energy per whole exchange of each fork, in millijoules, by component, kind and model.
pub(in crate::results) fn joules(cell: &MeasuredCell) -> BTreeMap<JouleSource, Samples> {
    let mut all: BTreeMap<JouleSource, Samples> = BTreeMap::new();
    for fork in &cell.forks {
        let exchanges = wholes(fork).unwrap_or(1.0);
        for energy in &fork.energy {
            let Some(joule) = energy.joule else { continue };
            let key = (energy.name(), energy.kind.word().to_owned(), energy.model.clone());
            all.entry(key).or_default().push(MILLI * joule / exchanges);
        }
    }
    all
}

fn picture(
    results: &Results,
    component: &str,
    kind: &str,
    model: &str,
    rows: &[(&MeasuredCell, Estimate)],
) -> Plot {
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let left = margin(shown.iter().map(|(cell, _)| (place(results, cell), cell.name.clone())), 460.0);
    let height = TOP + ROW * shown.len() as f64 + 44.0;
    let mut canvas = Canvas::new(WIDTH, height);
    canvas.heading((8.0, 22.0), &format!("{component}, millijoules of each exchange"));
    canvas.stamp((WIDTH - 8.0, 22.0), kind);
    let most = shown
        .iter()
        .map(|(_, one)| one.high.map_or(one.mean, |high| high.min(2.0 * one.mean)))
        .fold(0.0, f64::max);
    let axis = Axis::linear(most, left, WIDTH - 80.0);
    axis.draw_below(&mut canvas, TOP - 8.0, height - 34.0);
    let mut last = String::new();
    for (number, (cell, estimate)) in shown.iter().enumerate() {
        let y = TOP + ROW * number as f64 + 8.0;
        let place = place(results, cell);
        if place != last {
            canvas.text((8.0, y + 4.0), "start", INK, &place);
        }
        last = place;
        canvas.text((left - 12.0, y + 4.0), "end", FAINT, &cell.name);
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            canvas.whiskers((axis.place(low), y), (axis.place(high), y), INK);
        }
        canvas.mark((axis.place(estimate.mean), y), SeriesStyle::of(0));
        canvas.text((WIDTH - 8.0, y + 4.0), "end", INK, &short(estimate.mean));
    }
    let title = format!("Energy of the {component}: {kind}");
    let words = match kind {
        "modelled" => format!("Computed by the model {model} from the captured packets, not measured."),
        "imported" => format!("Imported from elsewhere: {model}."),
        _ => format!("Measured by {model}."),
    };
    let svg = canvas.finish(&title, &format!("Millijoules of each exchange by cell; {kind}, {model}."));
    Plot {
        id: format!("energy-{}", slug(&format!("{component} {kind}"))),
        title,
        words,
        svg,
        values: TextTable::default(),
    }
}
