//! Verdicts by the rounds of measurements.

use super::ClaimVerdict::{DoesNotHold, Holds, Undecided};
use super::*;
use crate::claims::figures::{Figure, FigureValue};
use crate::claims::judge::{Bench, Judgment};
use crate::statistics::invented::Invented;
use crate::statistics::{Replicate, Replicates, Samples};

/// A figure with a value for each round.
fn figure(subject: &str, cell: &str, rounds: &[f64]) -> Figure {
    let replicate = |place: usize| Replicate { run: 0, round: place as u32 + 1 };
    let replicates: Replicates =
        rounds.iter().enumerate().map(|(place, value)| (replicate(place), *value)).collect();
    let found = rounds.iter().copied().collect::<Samples>().estimate(0.95).expect("positive");
    let [low, high] = [found.low, found.high].map(|end| end.unwrap_or(found.mean));
    Figure {
        source: "stentor".into(),
        experiment: "e".into(),
        subject: subject.into(),
        factors: [("cell".to_owned(), cell.to_owned())].into(),
        metric: "time".into(),
        stat: String::new(),
        value: FigureValue::Number(Interval { low, value: found.mean, high }),
        unit: "ms".into(),
        kind: "measured".into(),
        note: String::new(),
        replicates,
        forks: None,
    }
}

fn judge(check: &str, figures: impl IntoIterator<Item = Figure>) -> Judgment {
    let claim = ClaimExpression::parse(check).expect("a claim");
    let figures: Figures = figures.into_iter().collect();
    let bench = Bench { figures: &figures, complete: false, tie_share: 0.0, band_share: BAND_SHARE };
    bench.judge(&[claim]).expect("judged")
}

const LESS: &str = "time[subject=A] < time[subject=B]";

/// Two sides of which the second takes 30 % more, in rounds that differ by a half.
fn in_unlike_rounds(rounds: usize) -> [Figure; 2] {
    let common: Vec<f64> = (0..rounds).map(|round| [10.0, 15.0, 12.0][round % 3]).collect();
    let doubt = |round: usize| 1.0 + 0.01 * (round % 2) as f64;
    let second: Vec<f64> =
        common.iter().enumerate().map(|(round, value)| 1.3 * value * doubt(round)).collect();
    [figure("A", "1", &common), figure("B", "1", &second)]
}

#[test]
fn from_six_rounds_on_what_a_round_does_to_both_sides_is_no_doubt() {
    assert_eq!(judge(LESS, in_unlike_rounds(5)).verdict, Undecided);
    assert_eq!(judge(LESS, in_unlike_rounds(6)).verdict, Holds);
    let [mut first, second] = in_unlike_rounds(6);
    let but_one = first.replicates.keys().skip(1);
    first.replicates = but_one.filter_map(|key| Some((key, first.replicates.get(key)?))).collect();
    assert_eq!(judge(LESS, [first, second]).verdict, Undecided, "five rounds have both sides");
}

#[test]
fn a_term_of_several_figures_depends_on_its_rounds_as_a_whole() {
    let around =
        |middle: f64| -> Vec<f64> { (0..8).map(|round| middle + 0.1 * f64::from(round % 3)).collect() };
    let figures = || {
        [figure("A", "1", &around(10.0)), figure("B", "1", &around(14.0)), figure("C", "1", &around(13.0))]
    };
    let verdict = |check: &str| judge(check, figures()).verdict;
    assert_eq!(verdict("time[subject=A] < min(time[subject=B|C])"), Holds);
    assert_eq!(verdict("time[subject=A] > max(time[subject=B|C])"), DoesNotHold);
    assert_eq!(verdict("time[subject=B] - time[subject=A] > 3.5"), Holds);
    assert_eq!(verdict("time[subject=A] - time[subject=B] < 0 - 3.5"), Holds, "amounts have no logarithm");
    assert_eq!(verdict("time[subject=B] / time[subject=A] < 1.2"), DoesNotHold);
    assert_eq!(verdict("time[subject=A] == time[subject=B]"), DoesNotHold);
}

#[test]
fn figures_without_chance_are_compared_as_they_are() {
    let always = |subject: &str, value: f64| figure(subject, "1", &[value; 4]);
    let judged = judge(LESS, [always("A", 100.0), always("B", 101.0)]);
    assert_eq!((judged.verdict, judged.power_at(0.05)), (Holds, None));
    assert_eq!(judge(LESS, [always("A", 100.0), always("B", 100.0)]).verdict, DoesNotHold);
    let noisy = figure("B", "1", &[101.0, 101.1, 100.9, 101.0]);
    assert_eq!(judge(LESS, [always("A", 100.0), noisy]).verdict, Undecided, "within the band");
}

