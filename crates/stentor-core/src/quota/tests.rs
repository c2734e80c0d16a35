use proptest::prelude::*;

use super::*;

const WINDOW_MS: i64 = 60_000;
const CHUNK_MAX: u64 = 1_000;
/// Most requests until one is granted; a warming bucket grows, so that a few more refills are needed.
const ASKED_MAX: usize = 20;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn quota(per_minute: u32, ramp_ms: u64) -> Quota {
    Quota { per_minute, ramp: Duration::from_millis(ramp_ms), urgent_share_percent: 20 }
}

/// The documented burst: a second's worth, or a chunk of each class if that is more; at least two messages.
fn stated_burst(per_minute: u32) -> u64 {
    let second = u64::from(per_minute) / 60 + 1;
    second.max(2) + 2 * CHUNK_MAX
}

/// A request and its later correction.
#[derive(Debug, Clone)]
struct Ask {
    after_ms: i64,
    class: TrafficClass,
    count: u64,
    used: u64,
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let class = prop_oneof![Just(TrafficClass::Urgent), Just(TrafficClass::Bulk)];
    (0..3_000_i64, class, 1..=CHUNK_MAX, 0..=CHUNK_MAX).prop_map(|(after_ms, class, count, used)| Ask {
        after_ms,
        class,
        count,
        used: used.min(count),
    })
}

/// Replays the requests over a clock given by a function; returns the true times and sizes of the granted ones.
fn play(bucket: &mut Bucket, asks: &[Ask], mut clock: impl FnMut(usize, i64) -> i64) -> Vec<(i64, u64)> {
    let (mut truth, mut granted) = (0, Vec::new());
    for (index, ask) in asks.iter().enumerate() {
        truth += ask.after_ms;
        if bucket.take(ask.class, ask.count, at(clock(index, truth))).is_ok() {
            bucket.correct(ask.class, ask.count, ask.used);
            granted.push((truth, ask.used));
        }
    }
    granted
}

fn most_in_a_window(granted: &[(i64, u64)]) -> u64 {
    let from = |start: i64| {
        let inside = granted.iter().filter(|(when, _)| (start..start + WINDOW_MS).contains(when));
        inside.map(|(_, count)| count).sum::<u64>()
    };
    granted.iter().map(|(start, _)| from(*start)).max().unwrap_or_default()
}

#[test]
fn several_who_draw_from_one_bucket_get_all_of_its_quota_and_no_more() {
    let quota = Quota { per_minute: 6_000, ramp: Duration::ZERO, urgent_share_percent: 20 };
    let at = Timestamp::from_millis;
    let (mut level, mut drawn) = (Bucket::new(quota, at(0)).level(), 0);
    for tick in 1..=240 {
        // Two nodes, each once a second, out of step.
        let now = at(tick * 500 + tick % 3);
        let mut bucket = Bucket::resume(quota, level, now);
        drawn += bucket.draw(TrafficClass::Bulk, (10, 100), now);
        level = bucket.level();
    }
    assert!((11_000..=12_100).contains(&drawn), "{drawn} in two minutes");
}

#[test]
fn who_needs_more_than_a_full_bucket_holds_gets_it_and_the_debt_is_paid_off() {
    let quota = Quota { per_minute: 60, ramp: Duration::ZERO, urgent_share_percent: 20 };
    let at = Timestamp::from_millis;
    let mut bucket = Bucket::new(quota, at(0));
    assert_eq!(bucket.draw(TrafficClass::Bulk, (50, 50), at(0)), 50);
    assert_eq!(bucket.draw(TrafficClass::Bulk, (50, 50), at(30_000)), 0);
    assert_eq!(bucket.draw(TrafficClass::Bulk, (50, 50), at(60_000)), 50);
}

/// A draw of a node, and the time until it spends the tokens.
#[derive(Debug, Clone)]
struct Draw {
    after_ms: i64,
    class: TrafficClass,
    /// The smallest useful number, in percent of the largest.
    least: u64,
    kept_ms: i64,
}

fn any_draw() -> impl Strategy<Value = Draw> {
    let class = prop_oneof![Just(TrafficClass::Urgent), Just(TrafficClass::Bulk)];
    let draw = |(after_ms, class, least, kept_ms)| Draw { after_ms, class, least, kept_ms };
    (0..2_000_i64, class, 1..=100_u64, 0..=2_000_i64).prop_map(draw)
}

