use super::*;

fn cells(runs: &[&[f64]]) -> Vec<Samples> {
    runs.iter().map(|cell| cell.iter().copied().collect()).collect()
}

fn is_near(found: f64, expected: f64, by: f64) -> bool {
    (found - expected).abs() < by
}

/// Jain's study of memory and cache: table 18.1.
const WORKSTATION: [&[f64]; 4] =
    [&[15.0, 18.0, 12.0], &[45.0, 48.0, 51.0], &[25.0, 28.0, 19.0], &[75.0, 75.0, 81.0]];

#[test]
fn effects_without_repetitions_are_those_of_the_textbook() {
    // Jain, example 17.1: 15, 45, 25, 75 give 40, 20, 10 and 5.
    let found = factorial(&["memory", "cache"], &cells(&[&[15.0], &[45.0], &[25.0], &[75.0]]), 0.9);
    let found = found.expect("four cells");
    let effects: Vec<f64> = found.effects.iter().map(|effect| effect.effect).collect();
    assert_eq!((found.mean, effects.as_slice()), (40.0, &[20.0, 10.0, 5.0][..]));
    // Section 17.3: 76 %, 19 % and 5 %.
    let shares: Vec<f64> = found.effects.iter().map(|effect| (100.0 * effect.share).round()).collect();
    assert_eq!((shares.as_slice(), found.error_share), (&[76.0, 19.0, 5.0][..], 0.0));
    assert!(found.effects.iter().all(|effect| effect.low.is_none() && !effect.is_sure()));
    assert_eq!(found.effects[2].name, "memory x cache");
}

#[test]
fn effects_with_repetitions_and_their_intervals_are_those_of_the_textbook() {
    let found = factorial(&["memory", "cache"], &cells(&WORKSTATION), 0.9).expect("four cells");
    let effects: Vec<f64> = found.effects.iter().map(|effect| effect.effect).collect();
    assert_eq!((found.mean, effects.as_slice()), (41.0, &[21.5, 9.5, 5.0][..]));
    // Example 18.3: 78.88 %, 15.4 %, 4.27 %, and 1.45 % for the errors.
    let shares: Vec<f64> = found.effects.iter().map(|effect| 100.0 * effect.share).collect();
    let expected = [78.88, 15.4, 4.27];
    assert!(
        shares.iter().zip(expected).all(|(found, expected)| is_near(*found, expected, 0.01)),
        "{shares:?}"
    );
    assert!(is_near(100.0 * found.error_share, 1.45, 0.01), "{found:?}");
    // Example 18.4: 90 % intervals of (19.58, 23.41), (7.58, 11.41), (3.08, 6.91).
    let expected = [(19.58, 23.41), (7.58, 11.41), (3.08, 6.91)];
    for (effect, (low, high)) in found.effects.iter().zip(expected) {
        assert!(
            is_near(effect.low.expect("repeated"), low, 0.011)
                && is_near(effect.high.expect("repeated"), high, 0.011)
        );
        assert!(effect.is_sure());
    }
}

#[test]
fn shares_add_up_and_a_run_less_changes_little() {
    let uneven = [WORKSTATION[0], &WORKSTATION[1][..2], WORKSTATION[2], WORKSTATION[3]];
    let found = factorial(&["memory", "cache"], &cells(&uneven), 0.9).expect("four cells");
    let all: f64 = found.effects.iter().map(|effect| effect.share).sum();
    assert!(is_near(all + found.error_share, 1.0, 1e-12));
    assert!(is_near(found.effects[0].effect, 21.5, 1.0) && found.effects[0].is_sure());
}

#[test]
fn a_design_with_a_hole_has_no_effects() {
    assert_eq!(factorial(&["memory", "cache"], &cells(&[&[1.0], &[2.0], &[3.0]]), 0.95), None);
    assert_eq!(factorial(&["memory", "cache"], &cells(&[&[1.0], &[2.0], &[3.0], &[]]), 0.95), None);
}

#[test]
fn factors_that_change_nothing_explain_nothing() {
    let found = factorial(&["memory"], &cells(&[&[2.0, 2.0], &[2.0, 2.0]]), 0.95).expect("two cells");
    assert_eq!((found.effects[0].share, found.error_share, found.effects[0].is_sure()), (0.0, 0.0, false));
}
