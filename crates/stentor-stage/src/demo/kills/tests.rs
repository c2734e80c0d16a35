use super::{KillSchedule, KillTarget, Kills};
use crate::ledger::LedgerTotals;

const NEVER_S: f64 = 3600.0;

/// Totals with this number of ended deliveries, and ten leased ones.
fn at(accepted: u64) -> LedgerTotals {
    LedgerTotals { accepted, sending: 10, ..LedgerTotals::default() }
}

fn kills(server: u32, emulators: u32) -> Kills {
    Kills { server, emulators, ..Kills::default() }
}

#[test]
fn all_kills_come_due_well_before_the_end() {
    let mut plan = KillSchedule::new(kills(20, 5), NEVER_S, 3);
    let targets: Vec<KillTarget> = (0..900).filter_map(|done| plan.due(&at(done), 1000)).collect();
    assert_eq!(targets.iter().filter(|target| **target == KillTarget::Server).count(), 20);
    assert_eq!(targets.len(), 25);
    assert!(!plan.is_pending());
}

#[test]
fn kills_are_spread_over_the_campaign() {
    let mut plan = KillSchedule::new(kills(9, 0), NEVER_S, 3);
    let due: Vec<u64> = (0..10_000).filter(|done| plan.due(&at(*done), 10_000).is_some()).collect();
    let in_own_share = due.iter().enumerate().all(|(index, done)| {
        let share = (index as u64 + 1) * 900;
        (share - 360..=share + 361).contains(done)
    });
    assert!(due.len() == 9 && in_own_share, "{due:?}");
}

#[test]
fn a_campaign_that_does_not_move_any_more_is_killed_out_of_impatience() {
    let mut plan = KillSchedule::new(kills(1, 0), 0.0, 1);
    assert_eq!(plan.due(&at(1), 1000), Some(KillTarget::Server));
}

#[test]
fn nobody_is_killed_before_the_first_delivery_has_ended() {
    let mut plan = KillSchedule::new(kills(1, 0), 0.0, 1);
    assert!(plan.due(&at(0), 1000).is_none() && plan.is_pending());
}

#[test]
fn nobody_is_killed_while_nothing_is_leased() {
    let mut plan = KillSchedule::new(kills(1, 0), 0.0, 1);
    assert!(plan.due(&LedgerTotals { sending: 0, ..at(999) }, 1000).is_none() && plan.is_pending());
}

#[test]
fn without_kills_nobody_is_due() {
    let mut plan = KillSchedule::new(kills(0, 0), 0.0, 1);
    assert!(!plan.is_pending() && plan.due(&at(1000), 1000).is_none());
}

#[test]
fn stalls_are_planned_beside_kills() {
    let mut plan = KillSchedule::new(Kills { stalls: 4, ..kills(2, 1) }, NEVER_S, 3);
    let targets: Vec<KillTarget> = (0..1000).filter_map(|done| plan.due(&at(done), 1000)).collect();
    let count = |of| targets.iter().filter(|target| **target == of).count();
    assert_eq!([KillTarget::Server, KillTarget::Emulator, KillTarget::Stalled].map(count), [2, 1, 4]);
}
