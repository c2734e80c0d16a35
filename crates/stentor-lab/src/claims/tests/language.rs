//! The language of claims, its arithmetic, and the analysis of factorials.

use super::ClaimVerdict::{DoesNotHold, Holds, NotTestable, Undecided};
use super::*;
use proptest::prelude::*;

const CELLS: &str = "\
paper,source,experiment,subject,factors,metric,stat,value,low,high,unit,kind,note
p,t,e,A,size=1,time taken,mean,10,,,s,published,
p,t,e,B,size=1,time taken,mean,20,,,s,published,
p,t,e,A,size=2,time taken,mean,40,30,50,s,published,
p,t,e,B,size=2,time taken,mean,45,42,48,s,published,
p,t,e,A,,duration,value,01:02:50,,,hh:mm:ss,published,
p,t,e,A,,ends,value,Out of Memory,,,,published,
p,t,e,B,,battery,mean,,,,h,in figure only,
p,t,e,A,,guess,mean,1,,,s,derived,
";

fn figures() -> Figures {
    Figures::parse(CELLS).expect("readable")
}

fn judge_with(claim: &str, complete: bool, tie_share: f64) -> Result<ClaimVerdict, JudgeError> {
    let claim = ClaimExpression::parse(claim).expect("a claim");
    let figures = figures();
    Bench { figures: &figures, complete, tie_share, band_share: 0.0 }
        .judge(&[claim])
        .map(|judgment| judgment.verdict)
}

fn judge(claim: &str) -> ClaimVerdict {
    judge_with(claim, true, 0.0).expect("judged")
}

#[test]
fn a_claim_about_all_cells_fails_with_one_of_them() {
    assert_eq!(judge("for all size in 1: time_taken[subject=A] < time_taken[subject=B]"), Holds);
    assert_eq!(judge("for all size in 1: time_taken[subject=A] > time_taken[subject=B]"), DoesNotHold);
    assert_eq!(judge("for all subject in A|B: time_taken[size=1] < 15"), DoesNotHold);
    assert_eq!(judge("for all subject in A|B, $limit in 21|22: time_taken[size=1] < $limit"), Holds);
}

#[test]
fn overlapping_intervals_leave_an_order_undecided() {
    assert_eq!(judge("time_taken[subject=A, size=2] < time_taken[subject=B, size=2]"), Undecided);
    assert_eq!(judge("time_taken[subject=A, size=2] > 29"), Holds);
    assert_eq!(judge("time_taken[subject=A, size=2] <= 29"), DoesNotHold);
}

#[test]
fn an_aggregate_of_measurements_needs_each_alternative_that_it_names() {
    let judge = |claim: &str| judge_with(claim, false, 0.0).expect("judged");
    assert_eq!(judge("max(time_taken[subject=A|B, size=1]) <= 20"), Holds);
    assert_eq!(judge("max(time_taken[subject=A|B|C, size=1]) <= 20"), NotTestable);
    assert_eq!(judge("max(time_taken[size=1]) <= 20"), Holds);
}

#[test]
fn a_chain_is_as_strong_as_its_weakest_link() {
    assert_eq!(judge("1 < 2 < 3"), Holds);
    assert_eq!(judge("1 < 3 < 2"), DoesNotHold);
    assert_eq!(judge("1 < 2 and 2 >= 2 and 1 + 2 * 3 == 7 and (1 + 2) * 3 == 9 and 3 != 4"), Holds);
}

#[test]
fn numbers_closer_than_a_tie_are_undecided() {
    assert_eq!(judge_with("100 < 104", true, 0.05), Ok(Undecided));
    assert_eq!(judge_with("100 < 106", true, 0.05), Ok(Holds));
    assert_eq!(judge_with("106 < 100", true, 0.05), Ok(DoesNotHold));
}

#[test]
fn a_picture_makes_a_claim_untestable_and_a_figure_that_is_nowhere_makes_it_wrong() {
    assert_eq!(judge("battery[subject=B] > 1"), NotTestable);
    let nowhere = judge_with("baterry[subject=B] > 1", true, 0.0);
    assert_eq!(nowhere, Err(JudgeError::NoMatch("baterry[subject=B]".into())));
    assert_eq!(judge_with("baterry[subject=B] > 1", false, 0.0), Ok(NotTestable));
    let several = judge_with("time_taken[subject=A] > 1", true, 0.0);
    assert_eq!(several, Err(JudgeError::Ambiguous("time taken[subject=A]".into())));
}

#[test]
fn derived_rows_are_no_evidence_unless_they_are_asked_for() {
    assert!(judge_with("guess[subject=A] == 1", true, 0.0).is_err());
    assert_eq!(judge("guess[subject=A, kind=derived] == 1"), Holds);
}

