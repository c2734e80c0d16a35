use super::*;

#[test]
fn a_step_that_cannot_start_is_a_failed_step_with_what_cargo_says() {
    let workspace = Workspace::load().unwrap();
    let step = step("test", cargo(&["no-such-command-of-cargo"]));
    let (failed, _) = perform(&workspace, &step, false, &mut RunLog::default()).unwrap();
    assert_eq!((failed.len(), failed[0].name.as_str()), (1, "test"));
    assert!(failed[0].lines[0].contains("no-such-command-of-cargo"), "{:?}", failed[0].lines);
}

#[test]
fn a_step_without_its_tool_is_skipped_with_what_to_install() {
    let workspace = Workspace::load().unwrap();
    let needs = NeededTool { word: "no-such-word", probe: &["no-such-tool"], remedy: "a tool" };
    let step = CiStep { needs: Some(needs), ..step("deny", cargo(&["--version"])) };
    let ended = run_step(&workspace, &step, true, &mut RunLog::default());
    assert_eq!(ended.verdict, StepVerdict::Skipped("missing: a tool".to_owned()));
}

#[test]
fn full_has_every_step_of_the_default() {
    let names: Vec<&str> = STEPS.iter().chain(FULL_STEPS).map(|step| step.name).collect();
    assert_eq!(
        names,
        ["fmt", "tidy", "build", "test", "codegen", "doc", "deny", "package", "book", "upgrade"]
    );
}
