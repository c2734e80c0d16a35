//! Subjects as processes: ours may be measured; those with wrong or missing responses may not.

use crate::process::{run_json, stentor};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn every_subject_of_ours_answers_what_it_must_in_both_halves() {
    let (code, report) = run_json(&["lab", "subject", "list"]);
    let subjects = report["subjects"].as_array().unwrap();
    assert_eq!((code, subjects.len()), (0, 11));
    for subject in subjects {
        let dialect = subject.as_str().unwrap().split('/').next().unwrap();
        let (code, report) = run_json(&["lab", "subject", "check", dialect]);
        assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
        let passed = report["passed"].as_array().unwrap();
        // Echo, sort, arrays of three types and points, by a server and by a client; then rows that are read, stored and resumed, a
        // connection for each exchange, a service that is repeated, and TLS in both halves, which two threads cannot share.
        let able = if dialect == "socket+xml-sax" { 5 } else { 7 };
        assert_eq!(passed.len(), 12 + able, "{dialect}");
        assert!(passed.iter().all(|one| one["answers"] == 5), "{report}");
    }
}

/// Checks one half of a misbehaving subject of ours.
fn checked(directory: &Path, role: &str, manner: &str) -> (i32, Value) {
    let program = stentor(&[]).get_program().to_owned().into_string().unwrap();
    let run = [program.as_str(), "lab", "subject", "speak", "rest+json", "--manner", manner];
    let file = directory.join("subject.toml");
    let text = format!("id = 'rest+json/test/rust'\nops = ['sort']\nroles = ['{role}']\nrun = {run:?}\n");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    run_json(&["lab", "subject", "check", "--definition", file, "--patience-seconds", "2"])
}

#[test]
fn a_server_with_wrong_answers_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (code, report) = checked(directory.path(), "server", "forgetful");
    let error = report["error"].as_str().unwrap();
    assert!(code == 1 && error.contains("refused: sort: answer 0 is not the expected one"), "{report}");
    assert!(error.contains("(99 entries, 100 expected)"), "{report}");
    let (code, report) = checked(directory.path(), "server", "honest");
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
}

#[test]
fn a_server_that_never_answers_is_refused_and_ended() {
    let directory = tempfile::tempdir().unwrap();
    let (code, report) = checked(directory.path(), "server", "mute");
    assert!(code == 1 && report["error"].as_str().unwrap().contains("did not answer"), "{report}");
}

#[test]
fn a_client_that_loses_samples_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (code, report) = checked(directory.path(), "client", "forgetful");
    assert!(code == 1 && report["error"].as_str().unwrap().contains("4 samples for 5 requests"), "{report}");
}

#[test]
fn what_is_no_subject_is_told_apart_from_a_bad_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("subject.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run_json(&["lab", "subject", "check", "--definition", file.to_str().unwrap()])
    };
    let line = "ops = ['echo']\nroles = ['server']\n";
    let (code, report) = check(&format!("id = 'corba/x'\n{line}run = ['true']\n"));
    assert!(code == 2 && report["error"].as_str().unwrap().contains("is no dialect"), "{report}");
    let (code, report) = check(&format!("id = 'soap/x'\n{line}run = ['./not-there']\n"));
    assert!(code == 1 && report["error"].as_str().unwrap().contains("starting ./not-there"), "{report}");
    let (code, report) = check(&format!("id = 'soap/x'\n{line}run = ['true']\n"));
    assert_eq!(code, 1, "{report}");
}

/// Decides whether a foreign subject is checked, or returns the reason against it. Subjects without a build step are checked wherever they
/// can run; built ones take minutes and are checked if `STENTOR_TEST_REQUIRE` lists `subjects`, which requires all the others as well. If
/// it lists `judges`, Python is required.
fn is_checked(subject: &Value, required: &str) -> Result<(), String> {
    let id = subject["id"].as_str().unwrap();
    let must = required.contains("subjects") || required.contains("judges") && id.ends_with("python3");
    match subject["can_run"] == true {
        true if must || subject["needs_building"] == false => Ok(()),
        true => Err("built, STENTOR_TEST_REQUIRE=subjects checks it".into()),
        false => {
            assert!(!must, "cannot run: {subject}");
            Err(format!("built: {}, missing: {}", subject["built"], subject["missing"]))
        }
    }
}

#[test]
fn subjects_in_other_languages_agree_with_ours() {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let (code, report) = run_json(&["lab", "subject", "list"]);
    let foreign = report["foreign"].as_array().unwrap();
    assert!(code == 0 && foreign.len() > 2, "{report}");
    for subject in foreign {
        let id = subject["id"].as_str().unwrap();
        if let Err(reason) = is_checked(subject, &required) {
            println!("skipped: {id}, {reason}");
            continue;
        }
        let (code, report) = run_json(&["lab", "subject", "check", id, "--patience-seconds", "60"]);
        assert_eq!((code, &report["ok"]), (0, &json!(true)), "{id}: {report}");
        // Of each half: echo, sort and points once, arrays of three types.
        let cells = |op: &Value| if op == "array" { 3 } else { 1 };
        let cells: usize = subject["ops"].as_array().unwrap().iter().map(cells).sum();
        let halves = subject["roles"].as_array().unwrap().len();
        let passed = report["passed"].as_array().unwrap();
        let has = |one: &Value, factor: &str| one["factors"].get(factor).is_some();
        let extra = |one: &&Value| ["insert", "store", "tls", "connection"].iter().any(|name| has(one, name));
        assert_eq!(passed.iter().filter(|one| !extra(one)).count(), cells * halves, "{report}");
        for (ability, factor) in [
            ("insert", "insert"),
            ("tls", "tls"),
            ("tls-client", "tls"),
            ("tls-server", "tls"),
            ("fresh", "connection"),
        ] {
            let says = subject["can"].as_array().unwrap().contains(&json!(ability));
            assert!(
                !says || passed.iter().any(|one| has(one, factor)),
                "{id} was not asked for {ability}: {report}"
            );
        }
    }
}

