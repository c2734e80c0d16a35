//! Factorial effects: which share of the variation between cells each factor and each interaction explains.
//!
//! The sign table of a 2^k design without repetitions: Raj Jain, *The Art of Computer Systems Performance Analysis*,
//! chapter 17.

use serde::Serialize;

/// An effect: one factor, or several together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The factors, with ` x ` between; the mean of all cells has none.
    pub name: String,
    /// How many factors act together.
    pub order: usize,
    /// Half of the difference between the two levels, in the unit of the response.
    pub effect: f64,
    /// Share of the variation, 0 to 1.
    pub share: f64,
}

/// Works out the effects of `names.len()` factors with two levels each. `responses` holds a cell for each combination, in
/// the order of counting: the first factor turns fastest, its low level first. `None` when there are not 2^k cells.
#[must_use]
pub fn effects(names: &[&str], responses: &[f64]) -> Option<Vec<Effect>> {
    let cells = 1_usize.checked_shl(u32::try_from(names.len()).ok()?)?;
    if responses.len() != cells {
        return None;
    }
    let contrasts: Vec<f64> = (1..cells).map(|factors| contrast(factors, responses)).collect();
    let variation: f64 = contrasts.iter().map(|effect| effect * effect).sum();
    let share = |effect: f64| if variation > 0.0 { effect * effect / variation } else { 0.0 };
    let effect = |(index, effect): (usize, &f64)| Effect {
        name: name(index + 1, names),
        order: (index + 1).count_ones() as usize,
        effect: *effect,
        share: share(*effect),
    };
    Some(contrasts.iter().enumerate().map(effect).collect())
}

/// Gives the mean of the responses, each with the product of its levels' signs over the factors in a set of bits.
fn contrast(factors: usize, responses: &[f64]) -> f64 {
    let sign = |cell: usize| if (factors & !cell).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let sum: f64 = responses.iter().enumerate().map(|(cell, response)| sign(cell) * response).sum();
    sum / responses.len() as f64
}

fn name(factors: usize, names: &[&str]) -> String {
    let inside = names.iter().enumerate().filter(|(place, _)| factors >> place & 1 == 1);
    inside.map(|(_, name)| *name).collect::<Vec<_>>().join(" x ")
}
