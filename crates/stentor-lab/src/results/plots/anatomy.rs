//! The composition of an exchange: its time by phase, and its bytes by layer.

use super::super::basis::{FOOTNOTE, MARK, streams};
use super::super::layers;
use super::super::metric::{pages, phase_ms};
use super::super::payload::Payloads;
use super::super::ratios::place;
use super::{Plot, Results, WIDTH, left_out, margin};
use crate::document::TextTable;
use crate::plot::{Axis, BACKGROUND, Canvas, FAINT, INK, short, width_of};
use crate::record::{ForkRecord, phase};
use crate::results::MeasuredCell;
use crate::statistics::Samples;

const ROW: f64 = 20.0;
const BAR: f64 = 13.0;
/// Maximum of rows in a plot.
const ROWS_MAX: usize = 72;

/// Phases of the client, in the order of an exchange.
const PHASES: [&str; 5] =
    [phase::CLIENT_SER, phase::REQUEST, phase::TRANSFER, phase::CLIENT_DESER, phase::INSERT];

/// One bar.
struct Bar {
    place: String,
    subject: String,
    parts: Vec<f64>,
}

/// Draws the bytes of an exchange, by layer.
pub(super) fn bytes(results: &Results) -> Vec<Plot> {
    let mut payloads = Payloads::of(results);
    let bars = bars(
        results,
        |_| false,
        |cell| {
            let payload = payloads.bytes(cell);
            Box::new(move |record| Some(layers::of(record, payload)?.to_vec()))
        },
    );
    // In `parts`, opening and closing, headers and framing precede the payload.
    let is_known = bars.iter().all(|bar| bar.parts.last().is_some_and(|payload| *payload > 0.0));
    let payload = if is_known { KNOWN } else { UNKNOWN };
    let words = format!(
        "The parts of an exchange, both ways, with every frame counted at the client's end; a synchronisation in pages is one \
         exchange, as for its time. {payload} Acknowledgements without data count as headers of IP and TCP. The total is at the right."
    );
    let plot = stacked(results, "bytes", "Bytes of an exchange", &words, "bytes", &layers::NAMES, &bars);
    plot.into_iter().collect()
}

const KNOWN: &str = "The darkest part is the payload, the values as text; all others are overhead. Where a format \
    writes numbers in fewer bytes than they have digits, all of the body counts as payload.";
const UNKNOWN: &str = "The darkest part is the payload, the values as text, where it is known; in other cells the \
    values are part of the format's markup.";

/// Draws the time of an exchange, by phase.
pub(super) fn phases(results: &Results) -> Vec<Plot> {
    let names = ["serialize", "wait for the service", "transfer", "parse", "insert rows"];
    let is_blurred = |cell: &MeasuredCell| PHASES.iter().any(|phase| streams(cell, phase));
    let bars = bars(results, is_blurred, |_| {
        Box::new(|record| {
            let parts = PHASES.map(|part| phase_ms(record, part));
            parts.iter().any(Option::is_some).then(|| parts.map(Option::unwrap_or_default).to_vec())
        })
    });
    let has_pages = results.cells.iter().flat_map(|cell| &cell.forks).any(|fork| pages(fork) > 1.0);
    let of_pages =
        if has_pages { " Where points come in pages it is the time of a single page." } else { "" };
    let mut words = format!(
        "Medians of the client's phases as shares of their sum, which is at the right; the service's own work lies within the \
         wait.{of_pages}"
    );
    if bars.iter().any(|bar| bar.subject.ends_with(MARK)) {
        words = format!("{words} {FOOTNOTE}");
    }
    stacked(results, "phases", "Where the time goes", &words, "ms", &names, &bars).into_iter().collect()
}

/// Reads the parts of a fork's bar.
type PartsOfFork = Box<dyn Fn(&ForkRecord) -> Option<Vec<f64>>>;

