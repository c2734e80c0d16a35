use super::ProofFacts;
use crate::ledger::LedgerTotals;

/// A campaign that went well, with one kill of each kind.
fn proven() -> ProofFacts {
    ProofFacts {
        devices: 10,
        audience: 10,
        totals: LedgerTotals { accepted: 8, rejected: 2, ..LedgerTotals::default() },
        state: "finished".to_owned(),
        balanced: true,
        duplicates: 3,
        unanswered_duplicates: 1,
        duplicate_bound: 2,
        max_unsettled: 100,
        attempts: 11,
        emulator_attempts: 13,
        kills: [1, 1],
        emulator_kills: [1, 1],
        ..ProofFacts::default()
    }
}

fn assert_breaks(spoil: impl FnOnce(&mut ProofFacts), sentence: &str) {
    let mut facts = proven();
    spoil(&mut facts);
    let broken = facts.broken();
    assert!(broken.iter().any(|line| line.contains(sentence)), "{sentence:?} is not in {broken:?}");
}

#[test]
fn a_campaign_that_went_well_is_proven() {
    assert_eq!(proven().broken(), Vec::<String>::new());
}

#[test]
fn an_end_that_nobody_asked_for_breaks_the_proof() {
    assert_breaks(|facts| facts.totals.expired = 1, "1 deliveries ended expired");
    assert_breaks(|facts| facts.totals.collapsed = 1, "1 deliveries ended collapsed");
    assert_breaks(|facts| facts.totals.canceled = 1, "1 deliveries ended canceled");
    assert_breaks(|facts| facts.totals.failed = 1, "1 deliveries ended failed");
}

#[test]
fn a_campaign_that_reached_nobody_proves_nothing() {
    assert_breaks(
        |facts| facts.totals = LedgerTotals { rejected: 10, ..LedgerTotals::default() },
        "nothing was accepted",
    );
}

#[test]
fn every_device_is_accepted_or_rejected() {
    assert_breaks(|facts| facts.totals.rejected = 1, "8 accepted and 1 rejected are not 10 devices");
}

#[test]
fn the_books_must_balance_and_be_closed() {
    assert_breaks(|facts| facts.balanced = false, "do not balance");
    assert_breaks(|facts| facts.state = "stopped".to_owned(), "the campaign is stopped");
    assert_breaks(|facts| facts.audience = 9, "the audience is 9");
    assert_breaks(|facts| facts.stuck = 1, "1 deliveries are stuck");
}

#[test]
fn a_token_about_which_both_differ_breaks_the_proof() {
    assert_breaks(|facts| facts.lost = 1, "1 devices are lost");
    assert_breaks(|facts| facts.disagreeing = 1, "1 contradictions");
    assert_breaks(|facts| facts.unmarked_duplicates = 1, "1 devices with duplicates are not marked");
}

#[test]
fn duplicates_beyond_the_bound_break_the_proof() {
    assert_breaks(|facts| facts.duplicates = 4, "4 duplicates, the bound is 3");
}

#[test]
fn what_was_never_answered_excuses_duplicates_only_when_emulators_were_killed() {
    assert_breaks(|facts| facts.emulator_kills = [0, 0], "3 duplicates, the bound is 2");
}

#[test]
fn the_bound_itself_is_bounded_by_the_kills() {
    assert_breaks(
        |facts| facts.duplicate_bound = 101,
        "the ledger's bound is 101, but the number of kills allows 100",
    );
    assert_breaks(|facts| facts.kills = [0, 0], "the ledger's bound is 2, but the number of kills allows 0");
}

#[test]
fn kills_that_did_not_happen_break_the_proof() {
    assert_breaks(|facts| facts.kills = [2, 1], "before all kills");
    assert_breaks(|facts| facts.emulator_kills = [2, 1], "before all kills");
}

#[test]
fn attempts_agree_when_nothing_was_killed() {
    assert_breaks(
        |facts| (facts.kills, facts.emulator_kills) = ([0, 0], [0, 0]),
        "11 attempts in the ledger",
    );
}

#[test]
fn attempts_that_a_push_service_refused_for_their_date_are_not_among_its_own() {
    let calm = ProofFacts { kills: [0, 0], emulator_kills: [0, 0], ..proven() };
    let calm = ProofFacts { duplicates: 0, unanswered_duplicates: 0, duplicate_bound: 0, ..calm };
    assert_eq!(calm.broken().len(), 1, "13 attempts at the emulators are not the ledger's 11");
    let dated = ProofFacts { has_wrong_dates: true, troubles: [2, 2], ..calm };
    assert_eq!(dated.broken(), [""; 0]);
}

#[test]
fn a_trouble_that_did_not_come_or_was_answered_wrongly_breaks_the_proof() {
    assert_breaks(|facts| facts.troubles = [2, 1], "before all kills had happened");
    assert_breaks(|facts| facts.acceptance = vec!["1 messages are lies".to_owned()], "1 messages are lies");
}
