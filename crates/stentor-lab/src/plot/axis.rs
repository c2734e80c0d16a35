//! Axes: values to positions, linear or logarithmic.

use super::scale::Scale;
use super::{Canvas, FAINT, GRID, short};

/// Ratio of the ends above which a logarithmic axis marks whole powers of ten only.
const DECADES_MAX: f64 = 1000.0;

/// An axis between two positions of a plot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
    is_log: bool,
    step: f64,
}

impl Axis {
    /// Makes an axis from 0 to a round number.
    pub(crate) fn linear(most: f64, from: f64, to: f64) -> Self {
        let scale = Scale::new(if most > 0.0 { most } else { 1.0 });
        Self { least: 0.0, most: scale.most, from, to, is_log: false, step: scale.step }
    }

    /// Makes a logarithmic axis around positive values; `None` without any.
    pub(crate) fn log(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let ends = values.filter(|value| *value > 0.0 && value.is_finite());
        let (least, most) =
            ends.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        if most <= 0.0 {
            return None;
        }
        // A small margin on both sides, and a range of at least a factor of two, so that noise is not magnified.
        let room = (most / least).powf(0.04).max(1.02);
        let wide = (2.0_f64 / (most / least)).max(1.0).sqrt();
        Some(Self { least: least / room / wide, most: most * room * wide, from, to, is_log: true, step: 0.0 })
    }

    /// Returns the position of a value, clamped to the axis.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.least).ln() / (self.most / self.least).ln()
        } else {
            value / self.most
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// Lists the values of the grid lines.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            return Scale { step: self.step, most: self.most }.values().collect();
        }
        let span = self.most / self.least;
        let parts: &[f64] = match span {
            _ if span > DECADES_MAX => &[1.0],
            _ if span > 60.0 => &[1.0, 3.0],
            _ if span > 8.0 => &[1.0, 2.0, 5.0],
            _ if span > 3.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0],
            _ => &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        };
        let first = self.least.log10().floor() as i32;
        let last = self.most.log10().ceil() as i32;
        let ticks = (first..=last).flat_map(|power| parts.iter().map(move |part| part * 10_f64.powi(power)));
        ticks.filter(|tick| (self.least..=self.most).contains(tick)).collect()
    }

    /// Draws vertical grid lines with the values below.
    pub(crate) fn draw_below(&self, canvas: &mut Canvas, top: f64, bottom: f64) {
        for tick in self.ticks() {
            let x = self.place(tick);
            canvas.line((x, top), (x, bottom), GRID, 1.0);
            canvas.text((x, bottom + 15.0), "middle", FAINT, &short(tick));
        }
    }

    /// Draws horizontal grid lines with the values to the left.
    pub(crate) fn draw_left(&self, canvas: &mut Canvas, left: f64, right: f64) {
        for tick in self.ticks() {
            let y = self.place(tick);
            canvas.line((left, y), (right, y), GRID, 1.0);
            canvas.text((left - 6.0, y + 4.0), "end", FAINT, &short(tick));
        }
    }
}
