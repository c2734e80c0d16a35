use super::*;

fn app(number: u64) -> Option<AppId> {
    Some(AppId::from_raw(number))
}

/// Takes as much as there is, one by one.
fn fill(shares: &Arc<Shares>, app: Option<AppId>) -> SharePart {
    let mut part = shares.part(app);
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
fn what_is_given_back_can_be_taken_again() {
    let shares = Shares::new(4, 50, 1);
    let (first, second) = (fill(&shares, app(1)), fill(&shares, app(2)));
    assert_eq!((first.amount, second.amount, shares.taken()), (2, 1, 3));
    drop((first, second));
    assert_eq!(fill(&shares, app(2)).amount, 2);
    assert_eq!(shares.taken(), 0);
    assert!(shares.lock().by_app.is_empty(), "apps that have nothing are forgotten");
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
    assert_eq!(fill(&shares, None).amount, 10);
}

#[test]
fn what_does_not_fit_takes_nothing() {
    let shares = Shares::new(10, 50, 1);
    let mut part = shares.take(app(1), 3).expect("fits");
    assert_eq!(part.grow(3), Err(ShareExhausted::App));
    assert_eq!((part.amount, shares.taken()), (3, 3));
}
