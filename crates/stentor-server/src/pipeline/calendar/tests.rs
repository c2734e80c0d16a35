use stentor_core::name::TimeZoneName;

use std::time::Duration;

use stentor_core::chunk::TrafficClass;

use super::*;

fn recurrence(cron: &str, zone: &str) -> Recurrence {
    let time_zone = TimeZoneName::new(zone).expect("a name");
    Recurrence { cron: cron.into(), time_zone, until: None, catch_up: CatchUp::Once, exact: false }
}

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    Timestamp::from_millis(instant.as_millisecond())
}

fn check(cron: &str, zone: &str, after: &str, next: &[&str]) {
    let ticks = upcoming(&recurrence(cron, zone), at(after), next.len()).expect("reads");
    let wanted: Vec<_> = next.iter().map(|text| at(text)).collect();
    assert_eq!(ticks, wanted, "`{cron}` in {zone} after {after}");
}

#[test]
fn a_time_that_the_clock_leaves_out_fires_once_right_after_the_jump() {
    // Zurich jumps from 02:00 to 03:00 on 29 March 2026, at 01:00 UTC.
    check(
        "30 2 * * *",
        "Europe/Zurich",
        "2026-03-28T02:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    );
    check(
        "0,30 2,14 * * *",
        "Europe/Zurich",
        "2026-03-28T23:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-29T12:00:00Z"],
    );
    check(
        "0 2,3 * * *",
        "Europe/Zurich",
        "2026-03-28T23:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"],
    );
}

#[test]
fn the_hour_before_a_gap_is_an_hour_like_any_other() {
    check(
        "30 1 * * *",
        "Europe/Zurich",
        "2026-03-28T12:00:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T23:30:00Z"],
    );
}

#[test]
fn a_time_that_the_clock_shows_twice_fires_once() {
    // Zurich goes back from 03:00 to 02:00 on 25 October 2026, at 01:00 UTC.
    check(
        "30 2 * * *",
        "Europe/Zurich",
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    );
    check("15,45 2 * * *", "Europe/Zurich", "2026-10-25T01:20:00Z", &["2026-10-26T01:15:00Z"]);
}

#[test]
fn a_pattern_for_every_hour_follows_elapsed_time() {
    let quarter = ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"];
    check("*/30 * * * *", "Europe/Zurich", "2026-10-25T00:00:00Z", &quarter);
    let jump = ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"];
    check("*/30 * * * *", "Europe/Zurich", "2026-03-29T00:30:00Z", &jump);
}

#[test]
fn a_day_that_a_zone_left_out_fires_at_its_end() {
    // Samoa went from 29 to 31 December 2011.
    check("0 9 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", &["2011-12-30T10:00:00Z"]);
}

#[test]
fn the_leap_day_waits_for_leap_years() {
    check("0 0 29 2 *", "UTC", "2096-01-01T00:00:00Z", &["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"]);
}

#[test]
fn the_last_day_of_the_month_moves_with_the_month() {
    check("0 12 L * *", "UTC", "2028-01-31T12:00:00Z", &["2028-02-29T12:00:00Z", "2028-03-31T12:00:00Z"]);
}

#[test]
fn a_tick_on_the_hour_is_not_its_own_successor() {
    check("0 * * * *", "UTC", "2026-11-21T09:00:00Z", &["2026-11-21T10:00:00Z"]);
    check("0 9 * * *", "UTC", "2026-11-21T08:59:59.999Z", &["2026-11-21T09:00:00Z"]);
    check("0 9 * * *", "UTC", "2026-11-21T09:00:00Z", &["2026-11-22T09:00:00Z"]);
}

#[test]
fn nothing_fires_after_until_and_a_pattern_that_cannot_fire_has_no_tick() {
    let mut daily = recurrence("0 9 * * *", "UTC");
    daily.until = Some(at("2026-11-22T09:00:00Z"));
    assert_eq!(upcoming(&daily, at("2026-11-21T00:00:00Z"), 9).expect("reads").len(), 2);
    assert_eq!(next_tick(&recurrence("0 0 30 2 *", "UTC"), at("2026-01-01T00:00:00Z")), Ok(None));
    assert_eq!(next_tick(&daily, Timestamp::MAX), Ok(None));
}

