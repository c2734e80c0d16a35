use super::*;
use crate::statistics::invented::Invented;

fn steady(invented: &mut Invented, count: usize) -> Vec<f64> {
    (0..count).map(|_| (2.0 + 0.05 * invented.normal()).exp()).collect()
}

#[test]
fn a_slow_beginning_is_found_where_it_ends() {
    let mut invented = Invented::new(5);
    let cold = (0..30).map(|call| 8.0 * (40.0 - f64::from(call)));
    let samples: Vec<f64> = cold.chain(steady(&mut invented, 170)).collect();
    assert_eq!(warm_up(&samples), WarmUp { samples: 30, has_settled: Some(true) });
}

#[test]
fn steady_samples_are_kept_nearly_all() {
    let mut invented = Invented::new(6);
    let discarded: Vec<usize> = (0..50).map(|_| warm_up(&steady(&mut invented, 200)).samples).collect();
    let mean = discarded.iter().sum::<usize>() as f64 / 50.0;
    assert!(mean < 30.0, "{mean} of 200 on average: {discarded:?}");
}

#[test]
fn never_more_than_about_half_is_warm_up_and_one_that_never_ends_has_not_settled() {
    let samples: Vec<f64> = (0..100).map(|call| 1000.0 * 0.97_f64.powi(call)).collect();
    assert_eq!(warm_up(&samples), WarmUp { samples: 50, has_settled: Some(false) });
}

#[test]
fn of_a_few_calls_the_first_is_cold() {
    assert_eq!([&[9.0, 1.0, 1.0][..], &[9.0], &[]].map(|calls| warm_up(calls).samples), [1, 0, 0]);
    assert_eq!(warm_up(&[3.0; 100]), WarmUp { samples: 0, has_settled: Some(true) });
}

#[test]
fn fewer_than_a_hundred_samples_do_not_tell_whether_a_process_has_settled() {
    let mut invented = Invented::new(8);
    let mut stopped_at_half = |count: usize| {
        let at_half = |samples: Vec<f64>| warm_up(&samples).has_settled == Some(false);
        (0..400).filter(|_| at_half(steady(&mut invented, count))).count()
    };
    assert_eq!([stopped_at_half(20), stopped_at_half(99)], [0, 0]);
    let by_chance = stopped_at_half(100);
    assert!(by_chance < 30, "{by_chance} of 400 steady processes");
}
