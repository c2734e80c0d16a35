use super::*;
use crate::statistics::invented::Invented;

/// The usual confidence level.
const USUAL: f64 = 0.95;
/// Deviation of samples within a fork, on logarithms.
const WITHIN: f64 = 0.2;

/// A study with so many forks of so many samples; forks deviate by `between`, on logarithms.
fn study(invented: &mut Invented, forks: usize, samples: usize, between: f64) -> Vec<Samples> {
    let fork = |_| {
        let middle = 3.0 + between * invented.normal();
        (0..samples).map(|_| (middle + WITHIN * invented.normal()).exp()).collect()
    };
    (0..forks).map(fork).collect()
}

/// Returns the share of intervals that hold the true quantile `normal` deviations above the middle, and the share of studies that have one.
fn coverage(
    estimate: impl Fn(&[Samples]) -> Option<QuantileEstimate>,
    [forks, samples, studies]: [usize; 3],
    between: f64,
    normal: f64,
) -> (f64, f64) {
    let mut invented = Invented::new(3);
    let truth = (3.0 + normal * between.hypot(WITHIN)).exp();
    let made = (0..studies).filter_map(|_| estimate(&study(&mut invented, forks, samples, between)));
    let made: Vec<QuantileEstimate> = made.collect();
    let covered = made.iter().filter(|one| one.low <= truth && truth <= one.high).count();
    (covered as f64 / made.len().max(1) as f64, made.len() as f64 / studies as f64)
}

#[test]
fn the_same_samples_give_the_same_interval() {
    let forks = study(&mut Invented::new(1), 10, 40, 0.05);
    let [first, second] = [(); 2].map(|()| quantile(&forks, 0.5, USUAL).expect("ten forks"));
    assert_eq!(first, second);
    assert!(first.low < first.value && first.value < first.high, "{first:?}");
}

#[test]
fn forks_that_differ_widen_the_interval_more_than_their_samples() {
    let forks = study(&mut Invented::new(2), 12, 60, 0.08);
    let width = |forks: &[Samples]| {
        let found = quantile(forks, 0.5, USUAL).expect("twelve forks");
        found.high - found.low
    };
    // The same samples, distributed so that all forks are alike.
    let all: Vec<f64> = forks.iter().flat_map(|fork| fork.values().to_vec()).collect();
    let alike: Vec<Samples> =
        (0..12).map(|fork| all.iter().skip(fork).step_by(12).copied().collect()).collect();
    assert!(width(&forks) > 1.5 * width(&alike), "{} and {}", width(&forks), width(&alike));
}

#[test]
fn wherever_a_95th_or_99th_percentile_is_printed_nine_of_ten_of_its_intervals_hold_the_truth() {
    // The fewest samples that are enough, and more; forks that differ little, and as much as they may.
    let p95 = |forks, samples, between| {
        coverage(|forks| quantile(forks, 0.95, USUAL), [forks, samples, 250], between, 1.645)
    };
    let p99 = |forks, samples, between| {
        coverage(|forks| quantile(forks, 0.99, USUAL), [forks, samples, 60], between, 2.326)
    };
    let found =
        [p95(10, 20, 0.06), p95(10, 20, 0.1), p95(20, 30, 0.1), p99(10, 100, 0.06), p99(10, 100, 0.1)];
    // Four standard errors of a share of 90 % in so few studies.
    let least = |studies: f64| 0.9 - 4.0 * (0.09 / studies).sqrt();
    for ((covered, made), studies) in found.into_iter().zip([250.0, 250.0, 250.0, 60.0, 60.0]) {
        assert!(covered >= least(studies * made.max(0.1)) && made > 0.1, "{found:?}");
    }
}

#[test]
fn where_intervals_of_percentiles_would_not_hold_the_truth_none_are_printed() {
    let unguarded = |part: f64| {
        move |forks: &[Samples]| {
            let forks: Vec<&[f64]> = forks.iter().map(Samples::values).collect();
            resampled(&forks, part, USUAL)
        }
    };
    let guarded = |part: f64| move |forks: &[Samples]| quantile(forks, part, USUAL);
    // Too few samples, too few forks for the 99th percentile, and forks that differ as much as their samples.
    let cases = [
        (0.95, 1.645, [3, 5, 200], 0.06),
        (0.99, 2.326, [4, 30, 200], 0.06),
        (0.99, 2.326, [10, 100, 40], 0.2),
    ];
    for (part, normal, sizes, between) in cases {
        let (covered, _) = coverage(unguarded(part), sizes, between, normal);
        let (_, made) = coverage(guarded(part), sizes, between, normal);
        assert!(
            covered < 0.85 && made < 0.05,
            "{part} of {sizes:?}: {covered} without the rule, {made} are printed"
        );
    }
}

#[test]
fn a_fork_needs_ten_samples_beyond_a_percentile() {
    assert_eq!(
        [reaches(199, 0.95), reaches(200, 0.95), reaches(999, 0.99), reaches(1000, 0.99)],
        [false, true, false, true]
    );
    assert_eq!(quantile(&[Samples::default()], 0.5, USUAL), None);
}
