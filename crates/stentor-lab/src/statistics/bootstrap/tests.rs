use super::*;
use crate::statistics::invented::Invented;

/// Forks that differ from each other more than their samples do.
fn study(invented: &mut Invented, forks: usize, samples: usize) -> Vec<Samples> {
    let fork = |_| {
        let middle = 3.0 + 0.2 * invented.normal();
        (0..samples).map(|_| (middle + 0.05 * invented.normal()).exp()).collect()
    };
    (0..forks).map(fork).collect()
}

#[test]
fn the_same_samples_give_the_same_interval() {
    let forks = study(&mut Invented::new(1), 6, 40);
    let [first, second] = [(); 2].map(|()| quantile(&forks, 0.5, 0.95).expect("samples"));
    assert_eq!(first, second);
    let (low, high) = (first.low.expect("six forks"), first.high.expect("six forks"));
    assert!(low <= first.value && first.value <= high, "{first:?}");
}

#[test]
fn forks_that_differ_widen_the_interval_more_than_their_samples() {
    let forks = study(&mut Invented::new(2), 8, 60);
    let width = |forks: &[Samples]| {
        let found = quantile(forks, 0.5, 0.95).expect("samples");
        found.high.expect("forks") - found.low.expect("forks")
    };
    // The same samples, distributed so that all forks are alike.
    let all: Vec<f64> = forks.iter().flat_map(|fork| fork.values().to_vec()).collect();
    let alike: Vec<Samples> =
        (0..8).map(|fork| all.iter().skip(fork).step_by(8).copied().collect()).collect();
    assert!(width(&forks) > 2.0 * width(&alike), "{} and {}", width(&forks), width(&alike));
}

#[test]
fn of_many_invented_studies_about_nine_in_ten_have_the_true_median_in_their_interval() {
    let mut invented = Invented::new(3);
    let covered = (0..40).filter(|_| {
        let found = quantile(&study(&mut invented, 12, 6), 0.5, 0.95).expect("samples");
        let truth = 3.0_f64.exp();
        found.low.is_some_and(|low| low <= truth) && found.high.is_some_and(|high| truth <= high)
    });
    let covered = covered.count();
    assert!((33..=40).contains(&covered), "{covered} of 40");
}

#[test]
fn a_single_fork_has_no_interval_and_no_samples_no_quantile() {
    let fork: Samples = [1.0, 2.0, 3.0].into_iter().collect();
    assert_eq!(quantile(&[fork], 0.5, 0.95), Some(QuantileEstimate { value: 2.0, low: None, high: None }));
    assert_eq!(quantile(&[Samples::default()], 0.5, 0.95), None);
}
