use super::*;

/// A window in which neither the number in flight nor the latency changed.
fn window(inflight: f64, latency_ms: f64) -> Window {
    Window { inflight, latency_ms, shortest_ms: latency_ms.min(20.0), answers_per_ms: inflight / latency_ms }
}

#[test]
fn growth_that_costs_no_latency_goes_on() {
    let mut gradient = Gradient::new();
    for doubling in 0..6 {
        assert_eq!(gradient.judge(window(512.0 * f64::from(1 << doubling), 50.0)), Advice::Grow);
    }
}

#[test]
fn growth_that_only_waits_longer_is_taken_back_and_not_repeated_for_a_while() {
    let mut gradient = Gradient::new();
    gradient.judge(window(500.0, 40.0));
    assert_eq!(gradient.judge(window(1_000.0, 80.0)), Advice::Set(500));
    for _ in 0..STAY_WINDOWS {
        assert_eq!(gradient.judge(window(500.0, 40.0)), Advice::Stay);
    }
    assert_eq!(gradient.judge(window(500.0, 40.0)), Advice::Grow);
}

#[test]
fn a_few_milliseconds_more_are_no_reason() {
    let mut gradient = Gradient::new();
    gradient.judge(window(500.0, 2.0));
    assert_eq!(gradient.judge(window(1_000.0, 4.0)), Advice::Grow);
}

#[test]
fn a_queue_that_is_suspected_and_found_stays_shorter() {
    let mut gradient = Gradient::new();
    gradient.judge(window(1_000.0, 200.0));
    assert_eq!(gradient.judge(window(1_000.0, 200.0)), Advice::Set(700));
    // A window with earlier responses, and then the same rate as before with fewer in flight.
    assert_eq!(gradient.judge(window(700.0, 190.0)), Advice::Stay);
    assert_eq!(gradient.judge(window(700.0, 140.0)), Advice::Stay);
    assert_eq!(gradient.judge(window(700.0, 140.0)), Advice::Set(489), "and it is tried again");
}

#[test]
fn a_distance_that_was_suspected_gets_its_requests_back_and_peace() {
    let mut gradient = Gradient::new();
    gradient.judge(window(1_000.0, 50.0));
    gradient.judge(Window { shortest_ms: 50.0, ..window(1_000.0, 50.0) });
    assert_eq!(gradient.judge(window(1_000.0, 200.0)), Advice::Set(700));
    gradient.judge(window(700.0, 200.0));
    assert_eq!(gradient.judge(window(700.0, 200.0)), Advice::Set(1_000));
    for _ in 1..CALM_WINDOWS {
        assert_eq!(gradient.judge(window(1_000.0, 200.0)), Advice::Grow);
    }
}

#[test]
fn what_is_known_of_many_is_forgotten_when_there_are_few() {
    let mut gradient = Gradient::new();
    gradient.judge(window(1_000.0, 100.0));
    gradient.judge(window(250.0, 30.0));
    assert_eq!(gradient.judge(window(500.0, 60.0)), Advice::Set(250));
}
