//! The elements of drawings: scales, marks, colours paired with shapes, and text of known width.
//!
//! Colours are variables with a fallback value: a page overrides them for dark mode, and a stand-alone drawing uses the values for paper.
//! Anything that differs in colour also differs in the shape of its marks or the pattern of its lines.

mod axis;
mod canvas;
mod scale;

pub(crate) use axis::Axis;
pub(crate) use canvas::{Canvas, SeriesStyle, dark_variables, standalone, width_of};

/// Width of every drawing.
pub(crate) const WIDTH: f64 = 960.0;
/// The main ink.
pub(crate) const INK: &str = "var(--ink,#1a202c)";
/// Ink of axes and remarks.
pub(crate) const FAINT: &str = "var(--faint,#5a6578)";
/// Ink of grids.
pub(crate) const GRID: &str = "var(--grid,#e2e8f0)";
/// The background.
pub(crate) const BACKGROUND: &str = "var(--ground,#ffffff)";
/// The colour of published values.
pub(crate) const PAPER: &str = "var(--published,#8a94a3)";

/// Writes a number with at most three significant digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ => (2 - size.log10().floor() as i32).clamp(0, 6) as usize,
    };
    let text = format!("{value:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    if size >= 10_000.0 { grouped(&text) } else { text }
}

/// Groups the thousands by thin spaces.
fn grouped(text: &str) -> String {
    let start = usize::from(text.starts_with('-'));
    let mut grouped = text[..start].to_owned();
    let digits = &text[start..];
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests;