#[test]
fn words_and_durations_are_read_as_what_they_are() {
    assert_eq!(judge("ends[subject=A] == 'Out of Memory'"), Holds);
    assert_eq!(judge("duration[subject=A] == 3770"), Holds);
    assert!(judge_with("ends[subject=A] < 3", true, 0.0).is_err());
    assert!(judge_with("$size < 3", true, 0.0).is_err());
}

#[test]
fn figures_are_summed_up_in_any_number() {
    assert_eq!(judge("mean(time_taken[size=1]) == 15 and sum(time_taken[size=1], 5) == 35"), Holds);
    assert_eq!(judge("min(time_taken[]) == 10 and max(time_taken[size=1|2, subject=A], 12) >= 30"), Holds);
    assert_eq!(judge("count(time_taken[size]) == 4 and count(ends[size]) == 0"), Holds);
    assert_eq!(judge("abs(1 - 3) == 2"), Holds);
}

#[test]
fn a_claim_that_cannot_be_read_is_refused_with_the_place() {
    let error = |text: &str| ClaimExpression::parse(text).expect_err("refused").to_string();
    assert_eq!(error("1 < "), "a name is wanted at character 5 of the claim");
    assert_eq!(error("1"), "a comparison is wanted at character 2 of the claim");
    assert_eq!(error("for all size 1: 1 < 2"), "`in` is wanted at character 14 of the claim");
    assert_eq!(error("1 < 2 nonsense"), "the end is wanted at character 7 of the claim");
    let deep = format!("{}1{} < 2", "(".repeat(1000), ")".repeat(1000));
    assert!(error(&deep).starts_with("something less nested"));
}

#[test]
fn measured_figures_need_bounds_around_them() {
    let line = |bounds: &str| format!("value,low,high,metric\n{bounds},m\n");
    assert!(Figures::parse(&line("2,1,3")).is_ok());
    for wrong in ["2,3,1", "2,,3", "0,1,3", "word,1,2"] {
        let error = Figures::parse(&line(wrong)).expect_err(wrong).to_string();
        assert!(error.starts_with("line 2 of the figures"), "{error}");
    }
}

proptest! {
    #[test]
    fn whatever_is_typed_is_read_or_refused(text in "[a-z0-9 \\[\\]()<>=$|,:'*/+.é-]{0,60}") {
        let _ = ClaimExpression::parse(&text);
        let _ = ClaimExpression::parse(&format!("for all a in 1: {text}"));
        let _ = Binding::parse_list(&text);
    }

    #[test]
    fn an_interval_that_is_combined_holds_every_pair_within(
        a in -9.0..9.0, b in 0.0..5.0, c in 1.0..9.0, d in 0.0..5.0, x in 0.0..1.0, y in 0.0..1.0,
    ) {
        let left = Interval { low: a, value: a, high: a + b };
        let right = Interval { low: c, value: c, high: c + d };
        for apply in [|l: f64, r: f64| l + r, |l, r| l - r, |l, r| l * r, |l, r| l / r] {
            let whole = left.combine(right, apply);
            let inside = apply(a + x * b, c + y * d);
            prop_assert!(whole.low - 1e-9 <= inside && inside <= whole.high + 1e-9);
        }
    }
}

#[test]
fn figures_that_count_something_else_are_not_compared_and_say_what_they_count() {
    let text = "paper,source,experiment,subject,factors,metric,stat,value,unit,kind,note,low,high\n\
        s,t,e,A,,memory,m,10,MB,measured: memory of one,,,\n\
        s,t,e,B,,memory,m,20,MB,measured: memory of another,,,\n\
        s,t,e,C,,memory,m,30,MB,measured: memory of one,,,\n\
        s,t,e,D,,memory,m,40,MB,overlapping,it streams,,\n";
    let figures = Figures::parse(text).expect("readable");
    let judged = |check: &str| {
        let claim = ClaimExpression::parse(check).expect("a claim");
        let bench = Bench { figures: &figures, complete: false, tie_share: 0.0, band_share: 0.0 };
        let found = bench.judge(&[claim]).expect("judged");
        (found.verdict, found.missing.unwrap_or_default())
    };
    assert_eq!(judged("memory[subject=A] < memory[subject=C]").0, Holds);
    let (verdict, why) = judged("2 * memory[subject=A] < min(memory[subject=B|C])");
    assert_eq!(verdict, NotTestable);
    assert!(why.ends_with("cannot be compared: memory of another; memory of one"), "{why}");
    assert_eq!(judged("memory[subject=D] > 1"), (NotTestable, "it streams".to_owned()));
}
