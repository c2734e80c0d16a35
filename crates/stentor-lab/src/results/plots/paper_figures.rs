//! The figures of the paper, drawn again: all systems in one panel, published beside measured with intervals.

use super::super::columns::figure;
use super::super::evidence::{chosen_at, figures};
use super::super::{CONFIDENCE, Results, joined, setting};
use super::Plot;
use crate::claims::PaperFigure;
use crate::claims::figures::Interval;
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, INK, SeriesStyle, width_of};

/// Width of a drawing, so small that its letters can be read on a phone.
const WIDTH: f64 = 440.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 10.0;
const HEIGHT: f64 = 210.0;
/// Space for the heading above a panel, and for the names of points below it.
const ABOVE: f64 = 26.0;
const BELOW: f64 = 34.0;
/// Distance between the lines of a name.
const LINE: f64 = 14.0;
/// Space between two names beside each other.
const APART: f64 = 12.0;
/// Distance between the marks of two systems, at most.
const STEP_MAX: f64 = 11.0;
/// Distance of a published mark from the measured one of the same system.
const ASIDE: f64 = 4.0;
/// Part of an interval that is shown beyond the values of a panel.
const BEYOND: f64 = 1.5;

/// The measurements of a panel: software and setting, with the values of each figure.
struct Panel {
    name: String,
    figures: Vec<PaperFigure>,
}

/// Draws each figure of which a point was measured.
pub(super) fn draw(results: &Results) -> Vec<Plot> {
    let Some(dossier) = results.dossier.as_ref().filter(|_| !results.is_of_campaigns()) else {
        return Vec::new();
    };
    // Terms that cannot be read fail the tests of the studies.
    let published = dossier.paper_figures(None).unwrap_or_default();
    let panels = panels(results);
    let plot = |(place, published): (usize, &PaperFigure)| {
        let panels: Vec<(&str, &PaperFigure)> =
            panels.iter().map(|panel| (panel.name.as_str(), &panel.figures[place])).collect();
        let panels: Vec<_> = panels.into_iter().filter(|(_, measured)| !measured.is_empty()).collect();
        (!panels.is_empty()).then(|| drawn(published, &panels))
    };
    published.iter().enumerate().filter_map(plot).collect()
}

/// Returns the values of measurements by software and setting.
fn panels(results: &Results) -> Vec<Panel> {
    let own = (setting::own_name(results), results.setting.clone());
    let settings: Vec<_> = std::iter::once(own).chain(setting::alternatives(results)).collect();
    let software = [("today's software", false), ("period software", true)];
    let panel = |(software, period): (&str, bool), (name, levels): &(String, setting::SettingLevels)| {
        let measured = figures(results, &chosen_at(results, period, levels), CONFIDENCE);
        let figures = results.dossier.as_ref()?.paper_figures(Some(&measured)).ok()?;
        Some(Panel { name: joined(&["measured", software, name], ", "), figures })
    };
    let each = software.into_iter().flat_map(|one| settings.iter().filter_map(move |at| panel(one, at)));
    each.collect()
}

/// Draws a figure, with a panel for each kind of measurement.
pub(in crate::results) fn drawn(published: &PaperFigure, panels: &[(&str, &PaperFigure)]) -> Plot {
    let names: Vec<&str> = published.systems.iter().map(String::as_str).collect();
    let looks = SeriesStyle::each(&names);
    let panel_height = ABOVE + HEIGHT + BELOW;
    let mut canvas =
        Canvas::new(WIDTH, 46.0 + looks.len().div_ceil(3) as f64 * 20.0 + panel_height * panels.len() as f64);
    let mut top = 16.0 + canvas.legend(16.0, &looks);
    canvas.text((8.0, top), "start", FAINT, "grey: published; in colour: measured, with 95 % interval");
    for (name, measured) in panels {
        panel(&mut canvas, top + 10.0 + ABOVE, name, published, measured, &looks);
        top += panel_height;
    }
    let title = format!("{}, {}", published.title, published.unit);
    let described: Vec<&str> = panels.iter().map(|(name, _)| *name).collect();
    let description = format!(
        "{} over {}. Panels: {}. The values are in the table beside the drawing.",
        names.join(", "),
        published.points.join(", "),
        described.join("; ")
    );
    let svg = canvas.finish(&title, &description);
    Plot { id: published.id.clone(), title, words: String::new(), svg, values: values(published, panels) }
}

