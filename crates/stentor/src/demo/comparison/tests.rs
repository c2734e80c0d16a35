use super::{Comparison, Counted, Verdict, judge};
use crate::demo::fleet::{Fleet, Half, Member};
use crate::demo::questions::Fate;
use crate::ledger::{Ledger, Totals};
use stentor_emulators::Counts;

fn counts(accepted: u32, rejected: u32) -> Counts {
    Counts { attempts: accepted + rejected, accepted, rejected, validate_only: 0 }
}

fn fate(state: &str, ambiguous: bool) -> Fate {
    Fate { state: Some(state.to_owned()), ambiguous }
}

#[test]
fn each_pair_of_statements_has_its_verdict() {
    let cases = [
        (counts(1, 0), Some(fate("accepted", false)), Verdict::Agree),
        (counts(0, 1), Some(fate("rejected", false)), Verdict::Agree),
        (counts(0, 3), Some(fate("failed", false)), Verdict::Agree),
        (counts(0, 0), Some(fate("accepted", false)), Verdict::Lost),
        (counts(0, 0), Some(fate("rejected", false)), Verdict::Disagree),
        (counts(0, 0), None, Verdict::Lost),
        (counts(1, 0), Some(Fate::default()), Verdict::Lost),
        (counts(2, 0), Some(fate("accepted", true)), Verdict::Agree),
        (counts(2, 0), Some(fate("accepted", false)), Verdict::Unmarked),
        (counts(1, 0), Some(fate("rejected", false)), Verdict::Lost),
        (counts(1, 0), Some(fate("expired", true)), Verdict::Excused),
    ];
    for (counts, fate, verdict) in cases {
        assert_eq!(judge(counts, fate.as_ref()), verdict, "{counts:?} {fate:?}");
    }
}

#[test]
fn sums_that_differ_are_never_hidden() {
    let mut comparison = Comparison::default();
    let ledger =
        Ledger { audience: 10, totals: Totals { accepted: 9, ..Totals::default() }, ..Ledger::default() };
    comparison.settle_sums(Fleet::new(10, 1), &ledger, 7);
    assert_eq!((comparison.lost, comparison.disagreeing), (0, 2));
}

#[test]
fn a_device_that_is_not_in_the_audience_is_lost() {
    let mut comparison = Comparison::default();
    comparison.settle_sums(Fleet::new(10, 1), &Ledger { audience: 8, ..Ledger::default() }, 0);
    assert_eq!(comparison.lost, 2);
}

#[test]
fn strangers_and_dropped_counts_spoil_the_proof() {
    let mut comparison = Comparison::default();
    comparison.counted.insert(Half::Fcm, Counted { strangers: 1, overflow: 2, ..Counted::default() });
    comparison.settle_sums(Fleet::new(2, 1), &Ledger { audience: 2, ..Ledger::default() }, 0);
    assert_eq!(comparison.disagreeing, 3);
}

#[test]
fn a_loss_is_told_with_an_example_without_its_token() {
    let fleet = Fleet::new(10, 1);
    let member = Member { half: Half::Apns, number: 4 };
    let mut comparison = Comparison::default();
    comparison.judge(member, counts(0, 0), None);
    assert_eq!(comparison.lost, 1);
    assert!(
        comparison.examples[0].contains("apns device 4")
            && !comparison.examples[0].contains(&fleet.token(member))
    );
}
