//! What a cell asks of the emulator and of the server.

use super::*;

const CASE: Case = Case { share: 5.0, kind: Kind::AskedToWait, persistence: Persistence::Once };

const GOOD: Measured = Measured {
    case: CASE,
    devices: 1_000,
    troubled: 50,
    left: 0,
    pending: 50,
    parked: false,
    rate: 760.0,
    clean_rate: 1_000.0,
    unsent: 0,
    single_idle_p99_ms: 10.0,
    single_p99_ms: 110.0,
    requests: 1_050,
};

#[test]
fn every_policy_is_one_that_the_emulator_reads_and_leaves_single_messages_alone() {
    for kind in Kind::ALL {
        for persistence in Persistence::ALL {
            let case = Case { share: 100.0, kind, persistence };
            let meets = case.meets().unwrap();
            assert!(meets("device") && !meets("single-1"), "{case:?}");
        }
    }
}

#[test]
fn a_share_in_percent_is_that_share_of_the_tokens() {
    let meets = CASE.meets().unwrap();
    let met = (0..20_000).filter(|number| meets(&format!("device-{number}"))).count();
    assert!((850..1_150).contains(&met), "{met}");
}

#[test]
fn few_troubled_deliveries_are_judged_by_the_others() {
    assert!(GOOD.holds());
    assert!(!Measured { rate: 759.0, ..GOOD }.holds());
    assert!(!Measured { left: 1, ..GOOD }.holds());
    assert!(!Measured { unsent: 1, ..GOOD }.holds());
    assert!(!Measured { single_p99_ms: 111.0, ..GOOD }.holds());
}

#[test]
fn many_troubled_deliveries_are_judged_by_the_requests_that_arrived() {
    let case = Case { share: 50.0, persistence: Persistence::Always, ..CASE };
    let many = Measured { case, troubled: 500, rate: 0.0, unsent: 9, requests: 5_096, ..GOOD };
    assert!(many.holds());
    assert!(!Measured { requests: 5_097, ..many }.holds());
    let once = Case { persistence: Persistence::Once, ..case };
    assert!(Measured { case: once, requests: 5_596, ..many }.holds());
}

#[test]
fn between_few_and_many_the_good_deliveries_get_through() {
    let some = Measured { case: Case { share: 20.0, ..CASE }, rate: 1.0, requests: 99_999, ..GOOD };
    assert!(some.holds());
    assert!(!Measured { left: 1, ..some }.holds());
}

#[test]
fn a_delivery_that_fails_twice_has_longer_than_one_that_fails_once() {
    let twice = Case { persistence: Persistence::Twice, ..CASE };
    assert!(twice.repeats_max() > CASE.repeats_max());
    assert!(Case { kind: Kind::Throttled, ..CASE }.repeats_max() > THROTTLED);
}
