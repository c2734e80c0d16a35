mod peers;

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

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
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
fn a_flight_that_is_answered_at_once_doubles_the_limit_though_no_more_start_meanwhile() {
    let pace = pace(200);
    pace.started(200);
    (0..10).for_each(|_| pace.ended(20, 20));
    assert_eq!(pace.limit(), 400);
}

#[test]
fn a_far_peer_is_given_twice_as_many_after_each_round_trip_from_the_first_on() {
    let pace = wide_pace(1_000);
    let latency = Duration::from_millis(50);
    for trip in 1..=5 {
        let flight = pace.limit();
        pace.started(pace.room());
        for part in 0..10 {
            pace.ended(flight / 10, flight / 10);
            pace.observe(latency * trip + Duration::from_millis(part), flight / 10, latency, latency);
        }
        assert!(pace.limit() >= flight * 19 / 10, "{flight}, then {}", pace.limit());
    }
}

#[test]
fn a_silent_peer_is_given_as_many_again_every_ten_milliseconds_until_it_answers_or_fails() {
    for break_silence in [|pace: &Pace| pace.ended(1, 1), |pace: &Pace| pace.failed(1)] {
        let pace = wide_pace(1_000);
        assert!(pace.wait(ms(70)) && pace.limit() == 1_000, "nothing was sent yet");
        pace.started(1_000);
        let limits = [80, 95, 101].map(|now| pace.wait(ms(now)).then(|| pace.limit()));
        assert_eq!(limits, [1_000, 2_000, 3_000].map(Some));
        break_silence(&pace);
        assert!(!pace.wait(ms(200)) && (3_000..=3_001).contains(&pace.limit()), "{}", pace.limit());
    }
}

#[test]
fn after_slowing_down_the_limit_grows_by_a_sixteenth_for_a_window_of_answers() {
    let pace = pace(400);
    pace.slow_down();
    assert_eq!(pace.limit(), 200);
    answer_a_window(&pace);
    answer_a_window(&pace);
    assert!((212..=226).contains(&pace.limit()), "{}", pace.limit());
}

#[test]
fn a_small_limit_grows_by_no_less_than_eight_for_a_window_of_answers() {
    let pace = pace(8);
    pace.slow_down();
    answer_a_window(&pace);
    answer_a_window(&pace);
    assert!((12..=20).contains(&pace.limit()), "{}", pace.limit());
}

#[test]
fn windows_without_a_decrease_let_the_limit_double_again_up_to_where_it_failed_and_later_beyond() {
    let pace = wide_pace(1_000);
    pace.slow_down();
    // Answers that nobody needed room for: the limit stays, and so the windows are of 500.
    let calm = |windows| {
        (0..windows * 500).for_each(|_| {
            pace.started(1);
            pace.ended(1, 1);
        })
    };
    calm(16);
    assert_eq!(pace.limit(), 500);
    answer_a_window(&pace);
    answer_a_window(&pace);
    assert!((1_000..1_200).contains(&pace.limit()), "{}", pace.limit());
    calm(40);
    let before = pace.limit();
    answer_a_window(&pace);
    assert!(pace.limit() >= before * 19 / 10, "{before}, then {}", pace.limit());
}

#[test]
fn one_failure_in_five_does_not_slow_down_and_more_do() {
    let pace = pace(400);
    pace.started(400);
    for _ in 0..80 {
        pace.failed(1);
        pace.ended(1, 0);
    }
    assert_eq!(pace.limit(), 400);
    pace.failed(1);
    assert_eq!(pace.limit(), 200);
}

#[test]
fn failures_of_a_batch_are_a_share_of_that_batch() {
    let pace = pace(100);
    pace.failed_of(200, 1_000);
    assert_eq!(pace.limit(), 100);
    pace.failed_of(1, 1_000);
    assert_eq!(pace.limit(), 50);
}

#[test]
fn failures_are_counted_for_a_window_of_answers_only() {
    let pace = pace(400);
    for _ in 0..10 {
        pace.failed(3);
        for _ in 0..400 {
            pace.started(1);
            pace.ended(1, 1);
        }
    }
    assert_eq!(pace.limit(), 400);
}

#[test]
fn failures_of_a_flight_that_has_slowed_down_already_are_no_reason_to_do_so_again() {
    let pace = pace(400);
    pace.started(400);
    for _ in 0..400 {
        pace.failed(1);
        pace.ended(1, 0);
    }
    assert_eq!(pace.limit(), 200);
}

#[test]
fn requests_of_one_flight_halve_the_limit_once_even_when_the_last_of_them_has_ended() {
    let pace = pace(200);
    pace.started(200);
    for _ in 0..200 {
        pace.slow_down();
        pace.ended(1, 0);
    }
    pace.slow_down();
    assert_eq!(pace.limit(), 100);
    pace.started(200);
    pace.ended(200, 0);
    pace.slow_down();
    assert_eq!(pace.limit(), 50);
}

#[test]
fn late_requests_leave_room_for_others_while_twice_as_many_are_answered() {
    let pace = pace(100);
    pace.started(100);
    pace.ended(60, 60);
    assert_eq!((pace.excuse(40), pace.inflight()), (30, 10), "60 answers excuse 30");
    pace.started(pace.room());
    assert_eq!(pace.excuse(10), 0, "nothing was answered since");
}

#[test]
fn a_peer_that_falls_silent_gets_a_bounded_number_of_requests_beyond_the_limit() {
    let pace = wide_pace(1_000);
    for _ in 0..1_000 {
        pace.started(1_000);
        pace.ended(1_000, 1_000);
    }
    let excused: usize = (0..100)
        .map(|_| {
            pace.started(pace.room());
            pace.excuse(pace.inflight())
        })
        .sum();
    assert_eq!(excused, EXCUSES_MAX_ANSWERS / EXCUSE_ANSWERS);
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

/// Lets a peer that answers after `latency_ms`, at most `rate_max` a second, work with a full window.
fn work_for(pace: &Pace, millis: std::ops::Range<u64>, latency_ms: u64, rate_max: f64) {
    let mut answered = 0.0;
    for now in millis {
        pace.started(pace.room());
        answered += (pace.inflight() as f64 / latency_ms as f64).min(rate_max / 1_000.0);
        let whole = answered as usize;
        answered -= whole as f64;
        pace.ended(whole, whole);
        let took = Duration::from_millis(latency_ms);
        pace.observe(Duration::from_millis(now), whole, took, took);
    }
}

fn wide_pace(initial: usize) -> Pace {
    Pace::new(&Limits {
        initial_inflight_requests: initial,
        max_inflight_requests: 100_000,
        ..Limits::default()
    })
}

#[test]
fn latency_gets_about_twice_what_it_needs_within_a_few_round_trips() {
    let pace = wide_pace(1_000);
    work_for(&pace, 0..400, 50, 200_000.0);
    assert!((18_000..23_000).contains(&pace.limit()), "{}", pace.limit());
}

#[test]
fn a_peer_without_latency_does_not_raise_the_limit() {
    let pace = wide_pace(1_000);
    work_for(&pace, 0..2_000, 1, 200_000.0);
    assert!(pace.limit() <= 1_300, "{}", pace.limit());
}

#[test]
fn a_limit_above_what_rate_and_latency_need_comes_down() {
    let pace = wide_pace(1_000);
    work_for(&pace, 0..1_000, 100, 200_000.0);
    let high = pace.limit();
    work_for(&pace, 1_000..4_000, 100, 20_000.0);
    assert!(high > 30_000 && pace.limit() < 6_000, "{high}, then {}", pace.limit());
}
