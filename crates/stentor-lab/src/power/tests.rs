use super::*;
use crate::claims::figures::Figures;
use crate::claims::{ClaimVerdict, judge_measured};
use crate::statistics::{RoundPair, Samples};

/// A cell of the chosen method that nothing speaks against.
fn quiet_cell() -> PowerCell {
    PowerCell {
        method: CHOSEN,
        claims: 13,
        round_sd: 0.0,
        forks: 6,
        true_ratio: 1.3,
        studies: 2000,
        decided: 1.0,
        wrong: 0.0,
    }
}

/// Judges a claim that the first side is below the second, by a file of figures with the intervals of both sides.
fn verdict_of_the_judge(rounds: &[RoundPair], confidence: f64) -> Option<bool> {
    let row = |place: usize| {
        let side: Samples = rounds.iter().map(|round| round[place]).collect();
        let found = side.estimate(confidence).expect("positive");
        let [low, high] = [found.low, found.high].map(|end| end.expect("several forks"));
        format!("invented,stentor,,side {place},,time,mean,{},ms,measured,,{low},{high}\n", found.mean)
    };
    let header = "paper,source,experiment,subject,factors,metric,stat,value,unit,kind,note,low,high\n";
    let figures = Figures::parse(&format!("{header}{}{}", row(0), row(1))).expect("figures");
    let judgment = judge_measured("time[subject=side 0] < time[subject=side 1]", &figures).expect("a check");
    match judgment.verdict {
        ClaimVerdict::Holds => Some(true),
        ClaimVerdict::DoesNotHold => Some(false),
        _ => None,
    }
}

#[test]
fn the_chosen_method_keeps_its_level_and_its_power_in_simulated_studies() {
    let findings = simulate(400, 1, |_| {});
    assert!(findings.ok, "{:#?}", findings.objections);
    assert_eq!(findings.cells.len(), kinds().len() * CLAIMS.len() * VerdictMethod::ALL.len());
}

#[test]
fn a_seed_decides_the_studies() {
    let kind = SimulatedStudy { forks: 4, true_ratio: 1.1, round_sd: 0.05 };
    assert_eq!(cells_of(kind, 50, 3), cells_of(kind, 50, 3));
    assert_ne!(kind.draw(&mut study::chance(3)), kind.draw(&mut study::chance(4)));
}

#[test]
fn the_simulated_method_for_files_of_figures_gives_the_verdicts_of_the_judge() {
    let mut chance = study::chance(5);
    let prepared = PreparedMethod::new(VerdictMethod::Intervals, 0.05, 4);
    let mut seen = Vec::new();
    for true_ratio in [0.8, 1.0, 1.1, 1.3] {
        let kind = SimulatedStudy { forks: 4, true_ratio, round_sd: 0.0 };
        for _ in 0..10 {
            let rounds = kind.draw(&mut chance);
            let found = prepared.decide(&SimulatedJudge::new().judge(rounds.clone()));
            assert_eq!(found, verdict_of_the_judge(&rounds, 0.95), "{rounds:?}");
            seen.push(found);
        }
    }
    assert!([None, Some(true), Some(false)].iter().all(|verdict| seen.contains(verdict)), "{seen:?}");
}

#[test]
fn a_decision_for_a_difference_within_the_band_is_wrong() {
    let certain = [[10.0, 13.0], [10.1, 13.2], [9.9, 12.9], [10.0, 13.1]];
    let count = |true_ratio| {
        let mut count =
            DecisionCount { prepared: PreparedMethod::new(CHOSEN, 0.05, 4), claims: 1, decided: 0, wrong: 0 };
        let result = SimulatedJudge::new().judge(certain.to_vec());
        count.add(&result, SimulatedStudy { forks: 4, true_ratio, round_sd: 0.0 });
        (count.decided, count.wrong)
    };
    assert_eq!([count(1.0), count(1.05), count(1.3)], [(1, 1), (1, 1), (1, 0)]);
}

#[test]
fn a_method_that_is_wrong_too_often_or_decides_too_little_is_objected_to() {
    assert!(bounds::objections(&[quiet_cell()], CHOSEN).is_empty());
    let wrong = PowerCell { wrong: 0.02, ..quiet_cell() };
    let weak = PowerCell { decided: 0.5, ..quiet_cell() };
    let found = bounds::objections(&[wrong.clone(), weak], CHOSEN);
    assert!(
        matches!(&found[..], [wrong, weak] if wrong.contains("wrong in") && weak.contains("decided in")),
        "{found:?}"
    );
    // At the edge of the band a method is wrong on one side only, in half of its level.
    let at_the_edge =
        |wrong| PowerCell { claims: 1, true_ratio: 1.05, studies: 10_000, wrong, ..quiet_cell() };
    assert!(bounds::objections(&[at_the_edge(0.026)], CHOSEN).is_empty());
    assert_eq!(bounds::objections(&[at_the_edge(0.04)], CHOSEN).len(), 1);
    // A method that was not chosen may be as it is.
    let other = VerdictMethod::ALL.into_iter().find(|method| *method != CHOSEN).expect("several");
    assert!(bounds::objections(&[PowerCell { method: other, ..wrong }], CHOSEN).is_empty());
}

#[test]
fn a_mixed_model_of_few_rounds_that_do_not_differ_is_wrong_more_often_than_its_level() {
    let kind = SimulatedStudy { forks: 4, true_ratio: 1.05, round_sd: 0.0 };
    let cells = cells_of(kind, 2000, 1);
    let of = |method| cells.iter().filter(|cell| cell.method == method).cloned().collect::<Vec<_>>();
    assert!(!bounds::objections(&of(VerdictMethod::Mixed), VerdictMethod::Mixed).is_empty());
    for method in [VerdictMethod::Intervals, VerdictMethod::Welch, VerdictMethod::Rounds] {
        assert_eq!(bounds::objections(&of(method), method), Vec::<String>::new());
    }
}
