use std::net::IpAddr;

use stentor_core::id::DeviceId;

use super::*;
use crate::owner::SourceNetwork;

fn app(number: u64) -> Owner {
    Owner::App(AppId::from_raw(number))
}

fn device(app: u64, number: u64) -> Owner {
    Owner::Device(AppId::from_raw(app), DeviceId::from_raw(number))
}

fn address(last: u8) -> Owner {
    Owner::Address(SourceNetwork::from(IpAddr::from([192, 0, 2, last])))
}

/// Takes as much as there is, one by one.
fn fill(shares: &Arc<Shares>, owner: Owner) -> SharePart {
    let mut part = shares.part(owner);
    while part.grow(1).is_ok() {}
    part
}

#[test]
fn however_many_apps_take_what_they_can_the_next_finds_something() {
    let shares = Shares::new(4_096, 50, 1);
    let greedy: Vec<SharePart> = (1..=10).map(|number| fill(&shares, app(number))).collect();
    assert_eq!((greedy[0].amount, greedy[1].amount), (2_048, 1_024));
    assert!(shares.take(app(11), 1).is_ok());
    assert_eq!(shares.take(app(1), 1).expect_err("has its share"), ShareExhausted::App);
}

#[test]
fn whoever_has_no_name_takes_nothing_of_what_apps_share_and_is_never_told_that_all_is_taken() {
    let shares = Shares::new(4_096, 50, 1);
    let nameless: Vec<SharePart> = (1..=200).map(|last| fill(&shares, address(last))).collect();
    assert_eq!((nameless[0].amount, nameless[3].amount, nameless[4].amount), (64, 64, 0));
    assert_eq!(shares.take(address(1), 1).expect_err("has its part"), ShareExhausted::Address);
    assert_eq!(shares.take(address(9), 1).expect_err("nothing is left"), ShareExhausted::Nameless);
    assert_eq!(fill(&shares, app(1)).amount, 2_048, "apps have what they would have had");
    let _all = shares.take(Owner::Operator, 4_096).expect("everything");
    assert_eq!(shares.take(app(2), 1).expect_err("nothing is left"), ShareExhausted::All);
    drop(nameless);
    assert_eq!(fill(&shares, address(1)).amount, 64, "nor do apps take what is for the nameless");
}

#[test]
fn a_device_has_a_part_of_its_apps_share_and_all_of_them_leave_the_app_a_half() {
    let shares = Shares::new(4_096, 50, 1);
    let devices: Vec<SharePart> = (1..=20).map(|number| fill(&shares, device(1, number))).collect();
    assert_eq!((devices[0].amount, devices[7].amount, devices[8].amount), (128, 128, 0));
    assert_eq!(shares.take(device(1, 1), 1).expect_err("has its part"), ShareExhausted::Part);
    assert_eq!(fill(&shares, app(1)).amount, 1_024);
    drop(devices);
    assert_eq!(shares.taken(), 0);
    let taken = shares.lock();
    assert!(taken.by_app.is_empty() && taken.by_owner.is_empty(), "owners that have nothing are forgotten");
}

#[test]
fn what_is_given_back_can_be_taken_again() {
    let shares = Shares::new(4, 50, 1);
    let (first, second) = (fill(&shares, app(1)), fill(&shares, app(2)));
    assert_eq!((first.amount, second.amount, shares.taken()), (2, 1, 3));
    drop((first, second));
    assert_eq!(fill(&shares, app(2)).amount, 2);
    assert_eq!(shares.taken(), 0);
}

#[test]
fn the_floor_is_for_everybody_as_long_as_there_is_something() {
    let shares = Shares::new(2, 10, 1);
    let parts = [1, 2].map(|number| shares.take(app(number), 1));
    assert!(parts.iter().all(Result::is_ok));
    assert_eq!(shares.take(app(3), 1).expect_err("nothing is left"), ShareExhausted::All);
    assert_eq!(Shares::new(1, 50, 1).take(app(1), 1).expect("the only one").amount, 1);
}

#[test]
fn the_operator_may_take_everything() {
    let shares = Shares::new(10, 50, 1);
    assert_eq!(fill(&shares, Owner::Operator).amount, 10);
}

#[test]
fn what_does_not_fit_takes_nothing() {
    let shares = Shares::new(10, 50, 1);
    let mut part = shares.take(app(1), 3).expect("fits");
    assert_eq!(part.grow(3), Err(ShareExhausted::App));
    assert_eq!((part.amount, shares.taken()), (3, 3));
}

#[test]
fn what_is_there_already_is_counted_and_the_next_is_refused_for_it() {
    let shares = Shares::new(10, 50, 1);
    let mut part = shares.take(app(1), 3).expect("fits");
    part.count(9);
    assert_eq!((part.amount, shares.taken()), (9, 9));
    assert!(shares.take(app(1), 1).is_err());
    part.count(1);
    assert_eq!(shares.take(app(1), 3).expect("fits again").amount, 3);
}

#[test]
fn what_was_taken_without_a_name_passes_to_whoever_is_found_to_have_asked() {
    let shares = Shares::new(100, 50, 1);
    let mut part = shares.take(address(1), 1).expect("fits");
    part.pass_to(app(1)).expect("fits");
    let taken = shares.lock();
    assert_eq!((taken.nameless, taken.all), (0, 1));
}

#[tokio::test]
async fn who_waits_is_woken_by_what_is_given_back() {
    let shares = Shares::new(10, 50, 1);
    let held = shares.take(app(1), 5).expect("fits");
    let waiting = shares.taken_when_there(app(1), 2);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    drop(held);
    assert_eq!(waiting.await.amount(), 2);
}
