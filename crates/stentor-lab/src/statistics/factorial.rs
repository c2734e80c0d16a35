//! Factorial effects: the share of the variation between cells explained by each factor and each interaction, with confidence intervals.
//!
//! The sign table of a 2^k design with or without repetitions: Raj Jain, *The Art of Computer Systems Performance Analysis*, chapters 17
//! and 18. Cells may have unequal numbers of runs; their means have equal weight then.

use serde::Serialize;

use super::Samples;
use super::distribution::student_t;

/// An effect of one factor, or of an interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The factors, with ` x ` between.
    pub name: String,
    /// Number of factors in the interaction.
    pub order: usize,
    /// Half of the difference between the two levels, in the unit of the response.
    pub effect: f64,
    /// Share of the variation, 0 to 1.
    pub share: f64,
    /// Lower end of the effect's interval; absent without repetitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// The result of a factorial analysis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factorial {
    /// The mean of all cells.
    pub mean: f64,
    /// Every factor and every interaction.
    pub effects: Vec<Effect>,
    /// Share of the variation that no factor explains, that is, the variation between runs of the same cell, 0 to 1.
    pub error_share: f64,
}

impl Effect {
    /// Returns true if the interval excludes zero.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.low.zip(self.high).is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Computes the effects of `names.len()` factors with two levels each. `cells` holds the runs of each combination in counting order: the
/// first factor varies fastest, its low level first. `None` if there are not 2^k cells, or one of them is empty.
#[must_use]
pub fn factorial(names: &[&str], cells: &[Samples], confidence: f64) -> Option<Factorial> {
    let count = 1_usize.checked_shl(u32::try_from(names.len()).ok()?)?;
    if cells.len() != count || cells.iter().any(|cell| cell.values().is_empty()) {
        return None;
    }
    let means: Vec<f64> = cells.iter().map(mean).collect();
    let noise = Noise::of(cells, &means, confidence);
    let contrasts: Vec<f64> = (1..count).map(|factors| contrast(factors, &means)).collect();
    let explained: f64 = contrasts.iter().map(|effect| effect * effect * noise.weight).sum();
    let variation = explained + noise.squares;
    let share = |squares: f64| if variation > 0.0 { squares / variation } else { 0.0 };
    let effect = |(index, effect): (usize, &f64)| Effect {
        name: name(index + 1, names),
        order: (index + 1).count_ones() as usize,
        effect: *effect,
        share: share(effect * effect * noise.weight),
        low: noise.half.map(|half| effect - half),
        high: noise.half.map(|half| effect + half),
    };
    Some(Factorial {
        mean: contrast(0, &means),
        effects: contrasts.iter().enumerate().map(effect).collect(),
        error_share: share(noise.squares),
    })
}

/// The variation between runs of the same cell.
struct Noise {
    /// Sum of squared deviations from the cells' means.
    squares: f64,
    /// Effective number of runs with unequal cells: the number of cells times the harmonic mean of their runs.
    weight: f64,
    /// Half-width of each effect's interval; absent without repetitions.
    half: Option<f64>,
}

impl Noise {
    fn of(cells: &[Samples], means: &[f64], confidence: f64) -> Self {
        let deviations = cells
            .iter()
            .zip(means)
            .flat_map(|(cell, mean)| cell.values().iter().map(move |value| value - mean));
        let squares: f64 = deviations.map(|deviation| deviation * deviation).sum();
        let count = cells.len() as f64;
        let inverse: f64 = cells.iter().map(|cell| 1.0 / cell.values().len() as f64).sum();
        let degrees = cells.iter().map(|cell| cell.values().len()).sum::<usize>() as f64 - count;
        let half = (degrees > 0.0)
            .then(|| student_t(confidence, degrees) * (squares / degrees * inverse).sqrt() / count);
        Self { squares, weight: count * count / inverse, half }
    }
}

fn mean(cell: &Samples) -> f64 {
    cell.values().iter().sum::<f64>() / cell.values().len() as f64
}

/// Returns the mean of the responses, each multiplied by the signs of its levels over the factors of a bit set.
fn contrast(factors: usize, responses: &[f64]) -> f64 {
    let sign = |cell: usize| if (factors & !cell).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let sum: f64 = responses.iter().enumerate().map(|(cell, response)| sign(cell) * response).sum();
    sum / responses.len() as f64
}

fn name(factors: usize, names: &[&str]) -> String {
    let inside = names.iter().enumerate().filter(|(place, _)| factors >> place & 1 == 1);
    inside.map(|(_, name)| *name).collect::<Vec<_>>().join(" x ")
}

#[cfg(test)]
mod tests;
