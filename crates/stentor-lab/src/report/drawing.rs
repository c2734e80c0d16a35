//! Bars as SVG: the paper's rate, ours, and what Little's law allows.

use std::fmt::Write as _;

use super::Row;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 70.0;
const ROW: f64 = 34.0;
const TOP: f64 = 34.0;
const BAR: f64 = 11.0;
/// Lines of the scale, about.
const LINES: f64 = 5.0;

/// Draws the rates of rows.
#[must_use]
pub fn draw(rows: &[Row]) -> String {
    let rates = rows.iter().flat_map(|row| {
        [Some(row.pushes_per_second), row.published_pushes_per_second, row.bound_pushes_per_second]
    });
    let scale = Scale::new(rates.flatten().fold(1.0, f64::max));
    let height = TOP + ROW * rows.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>Pushes per second, published and measured</title>\n"
    );
    legend(&mut svg);
    scale.lines(height, &mut svg);
    for (at, row) in rows.iter().enumerate() {
        bars(row, TOP + ROW * at as f64, scale, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

#[derive(Clone, Copy)]
struct Scale {
    step: f64,
    most: f64,
}

impl Scale {
    fn new(largest: f64) -> Self {
        let rough = largest / LINES;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        Self { step, most: (largest / step).ceil() * step }
    }

    fn x(self, rate: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * rate / self.most
    }

    fn lines(self, height: f64, svg: &mut String) {
        let count = (self.most / self.step).round() as usize;
        for rate in (0..=count).map(|line| line as f64 * self.step) {
            let x = self.x(rate);
            // Writing to a string cannot fail.
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{height}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#666\">{rate}</text>",
                TOP - 6.0
            );
        }
    }
}

fn legend(svg: &mut String) {
    let parts = [("#b8b8b8", "published", 0.0), ("#2b6cb0", "measured", 78.0), ("#c05621", "bound", 150.0)];
    for (color, word, x) in parts {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"2\" width=\"10\" height=\"10\" fill=\"{color}\"/>\
             <text x=\"{}\" y=\"11\">{word}</text>",
            x + 14.0
        );
    }
}

fn bars(row: &Row, y: f64, scale: Scale, svg: &mut String) {
    let consumers = row.consumers.map_or_else(|| "adaptive".to_owned(), |count| format!("{count} in flight"));
    let pools = if row.pooled { "" } else { ", no pools" };
    let name = super::page::escape(&format!("{}  {}, {consumers}{pools}", row.id, row.mix));
    let _ = writeln!(svg, "<text x=\"0\" y=\"{:.1}\">{name}</text>", y + 20.0);
    if let Some(published) = row.published_pushes_per_second {
        bar(published, y + 4.0, "#b8b8b8", scale, svg);
    }
    bar(row.pushes_per_second, y + 5.0 + BAR, "#2b6cb0", scale, svg);
    if let Some(bound) = row.bound_pushes_per_second {
        let (x, from, to) = (scale.x(bound), y + 3.0, y + 6.0 + 2.0 * BAR);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{from:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\" stroke=\"#c05621\" stroke-width=\"2\"/>"
        );
    }
}

fn bar(rate: f64, y: f64, color: &str, scale: Scale, svg: &mut String) {
    let (width, end) = (scale.x(rate) - LEFT, scale.x(rate) + 4.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{color}\"/>\
         <text x=\"{end:.1}\" y=\"{:.1}\" font-size=\"9\">{rate:.0}</text>",
        y + BAR - 2.0
    );
}
