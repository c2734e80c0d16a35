//! Energy measurements by the command: a simulated serial meter, a directory in place of /sys, captures and logs.

use crate::process::{run, run_json, stentor};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

#[track_caller]
fn assert_near(value: &Value, expected: f64, off: f64) {
    let number = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((number - expected).abs() <= off, "{number} is not within {off} of {expected}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A pseudo terminal: the meter's end, and the path of the port.
fn port() -> (File, File, PathBuf) {
    let meter = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&meter).unwrap();
    unlockpt(&meter).unwrap();
    let path = PathBuf::from(ptsname(&meter, Vec::new()).unwrap().into_string().unwrap());
    // Kept open and raw, so that nothing is echoed or lost before the recorder has opened it.
    let held = File::open(&path).unwrap();
    let mut settings = tcgetattr(&held).unwrap();
    settings.make_raw();
    tcsetattr(&held, OptionalActions::Now, &settings).unwrap();
    (File::from(meter), held, path)
}

/// Readings of `seconds` at 170 a second: 5 V, and a current that swings around 0.4 A once a second.
fn readings(seconds: u32) -> Vec<String> {
    let reading = |place: u32| {
        let time = f64::from(place) / 170.0;
        let ampere = 0.4 + 0.2 * (std::f64::consts::TAU * time).sin();
        format!("{time:.6},5.000,{ampere:.4}\n")
    };
    (0..=seconds * 170).map(reading).collect()
}

#[test]
fn a_simulated_serial_meter_of_known_joules_comes_out_within_a_thousandth() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("meter.csv");
    let (mut meter, held, path) = port();
    let arguments = ["lab", "energy", "record", "--rate", "170", "--port", text(&path), "--out", text(&out)];
    // It ends when the meter is closed; the seconds are a timeout for a failing test.
    let mut recorder = stentor(&[&arguments[..], &["--seconds", "60", "--json"]].concat());
    let mut child = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("recording"), "{ready}");
    // The first line is truncated, and there is noise in the middle.
    meter.write_all(b"33,0.4\n").unwrap();
    let lines = readings(20);
    for (place, line) in lines.iter().enumerate() {
        meter.write_all(line.as_bytes()).unwrap();
        if place == 1000 {
            meter.write_all(b"\xff\x00garbage\r\n").unwrap();
        }
    }
    let began = Instant::now();
    let written_lines = || std::fs::read_to_string(&out).unwrap_or_default().lines().count();
    while written_lines() < lines.len() + 1 {
        assert!(began.elapsed() < Duration::from_secs(20), "{} of {} lines", written_lines(), lines.len());
        std::thread::yield_now();
    }
    drop((meter, held));
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The swing adds nothing over whole seconds: 5 V x 0.4 A x 20 s.
    assert_near(&report["values"][0]["joule"], 40.0, 0.04);
    assert_eq!(report["values"][0]["kind"], "measured");
    assert_eq!(
        (&report["readings"], &report["lines_refused"], &report["gaps"]),
        (&json!(3401), &json!(2), &json!(0))
    );
    assert_near(&report["rate"], 170.0, 0.01);

    let (code, report) = run_json(&["lab", "energy", "import", text(&out)]);
    assert_eq!((code, &report["values"][0]["kind"]), (0, &json!("measured")));
    assert_near(&report["values"][0]["joule"], 40.0, 0.04);
    assert_near(&report["period_ms"], 5.882, 0.01);
}

#[test]
fn a_port_that_is_none_or_says_nothing_useful_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.csv");
    let record = |port: &Path| {
        run_json(&["lab", "energy", "record", "--rate", "170", "--port", text(port), "--out", text(&out)])
    };
    let (code, report) = record(&directory.path().join("ttyNone"));
    assert!(code == 1 && report["error"].as_str().unwrap().contains("is the meter plugged in"), "{report}");
    let noise = directory.path().join("noise");
    std::fs::write(&noise, "hello\nworld\n").unwrap();
    let (code, report) = record(&noise);
    assert!(code == 1 && report["error"].as_str().unwrap().contains("check --baud"), "{report}");
}

