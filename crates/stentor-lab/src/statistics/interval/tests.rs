use super::*;
use proptest::prelude::*;

/// What is asked for everywhere.
const USUAL: f64 = 0.95;

fn samples(values: &[f64]) -> Samples {
    values.iter().copied().collect()
}

#[test]
fn quantiles_of_students_distribution_are_those_of_the_tables() {
    // Two-sided, from the tables in statistics books.
    let table = [
        (0.95, 1.0, 12.706),
        (0.95, 2.0, 4.303),
        (0.95, 3.0, 3.182),
        (0.95, 4.0, 2.776),
        (0.95, 10.0, 2.228),
        (0.95, 30.0, 2.042),
        (0.99, 2.0, 9.925),
        (0.99, 5.0, 4.032),
        (0.90, 7.0, 1.895),
        (0.95, 1000.0, 1.962),
    ];
    for (confidence, degrees, expected) in table {
        let found = student_t(confidence, degrees);
        assert!((found - expected).abs() < 0.0011, "{confidence} {degrees}: {found}, not {expected}");
    }
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
    // Student's own data on two sleeping drugs; R's t.test gives -3.3654832 and 0.2054832 with 17.776 degrees of freedom.
    let [first, second] = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ]
    .map(|hours| hours.into_iter().map(f64::exp).collect::<Samples>());
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

/// Repeatable normal numbers, by Box and Muller from SplitMix64.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[test]
fn of_two_thousand_invented_studies_about_95_in_100_have_the_truth_in_their_interval() {
    let mut dice = Dice(7);
    let critical = student_t(USUAL, 4.0);
    let covered = (0..2000).filter(|_| {
        let runs: Samples = (0..5).map(|_| (6.0 + 0.1 * dice.normal()).exp()).collect();
        let logs = Logs::of(&runs).expect("positive");
        let half = critical * (logs.variance.expect("five runs") / 5.0).sqrt();
        (logs.mean - 6.0).abs() <= half
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
