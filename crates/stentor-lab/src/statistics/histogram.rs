//! Whole distributions of durations: added up over forks, and read as shares.

use hdrhistogram::Histogram;

/// Adds distributions up; `None` without any. Those that cannot be added are left out.
#[must_use]
pub fn merged(histograms: impl IntoIterator<Item = Histogram<u64>>) -> Option<Histogram<u64>> {
    let mut histograms = histograms.into_iter();
    let mut sum = histograms.next()?;
    // One that was read from a file does not grow by itself.
    sum.auto(true);
    for histogram in histograms {
        // Adding fails only when it cannot grow, and it may.
        let _ = sum.add(&histogram);
    }
    Some(sum)
}

/// Lists durations, ascending, each with the share of all that are no longer.
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
