//! A study at a tiny size, with the proof, record and bound of every test; and a campaign with injected faults.

use crate::process::run_json;
use serde_json::{Value, json};

/// With few responses the rate sometimes exceeds the mean on which the bound is based.
const SLACK: f64 = 1.25;

#[test]
fn the_thirteen_tests_of_a_study_lose_nothing_and_stay_within_their_bound() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let run = ["lab", "run", "isikligil-2017", "--scale", "0.0003", "--out", out.to_str().unwrap()];
    let (code, report) = run_json(&run);
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let scenarios = report["scenarios"].as_array().unwrap();
    let ids: Vec<String> = (1..=13).map(|number| format!("T{number}")).collect();
    let told_ids: Vec<_> = scenarios.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(told_ids, ids);
    scenarios.iter().for_each(assert_sound);
    let claims = report["claims"].as_array().unwrap();
    assert!(
        claims.iter().all(|claim| claim["published"].is_string() && claim["ours"].is_string()),
        "{claims:?}"
    );
    let files = [
        "report.html",
        "report.md",
        "rates.svg",
        "figure-3.svg",
        "scenarios.ndjson",
        "samples.csv",
        "figures.csv",
        "provenance.json",
    ];
    let sizes: Vec<u64> = files.iter().map(|name| out.join(name).metadata().unwrap().len()).collect();
    assert!(sizes.iter().all(|size| *size > 500), "{sizes:?}");
    let entries = out.read_dir().unwrap().count();
    assert_eq!(entries, files.len() + 1, "the plan is there, and nothing of the processes");
    let (code, judged) = run_json(&["lab", "claims", "isikligil-2017", "--record", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{judged}");
    let claims = judged["claims"].as_array().unwrap();
    assert!(claims.iter().all(|claim| claim["verdict_ours"] != "not_run"), "{judged}");
}

fn assert_sound(scenario: &Value) {
    assert_eq!((&scenario["lost"], &scenario["pushes"]), (&json!(0), &json!(300)), "{scenario}");
    assert_eq!(scenario["known_devices_reached"][0], scenario["known_devices_reached"][1], "{scenario}");
    let number = |field: &str| scenario[field].as_f64().unwrap_or_else(|| panic!("{field}: {scenario}"));
    assert!(["wall_seconds", "published_pushes_per_second", "ratio"].iter().all(|field| number(field) > 0.0));
    let providers = if scenario["mix"] == "gcm+apns" { 2.0 } else { 1.0 };
    // More requests in flight than consumers would be visible in both.
    assert!(number("inflight_max") <= number("consumers") * providers, "{scenario}");
    assert!(number("pushes_per_second") <= SLACK * number("bound_pushes_per_second"), "{scenario}");
}

#[test]
fn a_test_without_pools_opens_a_connection_for_each_push() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let out = out.to_str().unwrap();
    let run = ["lab", "run", "isikligil-2017", "--scale", "0.0001", "--only", "T1,T9", "--out", out];
    let (code, report) = run_json(&run);
    assert_eq!(code, 0, "{report}");
    let opened = |at: usize| report["scenarios"][at]["connections_opened"].as_u64().unwrap();
    assert!(opened(0) >= 100, "T1 opened {} connections for 100 pushes", opened(0));
    assert!(opened(1) <= 25, "T9 opened {} connections for 20 consumers", opened(1));
}

