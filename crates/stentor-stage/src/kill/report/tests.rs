use super::{KillReport, PhaseReport};
use serde_json::json;

fn of(object: serde_json::Value) -> PhaseReport {
    PhaseReport { phase: "kills", object, ended: Err(String::new()) }
}

fn phase(ok: bool, lost: u64) -> PhaseReport {
    of(json!({"ok": ok, "lost": lost, "ledger_balanced": ok}))
}

#[test]
fn nothing_that_was_only_skipped_is_proven() {
    let mut report = KillReport::default();
    report.skip("disk-full", "no root".to_owned());
    assert!(!report.holds());
    let object = report.object(1);
    assert_eq!((&object["ok"], &object["skipped"][0]["reason"]), (&json!(false), &json!("no root")));
    for field in
        ["ledger_balanced", "lost", "stuck", "duplicates", "duplicate_bound", "duplicates_per_kill", "kills"]
    {
        assert_eq!(object[field], json!(null), "{field}");
    }
}

#[test]
fn one_broken_phase_breaks_the_whole_and_its_losses_are_summed() {
    let report = KillReport { phases: vec![phase(true, 0), phase(false, 2)], skipped: Vec::new() };
    let object = report.object(1);
    assert_eq!(
        (report.holds(), &object["lost"], &object["ledger_balanced"]),
        (false, &json!(2), &json!(false))
    );
    assert!(KillReport { phases: vec![phase(true, 0)], skipped: Vec::new() }.holds());
}

#[test]
fn a_phase_that_breaks_off_does_not_hold() {
    let mut report = KillReport::default();
    report.note("kills", Err(anyhow::anyhow!("the server ended by itself")));
    let object = report.object(1);
    assert!(!report.holds() && object["ledger_balanced"] == json!(false), "{object}");
    assert!(object["phases"][0]["broken"][0].as_str().unwrap().contains("ended by itself"));
}

#[test]
fn the_bound_of_duplicates_counts_what_killed_emulators_never_answered() {
    let object = json!({"ok": true, "duplicates": 8, "duplicate_bound": 5, "unanswered_duplicates": 4,
        "kills": 3, "emulator_kills": 1});
    let undisturbed = json!({"ok": true, "duplicates": 1, "duplicate_bound": 1, "unanswered_duplicates": 1});
    let phases = [object, undisturbed].map(of).into();
    let report = KillReport { phases, skipped: Vec::new() };
    let object = report.object(1);
    assert_eq!(object["duplicates_per_kill"], json!(2.667), "of the phase in which somebody was killed");
    let figures =
        ["duplicates", "duplicate_bound", "ledger_duplicate_bound"].map(|field| object[field].as_u64());
    assert_eq!(figures, [Some(9), Some(10), Some(6)]);
    assert_eq!(
        (report.sum("duplicates"), report.duplicate_bound(), report.ledger_duplicate_bound()),
        (9, 10, 6)
    );
}
