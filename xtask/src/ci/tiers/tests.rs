use std::collections::BTreeSet;

use super::*;
use crate::workspace::Workspace;

fn promised() -> PromisedTests {
    PromisedTests::on_page("| 1 | nothing is lost | `what_is_accepted_is_sent` |\n| R2 | disks | `r2_…` |\n")
}

#[test]
fn a_module_spares_what_is_promised_and_another_row_does_not() {
    let (module, beginning) = (row("a", "nodes::", "slow"), row("a", "nodes::r2_", "slow"));
    let cases = [
        ("nodes::some_other_test", true, false),
        ("nodes::devices::some_other_test", true, false),
        ("other_nodes::some_other_test", false, false),
        ("nodes::what_is_accepted_is_sent", false, false),
        ("nodes::r2_a_full_disk", false, true),
    ];
    for (test, by_module, by_beginning) in cases {
        assert_eq!(module.takes("a", test, &promised()), by_module, "{test}");
        assert_eq!(beginning.takes("a", test, &promised()), by_beginning, "{test}");
        assert!(!module.takes("b", test, &promised()), "{test}");
    }
}

#[test]
fn every_row_has_a_package_and_a_module_that_are_there_and_a_reason() {
    let workspace = Workspace::load().unwrap();
    let files: BTreeSet<String> = workspace.sources().unwrap().into_iter().map(|file| file.path).collect();
    for row in FULL_ONLY {
        let packages = &workspace.metadata.packages;
        let package = packages.iter().find(|package| package.name.as_str() == row.package);
        let home =
            package.unwrap_or_else(|| panic!("{}: no such package", row.name())).manifest_path.parent();
        let tests = workspace.relative(home.unwrap().as_std_path()) + "/tests/it/";
        let module = row.path.split("::").next().unwrap();
        let is_there = files.iter().any(|file| file.starts_with(&format!("{tests}{module}")));
        assert!(is_there && !row.reason.is_empty(), "{}: no such module in {tests}", row.name());
    }
}

#[test]
fn no_row_stands_twice() {
    let names: BTreeSet<String> = FULL_ONLY.iter().map(FullOnly::name).collect();
    assert_eq!(names.len(), FULL_ONLY.len());
}