#[test]
fn repeated_runs_have_an_interval_and_are_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let out = out.to_str().unwrap();
    let run = |repetitions: &'static str, further: &[&str]| {
        let mut arguments = vec![
            "lab",
            "run",
            "isikligil-2017",
            "--scale",
            "0.0001",
            "--only",
            "T9,T5",
            "--repetitions",
            repetitions,
        ];
        arguments.extend(["--out", out]);
        arguments.extend(further);
        run_json(&arguments)
    };
    let (code, report) = run("2", &[]);
    assert_eq!(code, 0, "{report}");
    // A run on a busy machine may be invalid; valid runs have an interval around their mean.
    let sound = |report: &Value, repetitions: u64| {
        for one in report["scenarios"].as_array().unwrap() {
            let made = one["runs"].as_u64().unwrap() + one["runs_invalid"].as_u64().unwrap();
            assert!(made >= repetitions, "{one}");
            if one["runs"].as_u64() >= Some(2) {
                let [low, median, high] =
                    ["low", "median", "high"].map(|end| one["rate"][end].as_f64().unwrap());
                assert!(low <= median && median <= high, "{one}");
            }
        }
    };
    sound(&report, 2);
    let lines = |name: &str| std::fs::read_to_string(directory.path().join("study").join(name)).unwrap();
    let before = lines("scenarios.ndjson");
    let (code, report) = run("3", &["--resume"]);
    assert_eq!(code, 0, "{report}");
    sound(&report, 3);
    let after = lines("scenarios.ndjson");
    assert!(
        after.starts_with(&before) && after.lines().count() >= before.lines().count() + 2,
        "{before}{after}"
    );
    let (code, report) = run("3", &["--resume", "--seed", "2"]);
    assert!(code == 2 && report["error"].as_str().unwrap().contains("other settings"), "{report}");
}

#[test]
fn beyond_the_paper_every_factor_is_really_set() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let only = "gcm-100-4-producers,half-unregistered,none-registered,4-connections,2-apps,half-a-core";
    let (code, report) = run_json(&[
        "lab",
        "run",
        "isikligil-2017",
        "--scale",
        "0.0004",
        "--beyond",
        "--only",
        only,
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(code, 0, "{report}");
    let cell = |id: &str| {
        let mut cells = report["beyond"].as_array().unwrap().iter();
        cells.find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id} is missing: {report}")).clone()
    };
    let number =
        |id: &str, field: &str| cell(id)[field].as_u64().unwrap_or_else(|| panic!("{id}: {}", cell(id)));
    assert_eq!(
        (number("gcm-100-4-producers", "pushes"), number("gcm-100-4-producers", "accepted")),
        (400, 400)
    );
    // Each token has its own probability, and the known device of each platform is always registered.
    let refused = number("half-unregistered", "rejected");
    assert!((120..=280).contains(&refused), "{refused} of 400 were refused");
    assert_eq!((number("none-registered", "rejected"), number("none-registered", "accepted")), (398, 2));
    assert_eq!(cell("none-registered")["known_devices_reached"], json!([2, 2]));
    assert!(number("4-connections", "connections_max") <= 4, "{}", cell("4-connections"));
    let fairness = cell("2-apps")["fairness"].as_f64().unwrap();
    assert!((0.5..=1.0).contains(&fairness), "{fairness}");
    // Without the rights to limit a process the reason is shown instead.
    let limited = cell("half-a-core");
    assert!(limited["skipped"].is_string() || limited["pushes"] == json!(400), "{limited}");
}

/// Returns the commit of the program from git, if the repository is ours.
fn commit() -> String {
    let git = |words: &[&str]| {
        let output =
            std::process::Command::new("git").current_dir(env!("CARGO_MANIFEST_DIR")).args(words).output();
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8(output.stdout).unwrap().trim().to_owned(),
        )
    };
    if git(&["rev-parse", "--show-prefix"]) != "crates/stentor/" {
        return "unknown".into();
    }
    let made_of = [":/Cargo.toml", ":/Cargo.lock", ":/crates", ":(top,exclude)crates/*/tests"];
    let changed = git(&[&["status", "--porcelain", "--"], &made_of[..]].concat());
    let mark = if changed.is_empty() { "" } else { "-dirty" };
    git(&["rev-parse", "--short=12", "HEAD"]) + mark
}

#[test]
fn a_run_of_campaigns_names_its_program_and_its_page_can_be_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let page = directory.path().join("again.html");
    let (out, page) = (out.to_str().unwrap(), page.to_str().unwrap());
    let run = ["lab", "run", "isikligil-2017", "--scale", "0.0001", "--only", "T9", "--out", out];
    let (code, report) = run_json(&run);
    assert_eq!((code, &report["provenance"]["commit"]), (0, &json!(commit())), "{report}");
    let scenarios = std::fs::read_to_string(format!("{out}/scenarios.ndjson")).unwrap();
    let row: Value = serde_json::from_str(scenarios.lines().next().unwrap()).unwrap();
    assert_eq!((&row["env"]["commit"], &row["env"]["rig"]), (&json!(commit()), &json!("loopback")), "{row}");
    assert!(row["env"]["cores"].as_u64() > Some(0) && row["env"]["kernel"] != "", "{row}");
    let (code, report) = run_json(&["lab", "report", out, "--html", page]);
    assert_eq!((code, &report["scenarios"][0]["id"], &report["written"][0]), (0, &json!("T9"), &json!(page)));
    let [first, again] =
        [&format!("{out}/report.html"), page].map(|file| std::fs::read_to_string(file).unwrap());
    assert_eq!(first, again);
}

