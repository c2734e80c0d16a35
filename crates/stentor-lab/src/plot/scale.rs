//! Scales with round numbers.

/// Approximate number of grid lines.
const LINES: f64 = 5.0;

/// A scale from 0 to a round number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) step: f64,
    pub(crate) most: f64,
}

impl Scale {
    pub(crate) fn new(largest: f64) -> Self {
        let rough = largest / LINES;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        Self { step, most: (largest / step).ceil() * step }
    }

    /// Lists the values of the grid lines.
    pub(crate) fn values(self) -> impl Iterator<Item = f64> {
        let count = (self.most / self.step).round() as usize;
        (0..=count).map(move |line| line as f64 * self.step)
    }
}