#[test]
fn a_subject_is_built_when_asked_and_checked_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let text = "id = 'soap/x/y'\nops = ['echo']\nroles = ['server']\nrun = ['true']\nartefact = 'out'\n";
    let write = |more: &str| std::fs::write(folder.path().join("x.toml"), format!("{text}{more}\n")).unwrap();
    write("build = ['touch', 'out']\nneeds = ['no-such-tool to build']");
    let (code, report) = run_json(&["lab", "subject", "build", "soap/x", "--subjects", place]);
    assert_eq!((code, &report["skipped"][0]["missing"][0]["need"]), (1, &json!("no-such-tool to build")));
    write("build = ['touch', 'out']");
    let (code, report) = run_json(&["lab", "subject", "check", "soap/x", "--subjects", place]);
    assert!(
        code == 1 && report["error"].as_str().unwrap().contains("lab subject build soap/x/y"),
        "{report}"
    );
    let (code, report) = run_json(&["lab", "subject", "build", "--all", "--subjects", place]);
    assert_eq!((code, &report["built"]), (0, &json!(["soap/x/y"])));
    let (_, report) = run_json(&["lab", "subject", "list", "--subjects", place]);
    assert_eq!(
        (&report["foreign"][0]["built"], &report["foreign"][0]["can_run"]),
        (&json!(true), &json!(true))
    );
    let (code, report) = run_json(&["lab", "subject", "check", "soap/z", "--subjects", place]);
    assert!(code == 5 && report["error"].as_str().unwrap().contains("there is no subject"), "{report}");
}

#[test]
fn a_subject_that_does_not_come_up_is_refused_with_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    let error = |run: &str| {
        let text = format!("id = 'soap/x/y'\nops = ['echo']\nroles = ['server']\n{run}\n");
        std::fs::write(&file, text).unwrap();
        let (code, report) = run_json(&["lab", "subject", "check", "--definition", file.to_str().unwrap()]);
        (code, report["error"].as_str().unwrap().to_owned())
    };
    for (run, code, why) in [
        ("", 2, "docs/lab/your-own-service.md has one"),
        ("run = ['/nowhere/x']", 1, "starting /nowhere/x, the program of `run`"),
        ("run = ['true']", 1, "it ended at the order to say hello"),
        ("run = ['cat']", 1, "where a report was expected"),
    ] {
        let (ended, sentence) = error(run);
        assert!(ended == code && sentence.contains(why), "{run}: {ended} {sentence}");
    }
}

#[test]
fn the_doctor_of_the_laboratory_tells_of_each_lack_what_to_do() {
    let subjects = tempfile::tempdir().unwrap();
    let define = |name: &str, further: &str| {
        let head =
            format!("id = \"{name}\"\nops = [\"echo\"]\nroles = [\"server\"]\nrun = [\"sh\", \"none.sh\"]\n");
        std::fs::write(subjects.path().join(format!("{}.toml", name.replace('/', "-"))), head + further)
            .unwrap();
    };
    define("rest+json/ready", "");
    define("rest+json/lacking", "needs = [\"python>=99.1\"]\n");
    define("rest+json/unbuilt", "artefact = \"none.jar\"\nbuild = [\"sh\", \"build.sh\"]\n");
    let (code, report) = run_json(&["lab", "doctor", "--subjects", subjects.path().to_str().unwrap()]);
    assert_eq!(code, 0, "whatever is missing: {report}");
    let findings = report["findings"].as_array().unwrap();
    let of = |what: &str| {
        findings.iter().find(|one| one["what"] == what).unwrap_or_else(|| panic!("{what}: {report}"))
    };
    assert_eq!(of("subject rest+json/ready")["ok"], true, "{report}");
    for (subject, word) in [
        ("subject rest+json/lacking", "python"),
        ("subject rest+json/unbuilt", "stentor lab subject build rest+json/unbuilt"),
    ] {
        let found = of(subject);
        assert!(found["ok"] == false && found["told"].as_str().unwrap().contains(word), "{found}");
    }
    let lacks = findings.iter().filter(|one| one["ok"] == false);
    assert_eq!(report["missing"], json!(lacks.count()));
    assert!(findings.iter().all(|one| !one["told"].as_str().unwrap().is_empty()), "{report}");
    // This machine itself: its rig, and its processors.
    assert!(of("processors")["told"].as_str().unwrap().contains("cores"), "{report}");
    assert!(["netns", "veth", "loopback"].contains(&report["rig"].as_str().unwrap()), "{report}");
}

/// The folder of a subject to begin with.
pub(crate) const SKELETON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/skeleton");

#[test]
fn the_skeleton_of_a_subject_has_at_most_sixty_lines_and_passes_the_check() {
    let program = std::fs::read_to_string(std::path::Path::new(SKELETON).join("subject.py")).unwrap();
    assert!(program.lines().count() <= 60, "{}", program.lines().count());
    let (code, report) =
        run_json(&["lab", "subject", "check", "--subjects", SKELETON, "rest+json/my-framework"]);
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let ops: Vec<&Value> = report["passed"].as_array().unwrap().iter().map(|one| &one["op"]).collect();
    assert_eq!(ops, [&json!("echo"), &json!("sort")], "{report}");
}
