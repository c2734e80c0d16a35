mod peers;

use super::*;

fn congestion(initial: usize) -> CongestionControl {
    let bounds = Limits {
        initial_inflight_requests: initial,
        min_inflight_requests: 4,
        max_inflight_requests: 1_000,
        ..Limits::default()
    };
    CongestionControl::new(&bounds)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn answer_a_window(congestion: &CongestionControl) {
    let window = congestion.limit();
    for _ in 0..window {
        congestion.started(congestion.room());
        congestion.ended(1, 1);
    }
    (0..congestion.inflight()).for_each(|_| congestion.ended(1, 0));
}

#[test]
fn the_limit_doubles_until_it_is_slowed_down_for_the_first_time() {
    let congestion = congestion(100);
    answer_a_window(&congestion);
    assert_eq!(congestion.limit(), 200);
}

#[test]
fn a_flight_that_is_answered_at_once_doubles_the_limit_though_no_more_start_meanwhile() {
    let congestion = congestion(200);
    congestion.started(200);
    (0..10).for_each(|_| congestion.ended(20, 20));
    assert_eq!(congestion.limit(), 400);
}

#[test]
fn a_far_peer_is_given_twice_as_many_after_each_round_trip_from_the_first_on() {
    let congestion = wide_congestion(1_000);
    let latency = Duration::from_millis(50);
    for trip in 1..=5 {
        let flight = congestion.limit();
        congestion.started(congestion.room());
        for part in 0..10 {
            congestion.ended(flight / 10, flight / 10);
            congestion.observe(latency * trip + Duration::from_millis(part), flight / 10, latency, latency);
        }
        assert!(congestion.limit() >= flight * 19 / 10, "{flight}, then {}", congestion.limit());
    }
}

#[test]
fn a_silent_peer_is_given_as_many_again_every_ten_milliseconds_until_it_answers_or_fails() {
    for break_silence in [
        |congestion: &CongestionControl| congestion.ended(1, 1),
        |congestion: &CongestionControl| congestion.failed(1),
    ] {
        let congestion = wide_congestion(1_000);
        assert!(congestion.wait(ms(70)) && congestion.limit() == 1_000, "nothing was sent yet");
        congestion.started(1_000);
        let limits = [80, 95, 101].map(|now| congestion.wait(ms(now)).then(|| congestion.limit()));
        assert_eq!(limits, [1_000, 2_000, 3_000].map(Some));
        break_silence(&congestion);
        assert!(
            !congestion.wait(ms(200)) && (3_000..=3_001).contains(&congestion.limit()),
            "{}",
            congestion.limit()
        );
    }
}

#[test]
fn after_slowing_down_the_limit_grows_by_a_sixteenth_for_a_window_of_answers() {
    let congestion = congestion(400);
    congestion.slow_down();
    assert_eq!(congestion.limit(), 200);
    answer_a_window(&congestion);
    answer_a_window(&congestion);
    assert!((212..=226).contains(&congestion.limit()), "{}", congestion.limit());
}

#[test]
fn a_small_limit_grows_by_no_less_than_eight_for_a_window_of_answers() {
    let congestion = congestion(8);
    congestion.slow_down();
    answer_a_window(&congestion);
    answer_a_window(&congestion);
    assert!((12..=20).contains(&congestion.limit()), "{}", congestion.limit());
}

#[test]
fn windows_without_a_decrease_let_the_limit_double_again_up_to_where_it_failed_and_later_beyond() {
    let congestion = wide_congestion(1_000);
    congestion.slow_down();
    // Responses to requests that did not need the limit: it stays, and so the windows hold 500.
    let calm = |windows| {
        (0..windows * 500).for_each(|_| {
            congestion.started(1);
            congestion.ended(1, 1);
        })
    };
    calm(16);
    assert_eq!(congestion.limit(), 500);
    answer_a_window(&congestion);
    answer_a_window(&congestion);
    assert!((1_000..1_200).contains(&congestion.limit()), "{}", congestion.limit());
    calm(40);
    let before = congestion.limit();
    answer_a_window(&congestion);
    assert!(congestion.limit() >= before * 19 / 10, "{before}, then {}", congestion.limit());
}

#[test]
fn one_failure_in_five_does_not_slow_down_and_more_do() {
    let congestion = congestion(400);
    congestion.started(400);
    for _ in 0..80 {
        congestion.failed(1);
        congestion.ended(1, 0);
    }
    assert_eq!(congestion.limit(), 400);
    congestion.failed(1);
    assert_eq!(congestion.limit(), 200);
}

#[test]
fn failures_of_a_batch_are_a_share_of_that_batch() {
    let congestion = congestion(100);
    congestion.failed_of(200, 1_000);
    assert_eq!(congestion.limit(), 100);
    congestion.failed_of(1, 1_000);
    assert_eq!(congestion.limit(), 50);
}

#[test]
fn failures_are_counted_for_a_window_of_answers_only() {
    let congestion = congestion(400);
    for _ in 0..10 {
        congestion.failed(3);
        for _ in 0..400 {
            congestion.started(1);
            congestion.ended(1, 1);
        }
    }
    assert_eq!(congestion.limit(), 400);
}

#[test]
fn failures_of_a_flight_that_has_slowed_down_already_are_no_reason_to_do_so_again() {
    let congestion = congestion(400);
    congestion.started(400);
    for _ in 0..400 {
        congestion.failed(1);
        congestion.ended(1, 0);
    }
    assert_eq!(congestion.limit(), 200);
}

#[test]
fn requests_of_one_flight_halve_the_limit_once_even_when_the_last_of_them_has_ended() {
    let congestion = congestion(200);
    congestion.started(200);
    for _ in 0..200 {
        congestion.slow_down();
        congestion.ended(1, 0);
    }
    congestion.slow_down();
    assert_eq!(congestion.limit(), 100);
    congestion.started(200);
    congestion.ended(200, 0);
    congestion.slow_down();
    assert_eq!(congestion.limit(), 50);
}

#[test]
fn late_requests_leave_room_for_others_while_twice_as_many_are_answered() {
    let congestion = congestion(100);
    congestion.started(100);
    congestion.ended(60, 60);
    assert_eq!((congestion.excuse(40), congestion.inflight()), (30, 10), "60 answers excuse 30");
    congestion.started(congestion.room());
    assert_eq!(congestion.excuse(10), 0, "nothing was answered since");
}

#[test]
fn a_peer_that_falls_silent_gets_a_bounded_number_of_requests_beyond_the_limit() {
    let congestion = wide_congestion(1_000);
    for _ in 0..1_000 {
        congestion.started(1_000);
        congestion.ended(1_000, 1_000);
    }
    let excused: usize = (0..100)
        .map(|_| {
            congestion.started(congestion.room());
            congestion.excuse(congestion.inflight())
        })
        .sum();
    assert_eq!(excused, EXCUSES_MAX_ANSWERS / EXCUSE_ANSWERS);
}

#[test]
fn the_limit_stays_within_its_bounds() {
    let congestion = congestion(100);
    for _ in 0..10 {
        congestion.slow_down();
        congestion.started(1);
        congestion.ended(1, 0);
    }
    assert_eq!(congestion.limit(), 4);
    let wide = CongestionControl::new(&Limits { max_inflight_requests: 110, ..Limits::default() });
    answer_a_window(&wide);
    assert_eq!(wide.limit(), 110);
}

#[test]
fn a_limit_that_nobody_needs_does_not_grow() {
    let congestion = congestion(100);
    for _ in 0..1_000 {
        congestion.started(1);
        congestion.ended(1, 1);
    }
    assert_eq!(congestion.limit(), 100);
}

/// Simulates a peer that responds after `latency_ms`, at most `rate_max` times a second, under a full window.
fn work_for(congestion: &CongestionControl, millis: std::ops::Range<u64>, latency_ms: u64, rate_max: f64) {
    let mut answered = 0.0;
    for now in millis {
        congestion.started(congestion.room());
        answered += (congestion.inflight() as f64 / latency_ms as f64).min(rate_max / 1_000.0);
        let whole = answered as usize;
        answered -= whole as f64;
        congestion.ended(whole, whole);
        let took = Duration::from_millis(latency_ms);
        congestion.observe(Duration::from_millis(now), whole, took, took);
    }
}

fn wide_congestion(initial: usize) -> CongestionControl {
    CongestionControl::new(&Limits {
        initial_inflight_requests: initial,
        max_inflight_requests: 100_000,
        ..Limits::default()
    })
}

#[test]
fn latency_gets_about_twice_what_it_needs_within_a_few_round_trips() {
    let congestion = wide_congestion(1_000);
    work_for(&congestion, 0..400, 50, 200_000.0);
    assert!((18_000..23_000).contains(&congestion.limit()), "{}", congestion.limit());
}

#[test]
fn a_peer_without_latency_does_not_raise_the_limit() {
    let congestion = wide_congestion(1_000);
    work_for(&congestion, 0..2_000, 1, 200_000.0);
    assert!(congestion.limit() <= 1_300, "{}", congestion.limit());
}

#[test]
fn a_limit_above_what_rate_and_latency_need_comes_down() {
    let congestion = wide_congestion(1_000);
    work_for(&congestion, 0..1_000, 100, 200_000.0);
    let high = congestion.limit();
    work_for(&congestion, 1_000..4_000, 100, 20_000.0);
    assert!(high > 30_000 && congestion.limit() < 6_000, "{high}, then {}", congestion.limit());
}

#[test]
fn the_delivery_rate_is_the_best_of_the_last_spans_and_zero_before_the_first() {
    let congestion = wide_congestion(1_000);
    assert_eq!(congestion.delivery_rate(), 0);
    work_for(&congestion, 0..400, 10, 50_000.0);
    let best = congestion.delivery_rate();
    assert!((45_000..56_000).contains(&best), "{best}");
    work_for(&congestion, 400..450, 10, 5_000.0);
    assert_eq!(congestion.delivery_rate(), best, "a pause takes nothing away");
    work_for(&congestion, 450..1_000, 10, 5_000.0);
    assert!((4_500..5_600).contains(&congestion.delivery_rate()), "{}", congestion.delivery_rate());
}