#[test]
fn meters_of_this_machine_are_read_while_a_command_runs() {
    let directory = tempfile::tempdir().unwrap();
    let zone = directory.path().join("class/powercap/intel-rapl:0");
    std::fs::create_dir_all(&zone).unwrap();
    for (name, content) in
        [("name", "package-0"), ("max_energy_range_uj", "5000000"), ("energy_uj", "4000000")]
    {
        std::fs::write(zone.join(name), content).unwrap();
    }
    let sys = text(directory.path());
    let (code, report) = run_json(&["lab", "energy", "measure", "--sys", sys, "--list"]);
    assert_eq!((code, &report["meters"][0]["component"]), (0, &json!("package-0")));
    // Three joules, over the counter's end.
    let script = format!("echo 1999999 > {}", text(&zone.join("energy_uj")));
    let output = stentor(&["lab", "energy", "measure", "--sys", sys, "--json", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_near(&report["values"][0]["joule"], 3.0, 1e-9);
    let nothing = tempfile::tempdir().unwrap();
    let (code, report) = run_json(&["lab", "energy", "measure", "--sys", text(nothing.path())]);
    assert!(code == 1 && report["error"].as_str().unwrap().contains("energy model"), "{report}");
}

/// A capture in nanoseconds and raw IP: a request and its answer of 400 bytes each half second.
fn capture(directory: &Path, round_trip_ms: u64, count: u64) -> PathBuf {
    let mut bytes: Vec<u8> = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    let mut add = |at_ns: u64, source: u8, destination: u8| {
        let mut ip = [0; 20];
        ip[0] = 0x45;
        ip[12..16].copy_from_slice(&[10, 0, 0, source]);
        ip[16..20].copy_from_slice(&[10, 0, 0, destination]);
        let second = 1000 * MS;
        let numbers = [(at_ns / second) as u32, (at_ns % second) as u32, 20, 400];
        bytes.extend(numbers.map(u32::to_le_bytes).concat());
        bytes.extend(ip);
    };
    for round in 0..count {
        add(round * 500 * MS, 2, 1);
        add((round * 500 + round_trip_ms) * MS, 1, 2);
    }
    let path = directory.join("trace.pcap");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_capture_becomes_joules_by_state() {
    let directory = tempfile::tempdir().unwrap();
    let trace = capture(directory.path(), 100, 100);
    let timeline = directory.path().join("states.csv");
    let arguments = [
        "lab",
        "energy",
        "model",
        "--trace",
        text(&trace),
        "--radio",
        "wifi-s2",
        "--timeline",
        text(&timeline),
    ];
    let (code, report) = run_json(&[&arguments[..], &["--cpu-seconds", "2", "--cpu-watt", "0.5"]].concat());
    assert_eq!((code, &report["kind"], &report["device"]), (0, &json!("modelled"), &json!("10.0.0.2")));
    assert_eq!((&report["bytes_up"], &report["bytes_down"]), (&json!(40_000), &json!(40_000)));
    // 99 half seconds of 320 ms awake, and the last exchange.
    assert_near(&report["joule"], 99.0 * (0.32 * 0.25 + 0.18 * 0.03) + 0.32 * 0.25, 1e-6);
    assert_near(&report["watt"], 0.171, 0.001);
    assert_eq!(report["values"][1]["joule"], json!(1.0));
    assert_eq!(report["timeline"].as_array().unwrap().len(), 199);
    assert_eq!(std::fs::read_to_string(&timeline).unwrap().lines().count(), 200);
    let band = &report["joule_band"];
    assert!(band[0].as_f64() < report["joule"].as_f64() && report["joule"].as_f64() < band[1].as_f64());

    let people = String::from_utf8(run(&arguments).stdout).unwrap();
    for words in ["modelled, nothing was measured", "To be known:", "EnergyBox", "sleep", "first sender"] {
        assert!(people.contains(words), "{words} is not in {people}");
    }
    let (code, report) = run_json(&[&arguments[..7], &["--device-address", "10.9.9.9"]].concat());
    assert!(code == 2 && report["error"].as_str().unwrap().contains("--device-address"), "{report}");
}

#[test]
fn a_battery_is_emptied_four_times_and_its_log_can_be_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let trace = capture(directory.path(), 100, 3);
    let log = directory.path().join("discharge.csv");
    let arguments =
        ["lab", "energy", "battery", "--trace", text(&trace), "--radio", "wifi-s2", "--cell-mah", "10"];
    let (code, report) = run_json(&[&arguments[..], &["--out", text(&log)]].concat());
    assert_eq!((code, report["runs"].as_array().unwrap().len(), &report["kind"]), (0, 6, &json!("modelled")));
    let hours = report["hours"].as_f64().unwrap();
    // 10 mAh are 138 J.
    assert!((0.2..0.25).contains(&hours), "{hours}");
    assert!(report["hours_band"][0].as_f64() < Some(hours) && report["hours_band"][1].as_f64() > Some(hours));
    let all = std::fs::read_to_string(&log).unwrap();
    let first = |line: &&str| line.starts_with("1,") || line.starts_with("run");
    let one: Vec<&str> = all.lines().filter(first).collect();
    let single = directory.path().join("one.csv");
    std::fs::write(&single, one.join("\n")).unwrap();
    let (code, report) = run_json(&["lab", "energy", "import-log", text(&single)]);
    assert_eq!((code, &report["kind"], &report["is_extrapolated"]), (0, &json!("imported"), &json!(false)));
    assert_near(&report["hours"], hours, 0.01 * hours);
}

#[test]
fn a_meters_file_and_a_subjects_samples_give_joules_by_phase() {
    let directory = tempfile::tempdir().unwrap();
    let (meter, samples) = (directory.path().join("meter.csv"), directory.path().join("client.bin"));
    std::fs::write(&meter, readings(2).concat()).unwrap();
    let sample = |begin: u64| {
        let times = [0, 0, begin, begin + 250, begin + 300, begin + 500, begin + 503];
        let mut bytes: Vec<u8> = times.iter().flat_map(|at| (at * MS).to_le_bytes()).collect();
        bytes.resize(64, 0);
        bytes
    };
    std::fs::write(&samples, [sample(250), sample(1000)].concat()).unwrap();
    let arguments =
        ["lab", "energy", "phases", "--side", "client", "--meter", text(&meter), "--samples", text(&samples)];
    let (code, report) = run_json(&arguments);
    assert_eq!(code, 0, "{report}");
    let phase = |name: &str| {
        report["phases"].as_array().unwrap().iter().find(|one| one["component"] == name).unwrap()
    };
    assert_eq!(
        (&phase("deserialize")["unresolved"], &phase("deserialize")["joule"]),
        (&json!(true), &Value::Null)
    );
    // 5 V x (0.4 t - 0.2 cos(2 pi t) / 2 pi) between 0.25 and 1.503 s.
    let until = |time: f64| 2.0 * time - (std::f64::consts::TAU * time).cos() / std::f64::consts::TAU;
    assert_near(&phase("total")["joule"], until(1.503) - until(0.25), 1e-3);
    assert_eq!(
        (&phase("serialize")["kind"], &phase("serialize")["side"]),
        (&json!("imported"), &json!("client"))
    );
    let (code, report) = run_json(&[&arguments[..], &["--offset-seconds", "-1"]].concat());
    assert!(code == 2 && report["error"].as_str().unwrap().contains("--offset-seconds"), "{report}");
}