#[test]
fn runs_that_cannot_be_compared_say_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let [campaigns, empty] = ["campaigns", "empty"].map(|name| directory.path().join(name));
    std::fs::create_dir(&campaigns).unwrap();
    std::fs::write(campaigns.join("scenarios.ndjson"), "").unwrap();
    std::fs::create_dir(&empty).unwrap();
    let missing = directory.path().join("missing");
    for (run, why) in [
        (&campaigns, "has campaigns of isikligil-2017 and no records of subjects"),
        (&empty, "has no records: stentor lab run STUDY --out DIR makes some"),
        (&missing, "there is no "),
    ] {
        let run = run.to_str().unwrap();
        let (code, report) = run_json(&["lab", "compare", run, run]);
        assert!(code == 2 && report["error"].as_str().unwrap().contains(why), "{run}: {report}");
    }
}

#[test]
fn a_study_does_not_touch_a_directory_in_use_names_its_tests_and_refuses_the_options_of_others() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "").unwrap();
    let out = directory.path().to_str().unwrap();
    let (code, report) = run_json(&["lab", "run", "isikligil-2017", "--out", out]);
    assert!(code == 2 && report["error"].as_str().unwrap().contains("not empty"), "{report}");
    let (code, report) = run_json(&["lab", "run", "isikligil-2017", "--only", "T14", "--out", out]);
    assert!(code == 2 && report["error"].as_str().unwrap().contains("no test T14"), "{report}");
    for option in ["--attempts", "--gate-load", "--gate-pages", "--forks"] {
        let (code, report) = run_json(&["lab", "run", "isikligil-2017", option, "9", "--out", out]);
        let refused = format!("has no {option}");
        assert!(code == 2 && report["error"].as_str().unwrap().contains(&refused), "{report}");
    }
}

#[test]
fn nothing_is_lost_when_all_are_killed_and_the_emulators_stop_answering() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("kill.json");
    let run = ["lab", "kill", "--only", "kills", "--devices", "4000", "--kills", "1", "--out"];
    let (code, report) = run_json(&[&run[..], &[out.to_str().unwrap()]].concat());
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    assert!(
        ["lost", "stuck", "unmarked_duplicates"].iter().all(|field| report[field] == json!(0)),
        "{report}"
    );
    assert!(["kills", "emulator_kills", "stalls"].iter().all(|field| report[field] == json!(1)), "{report}");
    assert_eq!(report["ledger_balanced"], json!(true));
    assert_eq!((report["phases"].as_array().unwrap().len(), &report["skipped"]), (1, &json!([])), "{report}");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(written, report);
}

#[test]
fn a_server_that_is_killed_at_full_speed_loses_nothing_and_says_how_many_were_doubled_by_each_kill() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("kill.json");
    let run = ["lab", "kill", "--only", "full-speed", "--devices", "20000", "--kills", "2", "--out"];
    let (code, report) = run_json(&[&run[..], &[out.to_str().unwrap()]].concat());
    assert_eq!((code, &report["ok"], &report["kills"]), (0, &json!(true), &json!(2)), "{report}");
    assert!(
        ["lost", "stuck", "unmarked_duplicates"].iter().all(|field| report[field] == json!(0)),
        "{report}"
    );
    let (duplicates, bound) =
        (report["duplicates"].as_u64().unwrap(), report["duplicate_bound"].as_u64().unwrap());
    assert!(duplicates <= bound, "{report}");
    for per_kill in [&report["duplicates_per_kill"], &report["phases"][0]["duplicates_per_kill"]] {
        assert_eq!(per_kill.as_f64(), Some(duplicates as f64 / 2.0), "{report}");
    }
}