/// Returns the values of a figure, which stand for the drawing where it cannot be seen.
fn values(published: &PaperFigure, panels: &[(&str, &PaperFigure)]) -> TextTable {
    let mut header = vec!["point".to_owned(), "system".to_owned(), "published".to_owned()];
    header.extend(panels.iter().map(|(name, _)| format!("{name} [95 %]")));
    let mut rows = Vec::new();
    for (point, name) in published.points.iter().enumerate() {
        for (system, subject) in published.systems.iter().enumerate() {
            let all = [published].into_iter().chain(panels.iter().map(|(_, measured)| *measured));
            let texts = all.map(|figure| interval_text(figure.values[system][point]));
            rows.push([name.clone(), subject.clone()].into_iter().chain(texts).collect());
        }
    }
    TextTable { header, rows }
}

fn interval_text(value: Option<Interval>) -> String {
    value.map_or_else(|| "–".to_owned(), |one| figure(one.value, bounds(one)))
}

/// Returns the bounds of a value; `None` for one without a spread.
fn bounds(one: Interval) -> Option<(f64, f64)> {
    (one.low < one.high && !one.is_open()).then_some((one.low, one.high))
}

fn panel(
    canvas: &mut Canvas,
    top: f64,
    name: &str,
    published: &PaperFigure,
    measured: &PaperFigure,
    looks: &[(&str, SeriesStyle)],
) {
    canvas.heading((8.0, top - 10.0), &format!("{name}, {}", published.unit));
    let middle =
        || [published, measured].into_iter().flat_map(|figure| figure.values.iter().flatten().flatten());
    let ends = middle()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(one.value), most.max(one.value)));
    let whole = middle().flat_map(|one| {
        let (low, high) = bounds(*one).unwrap_or((one.value, one.value));
        [low.max(ends.0 / BEYOND), high.min(ends.1 * BEYOND)]
    });
    let bottom = top + HEIGHT;
    let Some(up) = Axis::log(whole, bottom, top + 4.0) else { return };
    up.draw_left(canvas, LEFT, WIDTH - RIGHT);
    let slot = (WIDTH - LEFT - RIGHT) / published.points.len() as f64;
    let step = (slot / (looks.len() + 1) as f64).min(STEP_MAX);
    let center = |point: usize| LEFT + slot * (point as f64 + 0.5);
    for (point, name) in published.points.iter().enumerate() {
        for (line, part) in lines(name, slot).into_iter().enumerate() {
            canvas.text((center(point), bottom + 16.0 + LINE * line as f64), "middle", INK, part);
        }
    }
    for (system, (_, look)) in looks.iter().enumerate() {
        let aside = step * (system as f64 - (looks.len() - 1) as f64 / 2.0);
        let place = |point: usize| center(point) + aside;
        series(canvas, &up, &published.values[system], published.joined, look.published(), |point| {
            place(point) - ASIDE
        });
        series(canvas, &up, &measured.values[system], published.joined, *look, place);
    }
}

/// Returns the lines of a point's name: one if it fits into its slot, and otherwise one for each level.
fn lines(name: &str, slot: f64) -> Vec<&str> {
    if width_of(name) + APART < slot { vec![name] } else { name.split(", ").collect() }
}

/// Draws the values of one system: a line through sizes, whiskers and marks.
fn series(
    canvas: &mut Canvas,
    up: &Axis,
    values: &[Option<Interval>],
    joined: usize,
    look: SeriesStyle,
    place: impl Fn(usize) -> f64,
) {
    let points = values.iter().enumerate().filter_map(|(point, value)| Some((point, (*value)?)));
    let points: Vec<(usize, Interval)> = points.collect();
    let line: Vec<(f64, f64)> = points
        .iter()
        .filter(|(point, _)| *point < joined)
        .map(|(point, one)| (place(*point), up.place(one.value)))
        .collect();
    if line.len() > 1 {
        canvas.polyline(&line, look);
    }
    for (point, one) in points {
        let x = place(point);
        if let Some((low, high)) = bounds(one) {
            canvas.whiskers((x, up.place(low)), (x, up.place(high)), look.color);
        }
        canvas.mark((x, up.place(one.value)), look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_wider_than_its_slot_has_a_line_for_each_level() {
        assert_eq!(lines("100Kb, 700MHz", 94.5), ["100Kb", "700MHz"]);
        assert_eq!(lines("100Kb, 700MHz", 189.0), ["100Kb, 700MHz"]);
        assert_eq!(lines("64 B", 94.5), ["64 B"]);
    }
}