proptest! {
    #[test]
    fn no_minute_holds_more_than_a_quota_that_nodes_share_however_many_there_are(
        per_minute in 600..2_000_000_u32,
        draws in prop::collection::vec(any_draw(), 1..400),
    ) {
        let quota = quota(per_minute, 0);
        let (mut bucket, mut now, mut spent) = (Bucket::new(quota.shared(), at(0)), 0, Vec::new());
        for draw in &draws {
            now += draw.after_ms;
            let second = u64::from(per_minute).div_ceil(60);
            let most = if draw.class == TrafficClass::Urgent { second / 5 } else { second };
            let least = (most * draw.least / 100).max(1);
            spent.push((now + draw.kept_ms, bucket.draw(draw.class, (least, most), at(now))));
        }
        let most = most_in_a_window(&spent);
        prop_assert!(most <= u64::from(per_minute), "{most}");
    }

    #[test]
    fn no_minute_holds_more_than_the_quota_and_the_stated_burst(
        per_minute in 1..2_000_000_u32,
        ramp_ms in 0..120_000_u64,
        asks in prop::collection::vec(any_ask(), 1..300),
    ) {
        let mut bucket = Bucket::new(quota(per_minute, ramp_ms), at(0));
        let most = most_in_a_window(&play(&mut bucket, &asks, |_, truth| truth));
        prop_assert!(most <= u64::from(per_minute) + stated_burst(per_minute), "{most}");
    }

    #[test]
    fn a_bucket_that_is_gone_on_with_after_every_request_grants_what_one_without_a_break_grants(
        per_minute in 1..2_000_000_u32,
        ramp_ms in 0..120_000_u64,
        asks in prop::collection::vec(any_ask(), 1..100),
    ) {
        let quota = quota(per_minute, ramp_ms);
        let (mut whole, mut broken) = (Bucket::new(quota, at(0)), Bucket::new(quota, at(0)));
        let mut now = 0;
        for ask in &asks {
            now += ask.after_ms;
            broken = Bucket::resume(quota, broken.level(), at(now));
            let replies = [&mut whole, &mut broken].map(|bucket| play(bucket, std::slice::from_ref(ask), |_, _| now));
            prop_assert_eq!(&replies[0], &replies[1]);
            prop_assert_eq!(whole.level(), broken.level());
        }
    }

    #[test]
    fn a_jump_of_the_clock_is_worth_one_burst_at_most(
        per_minute in 1..200_000_u32,
        asks in prop::collection::vec(any_ask(), 1..100),
        jump_at in 0..100_usize,
        jump_ms in -100_000_000..100_000_000_i64,
    ) {
        let mut bucket = Bucket::new(quota(per_minute, 0), at(0));
        let jumping = |index, truth| if index < jump_at { truth } else { truth + jump_ms };
        let most = most_in_a_window(&play(&mut bucket, &asks, jumping));
        prop_assert!(most <= u64::from(per_minute) + 2 * stated_burst(per_minute), "{most}");
    }

    #[test]
    fn a_refusal_names_the_very_millisecond_from_which_it_is_granted(
        per_minute in 1..2_000_000_u32,
        asks in prop::collection::vec(any_ask(), 1..50),
        last in any_ask(),
    ) {
        let mut bucket = Bucket::new(quota(per_minute, 0), at(0));
        play(&mut bucket, &asks, |_, truth| truth);
        let now = bucket.at;
        if let Err(until) = bucket.clone().take(last.class, last.count, now) {
            prop_assert!(until > now);
            let just_before = at(until.as_millis() - 1);
            prop_assert!(bucket.clone().take(last.class, last.count, just_before).is_err());
            prop_assert_eq!(bucket.take(last.class, last.count, until), Ok(()));
        }
    }

    #[test]
    fn who_asks_again_when_told_to_asks_few_times_even_while_the_bucket_warms_up(
        per_minute in 1..2_000_000_u32,
        ramp_ms in 1..120_000_u64,
        asks in prop::collection::vec(any_ask(), 1..50),
        last in any_ask(),
    ) {
        let mut bucket = Bucket::new(quota(per_minute, ramp_ms), at(0));
        play(&mut bucket, &asks, |_, truth| truth);
        let mut now = bucket.at;
        let mut queries = 1;
        while let Err(until) = bucket.take(last.class, last.count, now) {
            prop_assert!(until > now);
            (now, queries) = (until, queries + 1);
        }
        prop_assert!(queries <= ASKED_MAX, "{queries}");
    }

    #[test]
    fn what_is_given_back_leaves_no_trace(per_minute in 1..2_000_000_u32, ask in any_ask()) {
        let mut bucket = Bucket::new(quota(per_minute, 0), at(0));
        let before = (bucket.urgent, bucket.common);
        if bucket.take(ask.class, ask.count, at(0)).is_ok() {
            bucket.correct(ask.class, ask.count, 0);
        }
        prop_assert_eq!((bucket.urgent, bucket.common), before);
    }
}

