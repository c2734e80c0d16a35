use super::*;

/// Cargo's output for a workspace in which a unit test, an integration test and a doc test fail and a target aborts.
const PRINTED: &str = include_str!("printed.txt");

fn failures(printed: &str) -> Vec<StepFailure> {
    let mut log = FailureLog::default();
    printed.lines().for_each(|line| log.note(line));
    log.failures("test")
}

fn names(printed: &str) -> Vec<String> {
    failures(printed).into_iter().map(|failure| failure.name).collect()
}

#[test]
fn every_failed_test_has_its_target_and_a_target_that_aborts_stands_for_its_tests() {
    assert_eq!(
        names(PRINTED),
        [
            "-p a --lib: tests::does_not_panic",
            "-p a --lib: tests::returns_an_error",
            "-p a --lib: tests::says_and_fails",
            "-p a --test it: it_fails",
            "-p b --lib",
            "-p a --doc: a/src/lib.rs - one (line 2)",
        ]
    );
}

#[test]
fn a_test_has_its_own_output_and_no_other() {
    let failures = failures(PRINTED);
    let lines = |at: usize| failures[at].lines.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>();
    assert_eq!(lines(0), ["note: test did not panic as expected at a/src/lib.rs:8:28"]);
    assert_eq!(lines(1), ["Error: \"no\""]);
    let said = lines(2);
    assert_eq!((said[0].as_str(), said.len()), ("before", 6));
    assert_eq!(said[2], "assertion `left == right` failed: the sum");
    assert!(lines(5).iter().any(|line| *line == "Test executable failed (exit status: 101)."));
}

#[test]
fn a_target_that_aborts_has_what_cargo_says_of_its_end() {
    let failures = failures(PRINTED);
    let last = failures[4].lines.last().expect("lines");
    assert!(last.ends_with("(signal: 6, SIGABRT: process abort signal)"), "{last}");
    assert!(failures[4].lines.iter().any(|line| line == "running 3 tests"));
}

#[test]
fn a_target_that_aborts_after_a_test_failed_is_named_beside_it() {
    let printed = "     Running unittests src/lib.rs (target/debug/deps/b-1)\n\
        test tests::one ... FAILED\n\
        error: test failed, to rerun pass `-p b --lib`\n\
        \n\
        Caused by:\n  process didn't exit successfully: `b-1` (signal: 11, SIGSEGV: invalid memory reference)\n";
    assert_eq!(names(printed), ["-p b --lib: tests::one", "-p b --lib"]);
}

#[test]
fn a_name_whose_line_another_print_broke_is_found_in_the_list() {
    let printed = "     Running unittests src/lib.rs (target/debug/deps/b-1)\n\
        test tests::one ... a child's words\nFAILED\n\
        \nfailures:\n\n---- tests::one stdout ----\nits own\n\n\nfailures:\n    tests::one\n\n\
        test result: FAILED. 0 passed; 1 failed\n\nerror: test failed, to rerun pass `-p b --lib`\n";
    let found = failures(printed);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].lines[0].as_str()), ("-p b --lib: tests::one", "its own"));
}

#[test]
fn a_step_that_fails_without_a_test_has_its_last_lines() {
    let printed = "    Checking a v0.1.0\n\u{1b}[1m\u{1b}[91merror[E0425]\u{1b}[0m: cannot find value `x`\n";
    let found = failures(printed);
    assert_eq!((found.len(), found[0].name.as_str()), (1, "test"));
    assert_eq!(found[0].lines, ["    Checking a v0.1.0", "error[E0425]: cannot find value `x`"]);
}

#[test]
fn of_an_endless_output_the_last_lines_are_kept() {
    let mut log = FailureLog::default();
    (0..10_000).for_each(|line| log.note(&line.to_string()));
    let found = log.failures("clippy");
    assert_eq!(found[0].lines.len(), KEPT_MAX_LINES);
    assert_eq!(found[0].lines.last().map(String::as_str), Some("9999"));
}
