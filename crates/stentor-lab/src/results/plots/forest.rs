//! Ratios with their intervals, beside the paper's ratios.

use super::super::ratios::{RatioGroup, SubjectRatio, ratios};
use super::{Plot, Results, WIDTH, margin, slug};
use crate::document::TextTable;
use crate::plot::{Axis, Canvas, FAINT, INK, PAPER, SeriesStyle, short};

const ROW: f64 = 19.0;
/// Space above a group of rows.
const GAP: f64 = 10.0;
const TOP: f64 = 58.0;
/// Maximum of rows in a plot; tables show all.
const ROWS_MAX: usize = 60;

/// Draws each part of the study.
pub(super) fn draw(results: &Results) -> Vec<Plot> {
    ratios(results).iter().filter_map(forest).collect()
}

fn forest(group: &RatioGroup<'_>) -> Option<Plot> {
    let rows: Vec<&SubjectRatio> = group.rows.iter().take(ROWS_MAX).collect();
    let places = rows.chunk_by(|one, other| one.place == other.place).count();
    let left = margin(rows.iter().map(|row| (&row.place, &row.subject)), 460.0);
    let values = rows.iter().flat_map(|row| {
        let ours = row.ours.map(|ours| [Some(ours.ratio), ours.low, ours.high]).unwrap_or_default();
        [ours[0], ours[1], ours[2], row.published, Some(1.0)].into_iter().flatten()
    });
    // The interval of two or three forks may be very wide; it is clipped at the frame.
    let middle = || rows.iter().flat_map(|row| [row.ours.map(|ours| ours.ratio), row.published]).flatten();
    let (least, most) = (middle().fold(1.0, f64::min) / 1.6, middle().fold(1.0, f64::max) * 1.6);
    let axis = Axis::log(values.map(|value| value.clamp(least, most)), left, WIDTH - 128.0)?;
    let height = TOP + ROW * rows.len() as f64 + GAP * places as f64 + 40.0;
    let mut canvas = Canvas::new(WIDTH, height);
    head(&mut canvas, &axis, group, height);
    let mut y = TOP;
    let mut last = "";
    for row in &rows {
        let is_new = row.place != last;
        y += if is_new { GAP + ROW } else { ROW };
        if is_new {
            canvas.text((8.0, y), "start", INK, &row.place);
        }
        last = &row.place;
        draw_row(&mut canvas, &axis, row, left, y);
    }
    let title = format!("How many times as long as {}: {}", group.base, group.name);
    let words = format!(
        "Each row is one subject against {} in the same cell; to the right is slower. The dot is the ratio of geometric \
         means over forks, the line its 95 % interval (Welch, on logarithms), the open diamond the ratio of the paper's \
         printed figures. Where the line crosses 1, nothing is known.",
        group.base
    );
    let svg = canvas.finish(&title, &described(&rows));
    Some(Plot {
        id: format!("ratios-{}", slug(&group.name)),
        title,
        words,
        svg,
        values: TextTable::default(),
    })
}

fn head(canvas: &mut Canvas, axis: &Axis, group: &RatioGroup<'_>, height: f64) {
    let bottom = height - 34.0;
    axis.draw_below(canvas, TOP, bottom);
    let one = axis.place(1.0);
    canvas.line((one, TOP - 4.0), (one, bottom), INK, 1.4);
    canvas.text((one, bottom + 30.0), "middle", FAINT, &format!("as long as {}", group.base));
    canvas.mark((12.0, 18.0), SeriesStyle::of(0));
    canvas.text((24.0, 22.0), "start", INK, "measured here, with 95 % interval");
    let is_published = group.rows.iter().any(|row| row.published.is_some());
    if is_published {
        diamond(canvas, (280.0, 18.0));
        canvas.text((292.0, 22.0), "start", INK, "published");
    }
    let label = if is_published { "measured · published" } else { "measured" };
    canvas.text((WIDTH - 8.0, TOP - 8.0), "end", FAINT, label);
}

fn diamond(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let points = [(x, y - 5.0), (x + 5.0, y), (x, y + 5.0), (x - 5.0, y), (x, y - 5.0)];
    for pair in points.windows(2) {
        canvas.line(pair[0], pair[1], PAPER, 1.8);
    }
}

fn draw_row(canvas: &mut Canvas, axis: &Axis, row: &SubjectRatio, left: f64, y: f64) {
    let middle = y - 4.0;
    canvas.text((left - 14.0, y), "end", FAINT, &row.subject);
    if let Some(published) = row.published {
        diamond(canvas, (axis.place(published), middle));
    }
    if let Some(ours) = row.ours {
        if let (Some(low), Some(high)) = (ours.low, ours.high) {
            canvas.whiskers((axis.place(low), middle), (axis.place(high), middle), INK);
        }
        canvas.mark((axis.place(ours.ratio), middle), SeriesStyle::of(0));
    }
    let ratio_text =
        |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("×{}", short(ratio)));
    let text = format!("{} · {}", ratio_text(row.ours.map(|ours| ours.ratio)), ratio_text(row.published));
    canvas.text((WIDTH - 8.0, y), "end", INK, &text);
}

fn described(rows: &[&SubjectRatio]) -> String {
    let descriptions = rows.iter().map(|row| {
        let ours =
            row.ours.map_or_else(|| "not measured".to_owned(), |ours| format!("{} times", short(ours.ratio)));
        let published =
            row.published.map(|ratio| format!(", published {}", short(ratio))).unwrap_or_default();
        format!("{}, {}: {ours}{published}", row.place, row.subject)
    });
    descriptions.collect::<Vec<_>>().join("; ")
}
