use super::*;

/// Student's own data on two sleeping drugs, as logarithms; a round is a patient.
fn sleep() -> Vec<RoundPair> {
    let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
    first.into_iter().zip(second).map(|(first, second): (f64, f64)| [first.exp(), second.exp()]).collect()
}

/// The same hours, with the best of one side beside the worst of the other, so that patients differ less than chance makes them.
fn crossed() -> Vec<RoundPair> {
    let side = |place: usize| {
        let mut side: Vec<f64> = sleep().iter().map(|round| round[place]).collect();
        side.sort_by(f64::total_cmp);
        side
    };
    side(0).into_iter().zip(side(1).into_iter().rev()).map(|(first, second)| [first, second]).collect()
}

fn sides(rounds: &[RoundPair]) -> [Samples; 2] {
    [0, 1].map(|place| rounds.iter().map(|round| round[place]).collect())
}

fn samples(values: &[f64]) -> Samples {
    values.iter().copied().collect()
}

#[test]
fn the_p_value_of_a_comparison_is_that_of_welch() {
    // R's t.test gives 0.07939.
    let [first, second] = sides(&sleep());
    let found = welch_p(&first, &second).expect("ten runs");
    assert!((found - 0.079_394).abs() < 1e-5, "{found}");
    assert_eq!(welch_p(&samples(&[1.0]), &samples(&[2.0, 3.0])), None);
    assert_eq!(welch_p(&samples(&[2.0, 2.0]), &samples(&[2.0, 2.0])), Some(1.0));
    assert_eq!(welch_p(&samples(&[2.0, 2.0]), &samples(&[3.0, 3.0])), Some(0.0));
}

#[test]
fn the_p_value_of_rounds_as_blocks_is_that_of_the_paired_test() {
    // R's t.test(paired = TRUE) gives -4.0621 with 9 degrees of freedom, and 0.002833.
    let found = Difference::of_rounds(&sleep()).expect("ten rounds");
    assert!((found.log_ratio / found.standard_error + 4.062_1).abs() < 1e-4, "{found:?}");
    assert!((found.p_beyond(0.0) - 0.002_833).abs() < 1e-6 && found.degrees == 9.0, "{found:?}");
}

#[test]
fn a_mixed_model_is_the_paired_test_if_rounds_differ_and_that_of_equal_variances_if_they_do_not() {
    let differing = sleep();
    assert_eq!(Difference::of_mixed_model(&differing), Difference::of_rounds(&differing));
    // R's t.test(var.equal = TRUE) gives 0.07919 with 18 degrees of freedom.
    let found = Difference::of_mixed_model(&crossed()).expect("ten rounds");
    assert!((found.p_beyond(0.0) - 0.079_19).abs() < 1e-5 && found.degrees == 18.0, "{found:?}");
}

#[test]
fn a_difference_within_the_band_is_chance_and_one_beyond_it_is_tested_from_the_band_on() {
    let within = Difference { log_ratio: -0.04, standard_error: 0.001, degrees: 4.0 };
    assert_eq!(within.p_beyond(0.05), 1.0);
    let beyond = Difference { log_ratio: -0.1 - 0.05_f64.ln_1p(), ..within };
    let from_zero = Difference { log_ratio: 0.1, ..within };
    assert!((beyond.p_beyond(0.05) / from_zero.p_beyond(0.0) - 1.0).abs() < 1e-6);
}

#[test]
fn a_single_round_or_a_time_of_zero_gives_no_difference() {
    for rounds in [&[[1.0, 2.0]][..], &[], &[[1.0, 2.0], [0.0, 3.0]], &[[-1.0, -2.0], [1.0, 3.0]]] {
        assert_eq!(Difference::of_rounds(rounds), None);
        assert_eq!(Difference::of_mixed_model(rounds), None);
    }
}
