//! Nonparametric comparisons: rank test, Cliff's delta and the Kolmogorov-Smirnov distance.

use serde::Serialize;

use super::distribution::normal_p;

/// Largest group for which, without ties, the p-value is exact.
const EXACT_MAX: usize = 49;

/// The result of the Mann-Whitney test of two groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankTest {
    /// Number of pairs in which the first group's value is the larger; a tie counts half.
    pub u: f64,
    /// The p-value, two-sided.
    pub p: f64,
    /// True if `p` was counted exactly, false if it comes from the normal approximation.
    pub exact: bool,
    /// The smallest p-value possible for groups of these sizes; for three against three it is 0.1.
    pub p_min: f64,
}

/// Compares two groups by the Mann-Whitney test, like R's `wilcox.test`: exact for fewer than 50 values a side without ties, else by the
/// normal approximation with corrections for ties and continuity. `None` if a group is empty.
#[must_use]
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (u, ties) = (u_of(first, second), ties(first, second));
    let exact = ties == 0.0 && first.len() <= EXACT_MAX && second.len() <= EXACT_MAX;
    let p = if exact {
        exact_p(u, first.len(), second.len())
    } else {
        normal(u, first.len(), second.len(), ties)
    };
    let p_min = if first.len().max(second.len()) <= EXACT_MAX {
        exact_p(0.0, first.len(), second.len())
    } else {
        0.0
    };
    Some(RankTest { u, p, exact, p_min })
}

/// Returns Cliff's delta: the share of pairs in which the first value is larger minus the share in which it is smaller, -1 to 1.
#[must_use]
pub fn cliffs_delta(first: &[f64], second: &[f64]) -> Option<f64> {
    let pairs = (first.len() * second.len()) as f64;
    (pairs > 0.0).then(|| 2.0 * u_of(first, second) / pairs - 1.0)
}

/// Returns the Kolmogorov-Smirnov distance: the largest difference between both cumulative distributions, 0 to 1.
#[must_use]
pub fn ks_distance(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (first, second) = (sorted(first), sorted(second));
    let share =
        |values: &[f64], at: f64| values.partition_point(|value| *value <= at) as f64 / values.len() as f64;
    let gap = |at: &f64| (share(&first, *at) - share(&second, *at)).abs();
    first.iter().chain(&second).map(gap).max_by(f64::total_cmp)
}

/// Corrects the p-values of a family of tests by Holm's method; the order is kept.
#[must_use]
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut corrected = vec![1.0; values.len()];
    let mut largest = 0.0_f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max(values[index] * (values.len() - place) as f64).min(1.0);
        corrected[index] = largest;
    }
    corrected
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Counts the pairs in which the first is larger; ties count half.
fn u_of(first: &[f64], second: &[f64]) -> f64 {
    let second = sorted(second);
    let pairs = first.iter().map(|value| {
        let below = second.partition_point(|other| other < value);
        let not_above = second.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0
    });
    pairs.sum()
}

/// Sums t^3 - t over the groups of t equal values.
fn ties(first: &[f64], second: &[f64]) -> f64 {
    let all = sorted(&[first, second].concat());
    let groups = all.chunk_by(|one, other| one.total_cmp(other).is_eq());
    groups.map(|group| (group.len() as f64).powi(3) - group.len() as f64).sum()
}

/// Returns the exact two-sided probability of a U at least as extreme.
fn exact_p(u: f64, first: usize, second: usize) -> f64 {
    let counts = counts(first, second);
    let all: f64 = counts.iter().sum();
    let lower = u.min((first * second) as f64 - u).floor() as usize;
    let ways: f64 = counts.iter().take(lower + 1).sum();
    (2.0 * ways / all).min(1.0)
}

/// Counts the arrangements of two groups by their U.
fn counts(first: usize, second: usize) -> Vec<f64> {
    let size = first * second + 1;
    // Values of the first group are added one by one: the k-th may exceed 0 to `second` values.
    let mut counts = vec![0.0; size];
    counts[0] = 1.0;
    // The generating function is the Gaussian binomial: a product of (1 - q^(second+k)) over (1 - q^k).
    for k in 1..=first {
        for place in (second + k..size).rev() {
            counts[place] -= counts[place - second - k];
        }
        for place in k..size {
            counts[place] += counts[place - k];
        }
    }
    counts
}

fn normal(u: f64, first: usize, second: usize, ties: f64) -> f64 {
    let (first, second) = (first as f64, second as f64);
    let all = first + second;
    let distance = u - first * second / 2.0;
    let tied = if all > 1.0 { ties / (all * (all - 1.0)) } else { 0.0 };
    let deviation = (first * second / 12.0 * (all + 1.0 - tied)).sqrt();
    if deviation > 0.0 { normal_p((distance.abs() - 0.5).max(0.0) / deviation) } else { 1.0 }
}

#[cfg(test)]
mod tests;
