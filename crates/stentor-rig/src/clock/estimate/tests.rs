use super::*;
use proptest::prelude::*;

const MS: i64 = 1_000_000;

/// A query at an instant, with a delay each way, to a clock with this offset.
fn query(at: i64, offset: i64, up: i64, down: i64) -> Stamps {
    Stamps {
        asked_ns: at,
        received_ns: at + up + offset,
        answered_ns: at + up + offset,
        known_ns: at + up + down,
    }
}

#[test]
fn the_mean_keeps_half_of_the_difference_of_both_ways_and_the_shortest_do_not() {
    let queries: Vec<Stamps> = (0..100)
        .map(|at| query(at * 100 * MS, 137 * MS, 2 * MS, 2 * MS + (at * 37 % 100) * 3 * MS / 10))
        .collect();
    let mean = papers_mean_ns(&queries).unwrap() / 1e6 - 137.0;
    let shortest = by_shortest(&queries).unwrap();
    // The way back takes 14.85 ms longer on average; the paper's clocks show whole milliseconds.
    assert!((-7.9..-6.9).contains(&mean), "{mean}");
    assert!((shortest.offset_ns / 1e6 - 137.0).abs() < 0.4, "{shortest:?}");
}

#[test]
fn without_queries_there_is_no_offset() {
    assert_eq!((papers_mean_ns(&[]), by_shortest(&[])), (None, None));
}

#[test]
fn a_drift_between_two_anchors_is_followed() {
    let anchor = |at_ns, offset_ns, bound_ns| Anchor { at_ns, offset_ns, bound_ns };
    let line = DriftEstimate { before: anchor(0.0, 100.0, 7.0), after: anchor(1e9, 50_100.0, 9.0) };
    assert_eq!((line.offset_ns(0.5e9), line.bound_ns()), (25_100.0, 9.0));
    assert!((line.drift_ppb() - 50_000.0).abs() < 1e-6);
}

proptest! {
    #[test]
    fn the_true_offset_lies_within_the_bound_whatever_the_ways(
        offset in -10_000 * MS..10_000 * MS,
        ways in prop::collection::vec((0..200 * MS, 0..200 * MS), 1..60),
    ) {
        let queries: Vec<Stamps> =
            ways.iter().enumerate().map(|(at, (up, down))| query(at as i64 * MS, offset, *up, *down)).collect();
        let anchor = by_shortest(&queries).unwrap();
        prop_assert!((anchor.offset_ns - offset as f64).abs() <= anchor.bound_ns + 1.0, "{anchor:?}");
    }

    #[test]
    fn a_line_between_true_anchors_is_true_in_between(
        first in -1e9..1e9_f64,
        ppb in -200_000.0..200_000.0_f64,
        span in 1e9..1e11_f64,
        share in 0.0..1.0_f64,
    ) {
        let truth = |at: f64| first + at * ppb / 1e9;
        let anchor = |at_ns: f64| Anchor { at_ns, offset_ns: truth(at_ns), bound_ns: 0.0 };
        let line = DriftEstimate { before: anchor(0.0), after: anchor(span) };
        prop_assert!((line.offset_ns(share * span) - truth(share * span)).abs() < 1.0);
    }
}
