use super::*;

fn of(durations: impl Iterator<Item = u64>) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits");
    durations.for_each(|duration| histogram.record(duration).expect("it grows"));
    histogram
}

#[test]
fn what_is_added_up_is_the_distribution_of_all_to_three_digits() {
    let (first, second) = (of((1..=500).map(|step| step * 1000)), of((501..=1000).map(|step| step * 1000)));
    let sum = merged([first, second]).expect("two");
    assert_eq!(sum.len(), 1000);
    for (part, expected) in [(0.5, 500e3), (0.99, 990e3)] {
        let found = sum.value_at_quantile(part) as f64;
        assert!((found / expected - 1.0).abs() < 0.002, "{part}: {found}");
    }
    let shares = shares(&sum);
    assert!(shares.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    assert_eq!(shares.last().map(|(_, share)| *share), Some(1.0));
}

#[test]
fn nothing_added_up_is_nothing() {
    assert!(merged([]).is_none());
    assert!(shares(&of(std::iter::empty())).is_empty());
}
