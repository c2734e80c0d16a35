use super::{Comparison, DeviceFinding, EmulatorCounts, judge, sample};
use crate::demo::histories::DeliveryHistory;
use crate::devices::{DevicePopulation, PopulationMember, StagedService, StagedServices};
use crate::ledger::{CampaignLedger, LedgerTotals};
use stentor_emulators::Counts;

fn counts(accepted: u32, rejected: u32) -> Counts {
    Counts { attempts: accepted + rejected, accepted, rejected, validate_only: 0 }
}

fn history(state: &str, ambiguous: bool) -> DeliveryHistory {
    DeliveryHistory { state: Some(state.to_owned()), ambiguous, unanswered: u32::from(ambiguous) }
}

#[test]
fn each_pair_of_statements_has_its_finding() {
    let (dead, alive) = (true, false);
    let cases = [
        (alive, counts(1, 0), Some(history("accepted", false)), DeviceFinding::Agree),
        (alive, counts(1, 2), Some(history("accepted", false)), DeviceFinding::Agree),
        (dead, counts(0, 1), Some(history("rejected", false)), DeviceFinding::Agree),
        (alive, counts(2, 0), Some(history("accepted", true)), DeviceFinding::Agree),
        (alive, counts(2, 0), Some(history("accepted", false)), DeviceFinding::Unmarked),
        (alive, counts(0, 0), Some(history("accepted", false)), DeviceFinding::Lost),
        (alive, counts(0, 0), None, DeviceFinding::Lost),
        (alive, counts(1, 0), Some(DeliveryHistory::default()), DeviceFinding::Lost),
    ];
    for (is_dead, counts, history, finding) in cases {
        assert_eq!(judge(is_dead, counts, history.as_ref()), finding, "{counts:?} {history:?}");
    }
}

#[test]
fn what_the_emulator_accepted_is_not_rejected_nor_the_other_way_round() {
    assert_eq!(judge(false, counts(1, 0), Some(&history("rejected", false))), DeviceFinding::Disagree);
    assert_eq!(judge(false, counts(1, 0), Some(&history("rejected", true))), DeviceFinding::Disagree);
    assert_eq!(judge(true, counts(0, 1), Some(&history("accepted", false))), DeviceFinding::Lost);
}

#[test]
fn a_living_token_is_not_rejected_because_of_trouble_that_passes() {
    assert_eq!(judge(false, counts(0, 1), Some(&history("rejected", false))), DeviceFinding::Disagree);
}

#[test]
fn a_token_that_was_never_tried_is_not_rejected() {
    assert_eq!(judge(true, counts(0, 0), Some(&history("rejected", false))), DeviceFinding::Disagree);
}

#[test]
fn an_end_that_nobody_asked_for_never_agrees() {
    for state in ["expired", "collapsed", "canceled", "failed"] {
        for (is_dead, counts) in [(true, counts(0, 1)), (false, counts(0, 3)), (false, counts(1, 0))] {
            assert_eq!(
                judge(is_dead, counts, Some(&history(state, true))),
                DeviceFinding::Disagree,
                "{state}"
            );
        }
    }
}

#[test]
fn only_an_unanswered_attempt_accounts_for_a_duplicate() {
    let mut comparison = Comparison::default();
    let member = PopulationMember { service: StagedService::Fcm, number: 0 };
    let crashed = DeliveryHistory { unanswered: 0, ..history("accepted", true) };
    comparison.judge(member, false, counts(2, 0), Some(&crashed));
    assert_eq!(comparison.unanswered_duplicates, 0);
    comparison.judge(member, false, counts(3, 0), Some(&history("accepted", true)));
    assert_eq!(comparison.unanswered_duplicates, 1);
}

#[test]
fn a_sample_is_drawn_from_each_push_service_and_all_of_a_small_fleet() {
    let sampled: Vec<PopulationMember> = sample(DevicePopulation::new(1_000_000, 1)).collect();
    let services =
        StagedService::USUAL.map(|service| sampled.iter().filter(|member| member.service == service).count());
    assert!(services.iter().all(|count| (400..=600).contains(count)), "{services:?}");
    assert_eq!(sample(DevicePopulation::new(500, 1)).count(), 500);
    let three = [StagedService::Fcm, StagedService::Apns, StagedService::Hms];
    let of_three = DevicePopulation::new(900_000, 1).through(StagedServices::new(&three).unwrap());
    let sampled: Vec<PopulationMember> = sample(of_three).collect();
    assert!(three.iter().all(|service| sampled.iter().any(|member| member.service == *service)));
}

#[test]
fn sums_that_differ_are_never_hidden() {
    let mut comparison = Comparison::default();
    let ledger = CampaignLedger {
        audience: 10,
        totals: LedgerTotals { accepted: 9, ..LedgerTotals::default() },
        ..CampaignLedger::default()
    };
    comparison.settle_sums(DevicePopulation::new(10, 1), &ledger, 7);
    assert_eq!((comparison.lost, comparison.disagreeing), (0, 2));
}

#[test]
fn a_device_that_is_not_in_the_audience_is_lost() {
    let mut comparison = Comparison::default();
    comparison.settle_sums(
        DevicePopulation::new(10, 1),
        &CampaignLedger { audience: 8, ..CampaignLedger::default() },
        0,
    );
    assert_eq!(comparison.lost, 2);
}

#[test]
fn strangers_and_dropped_counts_spoil_the_proof() {
    let mut comparison = Comparison::default();
    comparison.counted.insert(
        StagedService::Fcm,
        EmulatorCounts { strangers: 1, overflow: 2, ..EmulatorCounts::default() },
    );
    comparison.settle_sums(
        DevicePopulation::new(2, 1),
        &CampaignLedger { audience: 2, ..CampaignLedger::default() },
        0,
    );
    assert_eq!(comparison.disagreeing, 3);
}

#[test]
fn a_loss_is_told_with_an_example_without_its_token() {
    let population = DevicePopulation::new(10, 1);
    let member = PopulationMember { service: StagedService::Apns, number: 4 };
    let mut comparison = Comparison::default();
    comparison.judge(member, false, counts(0, 0), None);
    assert_eq!(comparison.lost, 1);
    assert!(
        comparison.examples[0].contains("apns device 4")
            && !comparison.examples[0].contains(&population.token(member))
    );
}
