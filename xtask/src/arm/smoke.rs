//! A small part of every study of web services on an emulated processor: all answers must be right, and no time may be kept.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::emulator::ArmEmulator;

/// Devices of the demo: few, but both push services and every stage take part.
const DEMO_DEVICES: &str = "200";
/// Exit code of a command that this machine cannot run.
const NOT_TESTABLE: i32 = 6;

/// Each study, with the levels of a small part that still has every subject of ours in it.
const STUDIES: &[(&str, &[&str])] = &[
    ("cai-2009", &["items=200"]),
    ("anacleto-2012", &["poi=1,250", "page=1024"]),
    ("nunes-2014", &["cpu=whole", "message=100Kb"]),
    ("albertengo-2020", &["payload=64 B"]),
];

/// Commands that only measure times.
const TIMING: &[&[&str]] = &[
    &["lab", "bench", "http2"],
    &["lab", "clock", "selftest"],
    &["lab", "link", "selftest"],
    &["lab", "run", "isikligil-2017", "--out", "never-made"],
];

/// Tries the binary; the first failure is the error.
pub(super) fn run(emulator: &ArmEmulator) -> anyhow::Result<()> {
    println!("arm: {}", text(&emulator.run(&["--version"])?.stdout).trim());
    doctor(emulator)?;
    let folder = std::env::temp_dir().join(format!("stentor-arm-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
    let answered = STUDIES.iter().try_for_each(|(study, levels)| run_study(emulator, study, levels, &folder));
    std::fs::remove_dir_all(&folder)?;
    answered?;
    for command in TIMING {
        let output = emulator.run(command)?;
        let errors = text(&output.stderr);
        let is_refused =
            output.status.code() == Some(NOT_TESTABLE) && errors.contains("processor is emulated");
        ensure!(is_refused, "`stentor {}` was not refused: {errors}", command.join(" "));
    }
    println!("arm: the commands that only measure times were refused ({} commands)", TIMING.len());
    let demo = succeed(emulator, &["demo", "--devices", DEMO_DEVICES, "--json"])?;
    is_untimed(&demo, &["wall_seconds", "pushes_per_second", "server_cpu_seconds"])?;
    println!("arm: a demo with {DEMO_DEVICES} devices agreed for every token");
    Ok(())
}

fn doctor(emulator: &ArmEmulator) -> anyhow::Result<()> {
    let report = succeed(emulator, &["lab", "doctor", "--json"])?;
    let findings = report["findings"].as_array().into_iter().flatten();
    let times =
        findings.into_iter().find(|one| one["what"] == "times").context("the doctor looks at times")?;
    ensure!(times["ok"] == false, "the doctor takes this processor for a real one");
    println!("arm: doctor: {}", times["told"].as_str().unwrap_or_default());
    Ok(())
}

fn run_study(emulator: &ArmEmulator, study: &str, levels: &[&str], folder: &Path) -> anyhow::Result<()> {
    let out = folder.join(study);
    let out = out.to_str().context("the scratch folder's path is not text")?;
    let mut arguments = vec!["lab", "run", study, "--subject", "rust", "--forks", "1", "--samples", "2"];
    arguments.extend(["--link", "none", "--json", "--out", out]);
    arguments.extend(levels.iter().flat_map(|level| ["--factor", *level]));
    let report = succeed(emulator, &arguments)?;
    is_untimed(&report, &["seconds", "instrument"])?;
    let records = std::fs::read_to_string(Path::new(out).join("records.jsonl"))?;
    let records: Vec<Value> = records.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(!records.is_empty() && report["ok"] == true, "{study}: {report}");
    let refused = refused(&report);
    ensure!(refused.is_empty(), "{study}: {}", refused.join("; "));
    records.iter().try_for_each(judge).with_context(|| study.to_owned())?;
    let raw_files = std::fs::read_dir(Path::new(out).join("raw"))?.count();
    ensure!(raw_files == 0, "{study}: {raw_files} files of raw samples were kept");
    let page = format!("{out}/report.html");
    is_untimed(&succeed(emulator, &["lab", "report", out, "--html", &page, "--json"])?, &[])?;
    let answers: u64 = records.iter().filter_map(|one| one["counts"]["ok"].as_u64()).sum();
    println!("arm: {study}: {} cells, {answers} answers, all right, none timed", report["cells"]);
    Ok(())
}

/// Lists the subjects that a study left out because they answered wrongly, or could not be started.
pub(super) fn refused(report: &Value) -> Vec<String> {
    let left_out = report["not_run"].as_array().into_iter().flatten();
    let entries =
        left_out.map(|one| [&one["what"], &one["reason"]].map(|text| text.as_str().unwrap_or_default()));
    let is_wrong =
        |reason: &str| ["refused:", "cannot be started:"].iter().any(|word| reason.starts_with(word));
    entries.filter(|[_, reason]| is_wrong(reason)).map(|[what, reason]| format!("{what}: {reason}")).collect()
}

/// Judges a record. Fails unless every exchange was answered rightly and none was timed.
pub(super) fn judge(record: &Value) -> anyhow::Result<()> {
    let (subject, counts) = (&record["subject"]["label"], &record["counts"]);
    ensure!(record["valid"] == true, "{subject} does not count: {}", record["invalid_reason"]);
    ensure!(counts["ok"].as_u64() > Some(0) && counts["ok"] == counts["sent"], "{subject}: {counts}");
    ensure!(
        record["env"]["emulated"].as_str().is_some_and(|why| !why.is_empty()),
        "{subject}: its record names no emulator"
    );
    let is_empty = |name: &str| match &record[name] {
        Value::Null => true,
        Value::Object(object) => object.values().all(Value::is_null),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let timed = ["latency", "first_call_ns", "start_ns", "cpu", "mem", "clock", "energy", "raw"];
    let spans = ["offline_ns", "silence_ns"].map(|name| record["interruption"][name].as_u64().unwrap_or(0));
    ensure!(spans == [0, 0], "{subject}: times of an interruption were kept");
    let present: Vec<&str> = timed.into_iter().filter(|name| !is_empty(name)).collect();
    ensure!(present.is_empty(), "{subject}: kept all the same: {}", present.join(", "));
    Ok(())
}

/// Fails unless an object is marked as not timed, and these fields are empty.
fn is_untimed(report: &Value, fields: &[&str]) -> anyhow::Result<()> {
    ensure!(report["not_timed"].is_string(), "it is not marked as not timed: {report}");
    let present: Vec<&str> = fields.iter().filter(|name| !report[**name].is_null()).copied().collect();
    ensure!(present.is_empty(), "reported nevertheless: {}", present.join(", "));
    Ok(())
}

/// Runs a command that must succeed, and gives the object of its last line.
fn succeed(emulator: &ArmEmulator, arguments: &[&str]) -> anyhow::Result<Value> {
    let output = emulator.run(arguments)?;
    let stdout = text(&output.stdout);
    let command = || format!("`stentor {}`", arguments.join(" "));
    ensure!(output.status.success(), "{} failed:\n{stdout}\n{}", command(), text(&output.stderr));
    let last = stdout.trim_end().lines().next_back().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("{} printed no object: {last}", command()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
