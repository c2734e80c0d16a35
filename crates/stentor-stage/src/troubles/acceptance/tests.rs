use super::{AcceptanceCheck, off_by, second_of_day};
use serde_json::json;

#[test]
fn the_time_of_day_is_read_from_an_instant() {
    assert_eq!(second_of_day(&json!("2026-01-31T12:34:56.789Z")), Some(45_296));
    assert_eq!(second_of_day(&json!("soon")), None);
}

#[test]
fn midnight_makes_no_difference_of_a_day() {
    assert_eq!([off_by(86_399), off_by(-86_399), off_by(3_600), off_by(0)], [1, 1, 3_600, 0]);
}

#[test]
fn a_trouble_that_nobody_noticed_proves_nothing() {
    let silent = AcceptanceCheck { kept: vec!["m".to_owned()], ..AcceptanceCheck::default() };
    assert_eq!(silent.broken(true), ["nothing was refused, so the trouble was not noticed"]);
    assert_eq!(silent.broken(false), [""; 0]);
}

#[test]
fn a_message_kept_when_nothing_can_be_kept_or_lost_afterwards_breaks_the_proof() {
    let spoiled = AcceptanceCheck {
        lies: 1,
        missing: 2,
        strange: vec!["500: null".to_owned()],
        refused: [("unavailable".to_owned(), 1)].into(),
        ..AcceptanceCheck::default()
    };
    assert_eq!(spoiled.broken(true).len(), 3, "{:?}", spoiled.broken(true));
}
