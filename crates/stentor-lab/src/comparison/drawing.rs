//! The drawing of a comparison: every fork of every candidate on one axis.

use super::Comparison;
use crate::plot::{Axis, Canvas, FAINT, INK, SeriesStyle, WIDTH, short, width_of};

const ROW: f64 = 34.0;
const TOP: f64 = 40.0;
/// Maximum width of the names of candidates, in letters.
const NAME_LETTERS: usize = 40;

/// Draws the times of all forks that count; `None` without any.
pub(super) fn draw(comparison: &Comparison) -> Option<String> {
    let names: Vec<String> =
        comparison.candidates.iter().map(|candidate| shortened(&candidate.name)).collect();
    let left = names.iter().map(|name| width_of(name)).fold(120.0, f64::max) + 26.0;
    let counted = comparison.forks.iter().filter(|fork| fork.invalid_reason.is_none());
    let axis = Axis::log(counted.map(|fork| fork.seconds * 1000.0), left, WIDTH - 110.0)?;
    let height = TOP + ROW * names.len() as f64 + 46.0;
    let mut canvas = Canvas::new(WIDTH, height);
    axis.draw_below(&mut canvas, TOP, height - 34.0);
    canvas.text((WIDTH - 8.0, TOP - 12.0), "end", FAINT, "mean, ms");
    for (place, name) in names.iter().enumerate() {
        let y = TOP + ROW * (place as f64 + 0.5);
        canvas.text((left - 14.0, y + 4.0), "end", INK, name);
        for fork in comparison.valid(place) {
            canvas.mark((axis.place(fork.seconds * 1000.0), y), SeriesStyle::of(place));
        }
        let Some(seconds) = comparison.summary(place).seconds else { continue };
        if let (Some(low), Some(high)) = (seconds.low, seconds.high) {
            let end = |value: f64| (axis.place(value * 1000.0), y + 10.0);
            canvas.whiskers(end(low), end(high), INK);
        }
        canvas.text((WIDTH - 8.0, y + 4.0), "end", INK, &short(seconds.mean * 1000.0));
    }
    Some(canvas.finish("Times of all forks", &described(comparison)))
}

fn described(comparison: &Comparison) -> String {
    let times = comparison.summaries().into_iter().map(|one| {
        let mean = one
            .seconds
            .map_or_else(|| "no fork".to_owned(), |time| format!("{} ms", short(time.mean * 1000.0)));
        format!("{}: {mean}", one.candidate.name)
    });
    times.collect::<Vec<_>>().join("; ")
}

fn shortened(name: &str) -> String {
    let mut letters = name.chars();
    let start: String = letters.by_ref().take(NAME_LETTERS).collect();
    if letters.next().is_some() { format!("{start}…") } else { start }
}
