use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_bucket_ends_at_most_a_sixteenth_above_what_it_holds(value in 0..u64::MAX / 2) {
        let end = upper_end(bucket(value));
        prop_assert!(end >= value && end - value <= value / STEPS, "{value} in a bucket up to {end}");
    }

    #[test]
    fn quantiles_lie_in_order(values in prop::collection::vec(0..10_000_000_u64, 1..200)) {
        let mut histogram = LatenessHistogram::default();
        values.iter().for_each(|value| histogram.add(*value));
        let summary = histogram.summary();
        prop_assert!(summary.p50_ns <= summary.p99_ns && summary.p99_ns <= summary.max_ns);
        prop_assert_eq!(summary.max_ns, values.iter().copied().max().unwrap_or(0));
    }
}

#[test]
fn an_engine_that_was_late_once_in_fifty_packets_makes_a_run_invalid() {
    let mut histogram = LatenessHistogram::default();
    for packet in 0..1000 {
        histogram.add(if packet % 50 == 0 { 5_000_000 } else { 40_000 });
    }
    let complaint = histogram.summary().complaint(LatenessLimits::default()).unwrap();
    assert!(complaint.contains("1 packet of 100"), "{complaint}");
}

#[test]
fn a_punctual_engine_is_not_complained_about() {
    let mut histogram = LatenessHistogram::default();
    (0..1000).for_each(|packet| histogram.add(packet * 100));
    assert_eq!(histogram.summary().complaint(LatenessLimits::default()), None);
}
