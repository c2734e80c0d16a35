use super::*;

#[test]
fn durations_survive_being_kept_and_merged_to_three_digits() {
    let first = Histogram::of((1..=500).map(|step| step * 1_000_000)).expect("made");
    let second = Histogram::of((501..=1000).map(|step| step * 1_000_000)).expect("made");
    let mut merged = Histogram::decode(&first.encode().expect("written")).expect("read");
    merged.merge(&Histogram::decode(&second.encode().expect("written")).expect("read")).expect("merged");
    assert_eq!(merged.count(), 1000);
    for (part, expected) in [(0.5, 500e6), (0.99, 990e6)] {
        let found = merged.quantile_ns(part) as f64;
        assert!((found / expected - 1.0).abs() < 0.002, "{part}: {found}");
    }
    let shares = merged.shares();
    assert!(shares.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    assert_eq!(shares.last().map(|(_, share)| *share), Some(1.0));
}

#[test]
fn what_is_no_histogram_is_refused() {
    for text in ["", "!", "AAAA", &"A".repeat(ENCODED_MAX_BYTES + 1)] {
        assert!(Histogram::decode(text).is_err(), "{}", text.len());
    }
}

#[test]
fn an_empty_one_has_no_shares() {
    let empty = Histogram::new().expect("made");
    assert_eq!((empty.count(), empty.quantile_ns(0.5), empty.shares()), (0, 0, Vec::new()));
}
