use super::super::tally::TestTime;
use super::*;

fn ended(name: &'static str, verdict: StepVerdict, counts: TestCounts) -> EndedStep {
    EndedStep { name, verdict, counts, cost: Cost { wall_seconds: 2.0, processor_seconds: 3.0 } }
}

fn passed(name: &'static str) -> EndedStep {
    ended(name, StepVerdict::Passed, TestCounts::default())
}

#[test]
fn the_table_of_steps_ends_with_their_sum() {
    let before = Cost { wall_seconds: 10.0, processor_seconds: 5.0 };
    let table = steps(before, &[passed("fmt"), passed("test")]);
    assert_eq!(table.lines().count(), 5);
    assert_eq!(table.lines().last(), Some("    14.0 s     11.0 cpu-s  passed   all"));
}

#[test]
fn a_skipped_step_has_its_reason_and_does_not_fail_the_run() {
    let skipped = ended("deny", StepVerdict::Skipped("missing: a tool".into()), TestCounts::default());
    let all = [passed("fmt"), skipped];
    assert!(steps(Cost::default(), &all).contains("skipped  deny: missing: a tool"));
    assert!(is_passed(&all));
}

#[test]
fn the_last_line_counts_tests_and_each_failed_step_without_any() {
    let counts = TestCounts { passed: 7, failed: 2, skipped: 4 };
    let all = [
        ended("clippy", StepVerdict::Failed, TestCounts::default()),
        ended("test", StepVerdict::Failed, counts),
        passed("codegen"),
    ];
    assert_eq!(last_line(&all), "7 passed, 3 failed, 4 skipped");
    assert!(!is_passed(&all));
}

#[test]
fn the_slowest_tests_stand_in_their_order_and_are_no_more_than_thirty() {
    let time = |number: u32| TestTime { test: format!("test_{number}"), seconds: f64::from(number) };
    let program = EndedProgram {
        selection: "-p a --lib".to_owned(),
        counts: TestCounts::default(),
        cost: Cost::default(),
        times: (0..40).map(time).collect(),
        reasons: vec!["there is no javac".to_owned()],
    };
    let suite = EndedSuite { programs: vec![program], ..EndedSuite::default() };
    let text = slowest(&suite);
    assert_eq!(text.lines().count(), 31);
    assert_eq!(text.lines().nth(1), Some("    39.0 s  -p a --lib test_39"));
    assert!(skipped(&suite).ends_with("    1  -p a --lib: there is no javac"));
}
