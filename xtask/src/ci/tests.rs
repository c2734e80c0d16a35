use super::*;

fn ended(name: &'static str, passed: bool) -> StepEnd {
    StepEnd { name, passed, took: Duration::from_secs(2) }
}

#[test]
fn the_summary_ends_with_the_verdict() {
    let text = summary(&[ended("fmt", true), ended("test", true)]);
    assert_eq!(text.lines().count(), 3);
    assert!(text.ends_with("ci: all 2 steps passed in 4 s"), "{text}");
}

#[test]
fn the_summary_names_every_failed_step() {
    let text = summary(&[ended("fmt", false), ended("tidy", true), ended("test", false)]);
    assert!(text.ends_with("ci: FAILED in 6 s: fmt, test"), "{text}");
}

#[test]
fn a_step_that_cannot_start_is_a_failed_step_with_what_cargo_says() {
    let workspace = Workspace::load().unwrap();
    let step = CiStep { name: "test", work: cargo(&["no-such-command-of-cargo"]) };
    let failed = perform(&workspace, &step).unwrap();
    assert_eq!((failed.len(), failed[0].name.as_str()), (1, "test"));
    assert!(failed[0].lines[0].contains("no-such-command-of-cargo"), "{:?}", failed[0].lines);
}