fn bars(
    results: &Results,
    is_marked: impl Fn(&MeasuredCell) -> bool,
    mut parts: impl FnMut(&MeasuredCell) -> PartsOfFork,
) -> Vec<Bar> {
    let bar = |cell: &MeasuredCell| {
        let forks: Vec<Vec<f64>> = cell.forks.iter().filter_map(parts(cell)).collect();
        let count = forks.first()?.len();
        let middle = |part: usize| forks.iter().map(|fork| fork[part]).collect::<Samples>().quantile(0.5);
        let parts = (0..count).map(middle).collect::<Option<Vec<_>>>()?;
        let variant = if cell.variant.is_empty() || cell.variant == "paper" {
            String::new()
        } else {
            format!(" ({})", cell.variant)
        };
        let mark = if is_marked(cell) { MARK } else { "" };
        Some(Bar { place: place(results, cell) + &variant, subject: format!("{}{mark}", cell.name), parts })
    };
    results.cells.iter().filter_map(bar).collect()
}

fn stacked(
    results: &Results,
    id: &str,
    title: &str,
    words: &str,
    unit: &str,
    names: &[&str],
    bars: &[Bar],
) -> Option<Plot> {
    let most = bars.iter().map(|bar| bar.parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let shown = &bars[..bars.len().min(ROWS_MAX)];
    let left = margin(shown.iter().map(|bar| (&bar.place, &bar.subject)), 460.0);
    let has = |part: usize| shown.iter().any(|bar| bar.parts[part] > 0.0);
    let present: Vec<usize> = (0..names.len()).filter(|part| has(*part)).collect();
    let height = 62.0 + ROW * shown.len() as f64 + 40.0;
    let mut canvas = Canvas::new(WIDTH, height);
    legend(&mut canvas, names, &present);
    let axis = Axis::linear(100.0, left, WIDTH - 84.0);
    axis.draw_below(&mut canvas, 44.0, height - 34.0);
    canvas.text((WIDTH - 84.0, height - 4.0), "end", FAINT, "percent of the whole");
    canvas.text((WIDTH - 8.0, 40.0), "end", FAINT, unit);
    let mut last = "";
    for (number, bar) in shown.iter().enumerate() {
        let y = 50.0 + ROW * number as f64;
        if bar.place != last {
            canvas.text((8.0, y + BAR - 1.0), "start", INK, &bar.place);
        }
        last = &bar.place;
        canvas.text((left - 10.0, y + BAR - 1.0), "end", FAINT, &bar.subject);
        draw_bar(&mut canvas, &axis, bar, y);
    }
    let more = left_out(bars.len() - shown.len());
    let descriptions = shown.iter().map(|bar| {
        let parts = present
            .iter()
            .map(|part| format!("{} {}", names[*part], short(bar.parts[*part])))
            .collect::<Vec<_>>();
        format!("{}, {}: {}", bar.place, bar.subject, parts.join(", "))
    });
    let svg =
        canvas.finish(&format!("{title}: {}", results.study), &descriptions.collect::<Vec<_>>().join("; "));
    Some(Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        words: format!("{words}{more}"),
        svg,
        values: TextTable::default(),
    })
}

/// Draws the legend. Parts differ in colour and, if they are wide enough, in the pattern of their edge; their order is that of the legend.
fn legend(canvas: &mut Canvas, names: &[&str], present: &[usize]) {
    let mut x = 8.0;
    for part in present {
        canvas.rectangle((x, 10.0), (14.0, BAR), fill(*part), INK);
        canvas.text((x + 20.0, 21.0), "start", INK, names[*part]);
        x += 40.0 + width_of(names[*part]);
    }
}

/// Returns the fill of a part, from light to dark, so that the order is visible without colour.
fn fill(part: usize) -> &'static str {
    const FILLS: [&str; 5] = [
        "var(--s1,#fef3c7)",
        "var(--s2,#fbbf77)",
        "var(--s3,#e8825a)",
        "var(--s4,#8f7ec9)",
        "var(--s5,#1e4e8c)",
    ];
    FILLS.get(part).copied().unwrap_or(BACKGROUND)
}

fn draw_bar(canvas: &mut Canvas, axis: &Axis, bar: &Bar, y: f64) {
    let whole: f64 = bar.parts.iter().sum();
    let mut sum = 0.0;
    for (part, value) in bar.parts.iter().enumerate().filter(|(_, value)| **value > 0.0) {
        let share = 100.0 * value / whole;
        let (from, to) = (axis.place(sum), axis.place(sum + share));
        canvas.rectangle((from, y), (to - from, BAR), fill(part), BACKGROUND);
        sum += share;
    }
    canvas.text((WIDTH - 8.0, y + BAR - 1.0), "end", INK, &short(whole));
}