/// Takes chunks of audiences as soon as they are granted; returns the number of messages of each second.
fn greedy(bucket: &mut Bucket, from_ms: i64, seconds: usize) -> Vec<u64> {
    let mut sums = vec![0; seconds];
    let (mut now, end) = (at(from_ms), at(from_ms + seconds as i64 * 1_000));
    while now < end {
        match bucket.take(TrafficClass::Bulk, CHUNK_MAX, now) {
            Ok(()) => sums[((now.as_millis() - from_ms) / 1_000) as usize] += CHUNK_MAX,
            Err(until) => now = until,
        }
    }
    sums
}

#[test]
fn a_cold_credential_starts_at_a_tenth_and_reaches_its_quota_after_the_ramp() {
    let mut bucket = Bucket::new(quota(600_000, 60_000), at(0));
    let sums = greedy(&mut bucket, 0, 180);
    let of = |seconds: std::ops::Range<usize>| sums[seconds].iter().sum::<u64>();
    assert!((5_000..=20_000).contains(&of(0..10)), "{}", of(0..10));
    assert!((45_000..=60_000).contains(&of(25..35)), "{}", of(25..35));
    assert!(of(0..60) <= 340_000, "{}", of(0..60));
    assert!((590_000..=610_000).contains(&of(70..130)), "{}", of(70..130));
}

#[test]
fn a_credential_that_was_idle_is_cold_again() {
    let mut bucket = Bucket::new(quota(600_000, 60_000), at(0));
    greedy(&mut bucket, 0, 120);
    assert_eq!(bucket.per_minute_now(at(120_000)), 600_000);
    assert_eq!(bucket.per_minute_now(at(190_000)), 60_000);
}

#[test]
fn a_greedy_audience_gets_all_of_a_warm_quota() {
    for per_minute in [600, 6_000, 120_000, 600_000] {
        let mut bucket = Bucket::new(quota(per_minute, 0), at(0));
        let sent: u64 = greedy(&mut bucket, 0, 600).iter().sum();
        let due = u64::from(per_minute) * 10;
        assert!(sent >= due - CHUNK_MAX && sent <= due + stated_burst(per_minute), "{per_minute}: {sent}");
    }
}

#[test]
fn a_single_message_passes_though_an_audience_took_all_it_could() {
    for per_minute in [60, 600, 600_000] {
        let mut bucket = Bucket::new(quota(per_minute, 0), at(0));
        while bucket.take(TrafficClass::Bulk, CHUNK_MAX, at(0)).is_ok() {}
        assert_eq!(bucket.take(TrafficClass::Urgent, 1, at(0)), Ok(()), "{per_minute}");
    }
}

#[test]
fn single_messages_are_bounded_by_the_same_quota() {
    let mut bucket = Bucket::new(quota(600, 0), at(0));
    let granted =
        (0..600_i64).filter(|step| bucket.take(TrafficClass::Urgent, 1, at(step * 100)).is_ok()).count();
    let more = (0..600).filter(|_| bucket.take(TrafficClass::Urgent, 1, at(60_000)).is_ok()).count();
    assert!(granted <= 600 + 10 && more <= 10, "{granted}, then {more}");
}

#[test]
fn a_debt_outlives_the_process_that_made_it() {
    let slow = quota(60, 0);
    let mut bucket = Bucket::new(slow, at(0));
    assert_eq!(bucket.take(TrafficClass::Bulk, 100, at(0)), Ok(()));
    let until = bucket.take(TrafficClass::Bulk, 100, at(0)).expect_err("it owes a minute and a half");
    let mut resumed = Bucket::resume(slow, bucket.level(), at(1));
    assert_eq!(resumed.take(TrafficClass::Bulk, 100, at(1)), Err(until));
    assert_eq!(
        Bucket::new(slow, at(1)).take(TrafficClass::Bulk, 100, at(1)),
        Ok(()),
        "begun anew it would be forgotten"
    );
}

#[test]
fn a_level_from_the_future_is_worth_nothing_more() {
    let mut bucket = Bucket::new(quota(600, 0), at(1_000_000));
    while bucket.take(TrafficClass::Urgent, 1, at(1_000_000)).is_ok() {}
    let mut resumed = Bucket::resume(quota(600, 0), bucket.level(), at(0));
    assert!(resumed.take(TrafficClass::Urgent, 1, at(0)).is_err());
    assert_eq!(resumed.take(TrafficClass::Urgent, 1, at(100)), Ok(()));
}

#[test]
fn another_quota_is_obeyed_at_once() {
    let mut bucket = Bucket::new(quota(600_000, 0), at(0));
    bucket.set_quota(quota(600, 0), at(0));
    assert_eq!(bucket.tokens(TrafficClass::Urgent, at(0)), 10);
    assert_eq!(bucket.quota().per_minute, 600);
}
