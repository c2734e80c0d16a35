use super::{Plan, Victim};

const NEVER_S: f64 = 3600.0;

#[test]
fn all_kills_come_due_before_the_end() {
    let mut plan = Plan::new(20, 5, NEVER_S, 3);
    let victims: Vec<Victim> = (0..1000).filter_map(|done| plan.due(done, 1000)).collect();
    assert_eq!(victims.iter().filter(|victim| **victim == Victim::Server).count(), 20);
    assert_eq!(victims.len(), 25);
    assert!(!plan.is_pending());
}

#[test]
fn kills_are_spread_over_the_campaign() {
    let mut plan = Plan::new(9, 0, NEVER_S, 3);
    let due: Vec<u64> = (0..10_000).filter(|done| plan.due(*done, 10_000).is_some()).collect();
    let in_own_share = due.iter().enumerate().all(|(index, done)| {
        let share = index as u64 * 1000;
        (share..=share + 1000).contains(done)
    });
    assert!(due.len() == 9 && in_own_share, "{due:?}");
}

#[test]
fn a_campaign_that_does_not_move_is_killed_out_of_impatience() {
    let mut plan = Plan::new(1, 0, 0.0, 1);
    assert_eq!(plan.due(0, 1000), Some(Victim::Server));
}

#[test]
fn without_kills_nobody_is_due() {
    let mut plan = Plan::new(0, 0, 0.0, 1);
    assert!(!plan.is_pending() && plan.due(1000, 1000).is_none());
}