#[test]
fn what_is_no_pattern_or_no_zone_is_refused_by_field() {
    let field = |cron: &str, zone: &str| {
        next_tick(&recurrence(cron, zone), Timestamp::default()).expect_err("refused").field
    };
    for cron in ["", "* * * *", "0 0 9 * * *", "61 * * * *", "0 25 * * *", "@daily", "a b c d e"] {
        assert_eq!(field(cron, "UTC"), "cron", "{cron}");
    }
    assert_eq!(field("0 9 * * *", "Europe/Atlantis"), "time_zone");
}

fn missed(catch_up: CatchUp) -> Due {
    let hourly = recurrence("0 * * * *", "UTC");
    let (due, now) = (at("2026-11-21T03:00:00Z"), at("2026-11-21T06:20:00Z"));
    ticks_to_fire(&hourly, due, now, catch_up).expect("reads")
}

#[test]
fn of_missed_ticks_the_latest_none_or_all_fire() {
    let next = Some(at("2026-11-21T07:00:00Z"));
    assert_eq!(missed(CatchUp::Once), Due { fire: vec![at("2026-11-21T06:00:00Z")], next });
    assert_eq!(missed(CatchUp::Skip), Due { fire: vec![], next });
    let all: Vec<_> = (3..=6).map(|hour| at(&format!("2026-11-21T0{hour}:00:00Z"))).collect();
    assert_eq!(missed(CatchUp::All), Due { fire: all, next });
}

#[test]
fn a_tick_on_time_fires_under_every_rule() {
    let daily = recurrence("0 9 * * *", "UTC");
    let tick = at("2026-11-21T09:00:00Z");
    for rule in [CatchUp::Once, CatchUp::Skip, CatchUp::All] {
        let due = ticks_to_fire(&daily, tick, at("2026-11-21T09:00:05Z"), rule).expect("reads");
        assert_eq!(due, Due { fire: vec![tick], next: Some(at("2026-11-22T09:00:00Z")) });
    }
    let early = ticks_to_fire(&daily, tick, at("2026-11-21T08:00:00Z"), CatchUp::All).expect("reads");
    assert_eq!(early, Due { fire: vec![], next: Some(tick) });
}

#[test]
fn years_of_missed_minutes_are_made_up_for_in_bounded_steps() {
    let minutely = recurrence("* * * * *", "UTC");
    let (due, now) = (at("2020-01-01T00:00:00Z"), at("2026-01-01T00:00:30Z"));
    let all = ticks_to_fire(&minutely, due, now, CatchUp::All).expect("reads");
    assert_eq!(all.fire.len(), CATCH_UP_MAX_TICKS);
    assert_eq!(all.next, Some(at("2020-01-01T01:40:00Z")));
    let once = ticks_to_fire(&minutely, due, now, CatchUp::Once).expect("reads");
    assert_eq!(once.fire, [at("2026-01-01T00:00:00Z")]);
}

#[test]
fn audiences_leave_the_full_minute_each_by_its_own_and_always_the_same_step() {
    let (nine, within) = (at("2026-11-21T09:00:00Z"), Duration::from_secs(30));
    let start = |seed| off_the_minute(nine, TrafficClass::Bulk, within, seed);
    let starts: std::collections::BTreeSet<_> = (0..1_000).map(start).collect();
    assert!(starts.iter().all(|start| *start > nine && *start <= nine.plus(within)));
    assert!(starts.len() > 900, "{} different starts of 1000", starts.len());
    assert_eq!(start(7), start(7));
}

#[test]
fn what_is_not_a_full_minute_or_not_an_audience_is_due_when_it_says() {
    let (nine, within) = (at("2026-11-21T09:00:00Z"), Duration::from_secs(30));
    let later = nine.plus(Duration::from_secs(1));
    assert_eq!(off_the_minute(nine, TrafficClass::Urgent, within, 7), nine);
    assert_eq!(off_the_minute(later, TrafficClass::Bulk, within, 7), later);
    assert_eq!(off_the_minute(nine, TrafficClass::Bulk, Duration::ZERO, 7), nine);
}
