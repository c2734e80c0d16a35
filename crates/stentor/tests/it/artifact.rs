//! Artifacts of runs by the command.

use crate::process::run_json;
use crate::studies::NO_GATE;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Lists all files of a folder, relative to it.
fn files(folder: &Path, below: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder.join(below)).unwrap().map(|entry| entry.unwrap().path());
    let listed = entries.flat_map(|path| {
        let name = path.strip_prefix(folder).unwrap().to_owned();
        if path.is_dir() { files(folder, &name) } else { BTreeSet::from([name.display().to_string()]) }
    });
    listed.collect()
}

/// Runs a small part of albertengo-2020 with our own subjects.
fn run_into(run: &str) {
    let part = [
        "--subject",
        "rust",
        "--variant",
        "paper",
        "--factor",
        "payload=64 B",
        "--factor",
        "connection=kept",
    ];
    let small = ["lab", "run", "albertengo-2020", "--forks", "2", "--samples", "3", "--out", run];
    let (code, report) = run_json(&[&small[..], &part, &NO_GATE].concat());
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
}

#[test]
fn a_run_becomes_a_folder_whose_checksums_hold_and_whose_one_command_repeats_it() {
    let directory = tempfile::tempdir().unwrap();
    let (out, folder) = (directory.path().join("run"), directory.path().join("artifact"));
    let (run, artifact) = (out.to_str().unwrap(), folder.to_str().unwrap());
    run_into(run);
    let (code, report) = run_json(&["lab", "artifact", "albertengo-2020", "--run", run, "--out", artifact]);
    assert_eq!((code, &report["artifact"]["claims"][0]["number"]), (0, &json!("C1")), "{report}");
    // Without a link there were no packets to capture, and the artifact says so.
    let captures = &report["artifact"]["captures"];
    assert!(
        captures["cells_with"] == 0 && captures["why_missing"].as_str().unwrap().contains("no capture"),
        "{report}"
    );

    let check =
        Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&folder).status();
    assert!(check.unwrap().success());
    let sums = read(&folder, "SHA256SUMS");
    let summed: BTreeSet<String> =
        sums.lines().map(|line| line.split_once("  ").unwrap().1.to_owned()).collect();
    let mut all = files(&folder, Path::new(""));
    assert!(all.remove("SHA256SUMS") && all == summed, "{all:?}");
    assert!(
        all.contains("run/records.jsonl") && all.contains("bin/stentor-lab") && all.contains("LICENSE"),
        "{all:?}"
    );
    let metadata: Value = serde_json::from_str(&read(&folder, "ro-crate-metadata.json")).unwrap();
    let entities = metadata["@graph"].as_array().unwrap();
    let described = entities.iter().filter(|one| one["@type"] == "File").count();
    assert_eq!(described, all.len() - 1, "every file but the description itself");

    // What is repeated here is this run: without its apt-get, since tests install nothing.
    let script = read(&folder, "reproduce").replace("command -v apt-get", "false");
    let repeated =
        Command::new("sh").args(["-c", &script.replace("$(dirname \"$0\")", artifact)]).output().unwrap();
    assert!(repeated.status.success(), "{}", String::from_utf8_lossy(&repeated.stderr));
    assert!(folder.join("again/records.jsonl").is_file() && folder.join("again.html").is_file());
    let again: Value =
        serde_json::from_str(read(&folder, "again-claims.json").lines().last().unwrap()).unwrap();
    assert_eq!(again["study"]["id"], json!("albertengo-2020"));
}

#[test]
fn an_artifact_of_another_study_or_in_a_folder_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    let out = out.to_str().unwrap();
    run_into(out);
    for (study, run, folder, reason) in [
        ("cai-2009", out, "unused", "is a run of albertengo-2020, not of cai-2009"),
        ("albertengo-2020", out, out, "is not empty: name another folder"),
        ("albertengo-2020", "none", "unused", "there is no none"),
    ] {
        let (code, report) = run_json(&["lab", "artifact", study, "--run", run, "--out", folder]);
        assert!(code == 2 && report["error"].as_str().unwrap().contains(reason), "{report}");
    }
}
