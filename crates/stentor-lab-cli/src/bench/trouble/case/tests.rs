//! A cell's policy of the emulator and requirements on the server.

use super::*;

const CASE: TroubleCase = TroubleCase {
    service: StagedService::Fcm,
    share: 5.0,
    kind: BadAnswer::AskedToWait,
    persistence: Persistence::Once,
};

const GOOD: TroubleCell = TroubleCell {
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
    for kind in BadAnswer::ALL {
        for persistence in Persistence::ALL {
            let case = TroubleCase { share: 100.0, kind, persistence, ..CASE };
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
    assert!(!TroubleCell { rate: 759.0, ..GOOD }.holds());
    assert!(!TroubleCell { left: 1, ..GOOD }.holds());
    assert!(!TroubleCell { unsent: 1, ..GOOD }.holds());
    assert!(!TroubleCell { single_p99_ms: 111.0, ..GOOD }.holds());
}

#[test]
fn many_troubled_deliveries_are_judged_by_the_requests_that_arrived() {
    let case = TroubleCase { share: 50.0, persistence: Persistence::Always, ..CASE };
    let many = TroubleCell { case, troubled: 500, rate: 0.0, unsent: 9, requests: 5_096, ..GOOD };
    assert!(many.holds());
    assert!(!TroubleCell { requests: 5_097, ..many }.holds());
    let once = TroubleCase { persistence: Persistence::Once, ..case };
    assert!(TroubleCell { case: once, requests: 5_596, ..many }.holds());
}

#[test]
fn between_few_and_many_the_good_deliveries_get_through() {
    let some = TroubleCell { case: TroubleCase { share: 20.0, ..CASE }, rate: 1.0, requests: 99_999, ..GOOD };
    assert!(some.holds());
    assert!(!TroubleCell { left: 1, ..some }.holds());
}

#[test]
fn a_delivery_that_fails_twice_has_longer_than_one_that_fails_once() {
    let twice = TroubleCase { persistence: Persistence::Twice, ..CASE };
    assert!(twice.repeats_max() > CASE.repeats_max());
    assert!(TroubleCase { kind: BadAnswer::Throttled, ..CASE }.repeats_max() > THROTTLED);
}
