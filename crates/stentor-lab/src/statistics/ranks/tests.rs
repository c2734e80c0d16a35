use super::*;
use proptest::prelude::*;

/// The permeability constants of Hollander and Wolfe, as in the documentation of R's `wilcox.test`.
const AT_TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
const EARLY: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

#[test]
fn the_test_by_ranks_says_what_r_says() {
    let found = mann_whitney(&AT_TERM, &EARLY).expect("two groups");
    // R gives W = 35 and 0.1272 for one side.
    assert_eq!((found.u, found.exact), (35.0, true));
    assert!((found.p - 2.0 * 0.127_206).abs() < 1e-5, "{found:?}");
}

#[test]
fn ties_are_corrected_for_as_r_does() {
    // Ozone in New York in May and in August 1973, from the same page: W = 127.5, p = 0.0001208.
    let may =
        [41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37];
    let august = [
        39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84,
        85,
    ];
    let found = mann_whitney(&may.map(f64::from), &august.map(f64::from)).expect("two groups");
    assert_eq!((found.u, found.exact), (127.5, false));
    assert!((found.p - 0.000_120_8).abs() < 5e-8, "{found:?}");
}

#[test]
fn three_against_three_can_never_be_significant() {
    let found = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).expect("two groups");
    assert!((found.p - 0.1).abs() < 1e-12 && found.p_min == found.p, "{found:?}");
    assert_eq!(mann_whitney(&[], &[1.0]), None);
    assert_eq!(mann_whitney(&[2.0, 2.0], &[2.0]).expect("two groups").p, 1.0);
}

#[test]
fn delta_and_distance_are_one_for_groups_apart_and_none_for_equal_ones() {
    let (low, high) = ([1.0, 2.0, 3.0], [4.0, 5.0]);
    assert_eq!((cliffs_delta(&low, &high), cliffs_delta(&high, &low)), (Some(-1.0), Some(1.0)));
    assert_eq!((ks_distance(&low, &high), ks_distance(&low, &low)), (Some(1.0), Some(0.0)));
    // R: ks.test(AT_TERM, EARLY) gives D = 0.6.
    assert!((ks_distance(&AT_TERM, &EARLY).expect("two groups") - 0.6).abs() < 1e-12);
    assert_eq!((cliffs_delta(&[], &high), ks_distance(&low, &[])), (None, None));
}

#[test]
fn values_asked_for_together_are_corrected_as_r_does() {
    // R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") and the like.
    let near = |found: &[f64], expected: &[f64]| {
        found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12)
    };
    assert!(near(&holm(&[0.01, 0.02, 0.03, 0.04, 0.05]), &[0.05, 0.08, 0.09, 0.09, 0.09]));
    assert!(near(&holm(&[0.04, 0.001, 0.5]), &[0.08, 0.003, 0.5]));
    assert!(near(&holm(&[0.9, 0.8]), &[1.0, 1.0]) && holm(&[]).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_counts_of_u_are_all_arrangements_and_symmetric(first in 1..9_usize, second in 1..9_usize) {
        let counts = counts(first, second);
        let choose = (1..=first).fold(1.0, |ways, k| ways * (second + k) as f64 / k as f64);
        prop_assert!((counts.iter().sum::<f64>() - choose).abs() < 1e-6);
        let mirrored: Vec<f64> = counts.iter().rev().copied().collect();
        prop_assert_eq!(counts, mirrored);
    }

    #[test]
    fn groups_the_other_way_round_give_the_same_p(
        first in prop::collection::vec(0..20_i32, 1..12), second in prop::collection::vec(0..20_i32, 1..12),
    ) {
        let floats = |values: &[i32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
        let (first, second) = (floats(&first), floats(&second));
        let (there, back) = (mann_whitney(&first, &second), mann_whitney(&second, &first));
        let (there, back) = (there.expect("two groups"), back.expect("two groups"));
        prop_assert!((there.p - back.p).abs() < 1e-9 && (0.0..=1.0).contains(&there.p));
        prop_assert!((there.u + back.u - (first.len() * second.len()) as f64).abs() < 1e-9);
    }
}
