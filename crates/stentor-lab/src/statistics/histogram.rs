//! Distributions of durations: sums over forks, and cumulative shares.

use hdrhistogram::Histogram;

/// Returns the sum of distributions; `None` without any. Incompatible distributions are ignored.
#[must_use]
pub fn merged(histograms: impl IntoIterator<Item = Histogram<u64>>) -> Option<Histogram<u64>> {
    let mut histograms = histograms.into_iter();
    let mut sum = histograms.next()?;
    // A distribution read from a file does not resize by itself.
    sum.auto(true);
    for histogram in histograms {
        // Adding fails only if the sum cannot grow, and it can.
        let _ = sum.add(&histogram);
    }
    Some(sum)
}

/// Lists durations in ascending order, each with the share of all durations that are not longer.
#[must_use]
pub fn shares(histogram: &Histogram<u64>) -> Vec<(u64, f64)> {
    let all = histogram.len().max(1) as f64;
    let mut seen = 0;
    let share = histogram.iter_recorded().map(|step| {
        seen += step.count_since_last_iteration();
        (step.value_iterated_to(), seen as f64 / all)
    });
    share.collect()
}

#[cfg(test)]
mod tests;
