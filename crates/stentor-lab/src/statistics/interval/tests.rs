use super::*;
use crate::statistics::invented::Invented;
use proptest::prelude::*;

/// The usual confidence level.
const USUAL: f64 = 0.95;

fn samples(values: &[f64]) -> Samples {
    values.iter().copied().collect()
}

/// Student's own data on two sleeping drugs, as logarithms.
fn sleep() -> [Samples; 2] {
    let hours = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ];
    hours.map(|hours| hours.into_iter().map(f64::exp).collect())
}

#[test]
fn the_interval_of_three_runs_is_that_of_the_textbook() {
    // Logarithms 1, 2, 3: mean 2, standard error 1 / sqrt(3), and 4.3027 for two degrees of freedom.
    let estimate = samples(&[1.0_f64.exp(), 2.0_f64.exp(), 3.0_f64.exp()]).estimate(USUAL).expect("positive");
    let half = 4.302_65 / 3.0_f64.sqrt();
    let close = |found: Option<f64>, expected: f64| (found.expect("three runs").ln() - expected).abs() < 1e-4;
    assert!(close(estimate.low, 2.0 - half) && close(estimate.high, 2.0 + half), "{estimate:?}");
    assert!((estimate.mean - 2.0_f64.exp()).abs() < 1e-9 && estimate.count == 3);
}

#[test]
fn a_comparison_is_that_of_welch() {
    // R's t.test gives -3.3654832 and 0.2054832 with 17.776 degrees of freedom.
    let [first, second] = sleep();
    let found = ratio(&first, &second, USUAL).expect("positive");
    let ends = [found.low.expect("ten runs").ln(), found.high.expect("ten runs").ln()];
    assert!((ends[0] + 3.365_483_2).abs() < 1e-4 && (ends[1] - 0.205_483_2).abs() < 1e-4, "{ends:?}");
}

#[test]
fn a_single_run_has_no_interval_and_no_runs_have_no_figure() {
    let one = samples(&[5.0]).estimate(USUAL).expect("positive");
    assert_eq!((one.median, one.low, one.high), (5.0, None, None));
    assert_eq!(samples(&[]).estimate(USUAL), None);
    assert_eq!(samples(&[1.0, 0.0]).estimate(USUAL), None);
    assert_eq!(ratio(&samples(&[4.0]), &samples(&[2.0, 2.0]), USUAL).expect("positive").low, None);
}

#[test]
fn of_two_thousand_invented_studies_about_95_in_100_have_the_truth_in_their_interval() {
    let mut invented = Invented::new(7);
    let covered = (0..2000).filter(|_| {
        let runs: Samples = (0..5).map(|_| (6.0 + 0.1 * invented.normal()).exp()).collect();
        let estimate = runs.estimate(USUAL).expect("positive");
        let truth = 6.0_f64.exp();
        estimate.low.is_some_and(|low| low <= truth) && estimate.high.is_some_and(|high| truth <= high)
    });
    let covered = covered.count();
    assert!((1860..=1940).contains(&covered), "{covered} of 2000");
}

#[test]
fn of_two_thousand_invented_comparisons_about_95_in_100_have_the_truth_in_their_interval() {
    let mut invented = Invented::new(8);
    let covered = (0..2000).filter(|_| {
        // Unequal variances and unequal numbers of runs, as in practice.
        let first: Samples = (0..8).map(|_| (2.0 + 0.05 * invented.normal()).exp()).collect();
        let second: Samples = (0..5).map(|_| (1.0 + 0.15 * invented.normal()).exp()).collect();
        let found = ratio(&first, &second, USUAL).expect("positive");
        let truth = 1.0_f64.exp();
        found.low.is_some_and(|low| low <= truth) && found.high.is_some_and(|high| truth <= high)
    });
    let covered = covered.count();
    assert!((1860..=1940).contains(&covered), "{covered} of 2000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_mean_lies_in_its_interval_and_the_interval_grows_with_confidence(
        values in prop::collection::vec(0.01..1e6_f64, 2..12),
    ) {
        let (usual, sure) = (samples(&values).estimate(USUAL), samples(&values).estimate(0.99));
        let (usual, sure) = (usual.expect("positive"), sure.expect("positive"));
        let (low, high) = (usual.low.expect("several"), usual.high.expect("several"));
        prop_assert!(low <= usual.mean * (1.0 + 1e-9) && usual.mean <= high * (1.0 + 1e-9));
        prop_assert!(sure.low.expect("several") <= low && high <= sure.high.expect("several"));
    }

    #[test]
    fn another_unit_changes_an_interval_by_that_unit_alone(
        values in prop::collection::vec(0.01..1e6_f64, 2..12), unit in 0.001..1e3_f64,
    ) {
        let scaled: Samples = values.iter().map(|value| value * unit).collect();
        let (plain, scaled) = (samples(&values).estimate(USUAL), scaled.estimate(USUAL));
        let (plain, scaled) = (plain.and_then(|one| one.low), scaled.and_then(|one| one.low));
        let (plain, scaled) = (plain.expect("several"), scaled.expect("several"));
        prop_assert!((scaled / (plain * unit) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_comparison_the_other_way_round_is_the_inverse(
        a in prop::collection::vec(0.01..1e6_f64, 2..8), b in prop::collection::vec(0.01..1e6_f64, 2..8),
    ) {
        let there = ratio(&samples(&a), &samples(&b), USUAL).expect("positive");
        let back = ratio(&samples(&b), &samples(&a), USUAL).expect("positive");
        prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-6);
        prop_assert!((there.low.expect("several") * back.high.expect("several") - 1.0).abs() < 1e-6);
    }
}
