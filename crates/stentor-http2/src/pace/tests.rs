use super::*;

fn pace(initial: usize) -> Pace {
    let bounds = Limits {
        initial_inflight_requests: initial,
        min_inflight_requests: 4,
        max_inflight_requests: 1_000,
        ..Limits::default()
    };
    Pace::new(&bounds)
}

fn answer_a_window(pace: &Pace) {
    let window = pace.limit();
    for _ in 0..window {
        pace.started(pace.room());
        pace.ended(1, 1);
    }
    (0..pace.inflight()).for_each(|_| pace.ended(1, 0));
}

#[test]
fn the_limit_doubles_until_it_is_slowed_down_for_the_first_time() {
    let pace = pace(100);
    answer_a_window(&pace);
    assert_eq!(pace.limit(), 200);
}

#[test]
fn after_slowing_down_the_limit_grows_by_a_step_for_a_window_of_answers() {
    let pace = pace(200);
    pace.slow_down();
    assert_eq!(pace.limit(), 100);
    answer_a_window(&pace);
    answer_a_window(&pace);
    assert!((108..=116).contains(&pace.limit()), "{}", pace.limit());
}

#[test]
fn failures_of_one_window_halve_the_limit_once() {
    let pace = pace(200);
    pace.started(200);
    for _ in 0..200 {
        pace.slow_down();
        pace.ended(1, 0);
    }
    assert_eq!(pace.limit(), 100);
    pace.slow_down();
    assert_eq!(pace.limit(), 50);
}

#[test]
fn the_limit_stays_within_its_bounds() {
    let pace = pace(100);
    for _ in 0..10 {
        pace.slow_down();
        pace.started(1);
        pace.ended(1, 0);
    }
    assert_eq!(pace.limit(), 4);
    let wide = Pace::new(&Limits { max_inflight_requests: 110, ..Limits::default() });
    answer_a_window(&wide);
    assert_eq!(wide.limit(), 110);
}

#[test]
fn a_limit_that_nobody_needs_does_not_grow() {
    let pace = pace(100);
    for _ in 0..1_000 {
        pace.started(1);
        pace.ended(1, 1);
    }
    assert_eq!(pace.limit(), 100);
}