#[test]
fn a_graded_verdict_counts_cells_and_pools_their_ratio_over_rounds() {
    let round = |middle: f64, place: usize| -> Vec<f64> {
        (0..6)
            .map(|round| {
                middle * (1.0 + 0.01 * ((round + place) % 3) as f64) * (1.0 + 0.2 * (round % 2) as f64)
            })
            .collect()
    };
    let cells = ["1", "2", "3", "4"];
    let ratios = [0.8, 0.9, 0.85, 1.02];
    let figures = cells.into_iter().zip(ratios).enumerate().flat_map(|(place, (cell, ratio))| {
        [figure("A", cell, &round(10.0 * ratio, place)), figure("B", cell, &round(10.0, 0))]
    });
    let judged =
        judge("for all cell in 1|2|3|4: time[subject=A] < time[subject=B]", figures.collect::<Vec<_>>());
    let grade = judged.grade().expect("compared");
    assert_eq!((grade.so, grade.of, grade.unit), (3, 4, "cells"));
    let [pooled] = grade.pooled[..] else { panic!("one pair of terms: {grade}") };
    let truth = ratios.iter().map(|ratio: &f64| ratio.ln()).sum::<f64>() / 4.0;
    assert!((pooled.value.ln() - truth).abs() < 0.01, "{grade}");
    // Every second round takes a fifth more, on both sides.
    assert!(pooled.high / pooled.low < 1.03, "{grade}");
    assert!(grade.to_string().starts_with("3 of 4 cells; pooled 0.88"), "{grade}");
}

#[test]
fn a_claim_on_one_cell_is_graded_by_its_comparisons() {
    let grade = judge("1 < 2 < 3 > 5", []).grade().expect("compared");
    assert_eq!(grade.to_string(), "2 of 3 comparisons");
}

#[test]
fn four_of_five_studies_decide_the_difference_that_a_verdict_could_have_seen() {
    let (mut invented, level, rounds) = (Invented::new(11), 0.05, 10);
    let mut study = |ratio: f64| {
        let mut side = |middle: f64| -> Vec<f64> {
            (0..rounds).map(|_| middle * (0.04 * invented.normal()).exp()).collect()
        };
        [figure("A", "1", &side(10.0)), figure("B", "1", &side(10.0 * ratio))]
    };
    let power = |judged: &Judgment| judged.power_at(level).expect("by chance").detectable_percent / 100.0;
    let stated: Samples = (0..300).map(|_| power(&judge(LESS, study(1.1)))).collect();
    let detectable = stated.quantile(0.5).expect("some");
    let decided = (0..300).filter(|_| judge(LESS, study(1.0 + detectable)).verdict == Holds).count();
    assert!((210..=270).contains(&decided), "{decided} of 300 at {detectable}");
}

#[test]
fn a_comparison_with_a_number_has_a_power_too_and_one_of_amounts_has_none() {
    let side =
        |middle: f64| -> Vec<f64> { (0..8).map(|round| middle + 0.1 * f64::from(round % 3)).collect() };
    let figures = || [figure("A", "1", &side(10.0)), figure("B", "1", &side(10.2))];
    let power = |check: &str| judge(check, figures()).power_at(0.05);
    assert!(power("time[subject=A] < 11").expect("by chance").detectable_percent < 5.0, "there is no band");
    assert_eq!(power("time[subject=A] - time[subject=B] < 0"), None);
}

#[test]
fn an_undecided_verdict_says_what_it_could_have_seen_and_what_it_excludes() {
    let side =
        |middle: f64| -> Vec<f64> { (0..10).map(|round| middle + 0.1 * f64::from(round % 4)).collect() };
    let judged = judge(LESS, [figure("A", "1", &side(10.0)), figure("B", "1", &side(10.3))]);
    assert_eq!(judged.verdict, Undecided);
    let power = judged.power_at(0.01).expect("by chance");
    let text = power.to_string();
    assert!(text.starts_with("could have seen 5") && text.contains("excludes more than 3"), "{text}");
    let [compared] = &judged.comparisons[..] else { panic!("one comparison") };
    assert!(compared.is_settled(0.01, 0.1) && !compared.is_settled(0.01, 0.02));
}
