use std::path::Path;
use std::process::Command;

use super::lines::{RustLines, is_generated};
use super::timings::{newest, slowest};
use super::*;
use crate::rust_file::RustFile;

fn lines(path: &str, text: &str) -> RustLines {
    let mut lines = RustLines::default();
    lines.add(&RustFile::parse("a", path, text).unwrap_or_else(|finding| panic!("{finding}")));
    lines
}

const REPORT: &str = r#"<script>
const UNIT_DATA = [
  { "name": "a", "target": "", "duration": 1.5 },
  { "name": "b", "target": " build-script", "duration": 1.0 },
  { "name": "b", "target": "", "duration": 1.25 }
];
const CONCURRENCY_DATA = [];
</script>"#;

#[test]
fn a_test_module_counts_as_tests_and_all_else_as_product() {
    let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
    assert_eq!(lines("crates/a/src/lib.rs", text), RustLines { product: 2, tests: 4 });
}

#[test]
fn a_file_of_tests_has_no_product_line() {
    for path in ["crates/a/tests/it/main.rs", "crates/a/src/one/tests.rs", "crates/a/src/one_tests.rs"] {
        assert_eq!(lines(path, "fn a() {}\nfn b() {}\n"), RustLines { product: 0, tests: 2 }, "{path}");
    }
}

#[test]
fn generated_files_are_those_of_codegen_and_the_pages_of_the_laboratory() {
    for path in ["docs/openapi.json", "docs/commands/app.md", "docs/studies/albertengo-2020.md"] {
        assert!(is_generated(path), "{path}");
    }
    for path in ["docs/studies/README.md", "docs/lab/README.md", "docs/studies/cai-2009/plan.json"] {
        assert!(!is_generated(path), "{path}");
    }
}

#[test]
fn packages_are_the_entries_of_the_lock_file() {
    assert_eq!(
        packages("version = 4\n\n[[package]]\nname = \"a\"\n\n[[package]]\nname = \"[[package]]\"\n"),
        2
    );
}

#[test]
fn the_units_of_a_crate_are_added_and_the_slowest_crate_comes_first() {
    let found = slowest(REPORT).expect("a report");
    let found: Vec<(&str, f64)> = found.iter().map(|time| (time.name.as_str(), time.seconds)).collect();
    assert_eq!(found, [("b", 2.25), ("a", 1.5)]);
    assert_eq!(slowest(REPORT).expect("a report")[0].json(), json!({ "crate": "b", "seconds": 2.25 }));
    for torn in ["", "const UNIT_DATA = [{]", "const UNIT_DATA = [];"] {
        assert!(slowest(torn).is_err(), "{torn}");
    }
}

#[test]
fn without_a_report_there_are_no_crates_and_with_several_the_last_one_counts() {
    let target = tempfile::tempdir().expect("a folder");
    assert_eq!(newest(target.path()).expect("no report"), []);
    let folder = target.path().join("cargo-timings");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("z.html"), "torn").expect("written");
    let old = std::time::SystemTime::UNIX_EPOCH;
    let file = std::fs::File::options().write(true).open(folder.join("z.html")).expect("there");
    file.set_modified(old).expect("older");
    std::fs::write(folder.join("a.html"), REPORT).expect("written");
    assert_eq!(newest(target.path()).expect("a report").len(), 2);
}

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let status = Command::new("git").current_dir(folder).args(who).args(arguments).status();
    assert!(status.expect("git").success(), "{arguments:?}");
}

#[test]
fn a_clone_weighs_its_files_and_those_of_git_and_nothing_of_the_history() {
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, copy) = (folder.path().join("origin"), folder.path().join("copy"));
    std::fs::create_dir(&origin).expect("a folder");
    git(&origin, &["init", "--quiet"]);
    let noise: String =
        (0..200_000_u32).map(|step| format!("{:x}", step.wrapping_mul(2_654_435_761))).collect();
    for text in [noise.as_str(), "short"] {
        std::fs::write(origin.join("file"), text).expect("written");
        git(&origin, &["add", "file"]);
        git(&origin, &["commit", "--quiet", "--message", "one"]);
    }
    checkout::clone(&origin, &copy).expect("a clone");
    let (all, of_git) = (checkout::bytes_below(&copy), checkout::bytes_below(&copy.join(".git")));
    let (all, of_git) = (all.expect("bytes"), of_git.expect("bytes"));
    assert_eq!(all - of_git, 5);
    assert!(of_git > 0 && of_git < 200_000, "{of_git}");
}
