use super::*;

fn log(lines: &[&str]) -> HarnessLog {
    let mut log = HarnessLog::default();
    lines.iter().for_each(|line| log.note(line));
    log
}

const ENDED: &str =
    "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.20s";

#[test]
fn the_line_at_the_end_has_the_counts_and_a_line_of_a_test_its_time() {
    let lines = [
        "running 4 tests",
        "test a::one ... ok <0.001s>",
        "test a::two - should panic ... ok <1.250s>",
        "test b ... FAILED <0.500s>",
        "test c ... ok <0.000s>",
        ENDED,
    ];
    let log = log(&lines);
    assert_eq!(log.counts(4), TestCounts { passed: 3, failed: 1, skipped: 0 });
    let times: Vec<(&str, f64)> = log.times.iter().map(|one| (one.test.as_str(), one.seconds)).collect();
    assert_eq!(times, [("a::one", 0.001), ("a::two", 1.25), ("b", 0.5), ("c", 0.0)]);
}

#[test]
fn a_test_that_says_that_it_is_skipped_has_not_passed() {
    let log = log(&["skipped: there is no javac", "test a ... skipped: nor a browser", "ok <0.1s>", ENDED]);
    assert_eq!(log.counts(4), TestCounts { passed: 1, failed: 1, skipped: 2 });
    assert_eq!(log.reasons, ["there is no javac", "nor a browser"]);
}

#[test]
fn what_merely_speaks_of_skipping_is_no_skipped_test() {
    assert!(log(&["a log: skipped: three rows", "   skipped: four"]).reasons.is_empty());
}

#[test]
fn tests_that_the_death_of_their_program_left_without_a_verdict_have_failed() {
    let log = log(&["running 3 tests", "test a ... ok <0.001s>"]);
    assert_eq!(log.counts(3), TestCounts { passed: 1, failed: 2, skipped: 0 });
}
