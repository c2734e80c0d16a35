mod kept;

pub(crate) use kept::kept;

use super::*;
use proptest::prelude::*;
use std::path::Path;

fn record(fork: u32) -> ForkRecord {
    let latency =
        PhaseLatency::of(&[1_000, 2_000, 3_000], From::Start).expect("written").expect("three times");
    ForkRecord {
        schema: SCHEMA.into(),
        study: "cai-2009".into(),
        cell: BTreeMap::from([("items".into(), "200".into())]),
        fork,
        valid: true,
        latency: BTreeMap::from([(phase::RTT.into(), latency)]),
        start_ns: Sides { client: Some(5), server: None },
        ..ForkRecord::default()
    }
}

fn written(records: &[ForkRecord], path: &Path) {
    let mut writer = RecordWriter::append(path).expect("opened");
    records.iter().for_each(|record| writer.write(record).expect("written"));
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = [record(1), record(2)];
    written(&records, &directory.path().join(RECORDS));
    assert_eq!(read_directory(directory.path()).expect("read"), records);
}

/// Writes records as a compressed file, and returns its path.
fn written_compressed(records: &[ForkRecord], directory: &Path) -> std::path::PathBuf {
    let plain = directory.join("plain");
    written(records, &plain);
    let packed = zstd::encode_all(&*std::fs::read(&plain).expect("there"), 3).expect("compressed");
    let path = directory.join("records.jsonl.zst");
    std::fs::write(&path, packed).expect("written");
    path
}

#[test]
fn a_compressed_file_is_read_like_a_plain_one_which_comes_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written_compressed(&[record(1), record(2)], directory.path());
    assert_eq!(file_of(directory.path()), Some(path));
    assert_eq!(read_directory(directory.path()).expect("read"), [record(1), record(2)]);
    written(&[record(3)], &directory.path().join(RECORDS));
    assert_eq!(read_directory(directory.path()).expect("read"), [record(3)]);
}

#[test]
fn a_compressed_file_that_is_torn_is_refused_with_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written_compressed(&[record(1), record(2)], directory.path());
    let whole = std::fs::read(&path).expect("there");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    let error = read(&path).expect_err("torn").to_string();
    assert!(error.contains("records.jsonl.zst"), "{error}");
}

#[test]
fn a_run_goes_on_after_its_compressed_records() {
    let directory = tempfile::tempdir().expect("a directory");
    written_compressed(&[record(1)], directory.path());
    let plain = directory.path().join(RECORDS);
    decompress(&plain).expect("decompressed");
    written(&[record(2)], &plain);
    decompress(&plain).expect("there already");
    assert_eq!(read_directory(directory.path()).expect("read"), [record(1), record(2)]);
}

#[test]
fn a_torn_last_line_is_left_out_and_cut_off_before_more_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(RECORDS);
    written(&[record(1)], &path);
    let mut torn = std::fs::read(&path).expect("there");
    torn.extend_from_slice(b"{\"schema\":\"stent");
    std::fs::write(&path, torn).expect("written");
    assert_eq!(read(&path).expect("read"), [record(1)]);
    written(&[record(2)], &path);
    assert_eq!(read(&path).expect("read"), [record(1), record(2)]);
}

#[test]
fn a_record_of_an_older_version_is_read_and_what_nobody_looked_at_stays_unsaid() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(RECORDS);
    let line = format!(
        "{{\"schema\":\"{SCHEMA}\",\"study\":\"nunes-2014\",\"bytes\":{{\"up\":{{\"frames\":3,\"ip\":200}}}},\"clock\":null}}\n"
    );
    std::fs::write(&path, line).expect("written");
    let old = &read(&path).expect("read")[0];
    assert_eq!((old.overlaps.as_ref(), old.clock.as_ref(), old.env.commit.as_str()), (None, None, ""));
    let up = old.bytes.as_ref().expect("counted").up;
    assert_eq!((up.ip, up.data_ip, up.data_frames), (200, None, None));
    assert!(!old.overlaps(phase::CLIENT_DESER));
    let again = serde_json::to_string(old).expect("written");
    assert!(
        !again.contains("overlaps") && !again.contains("data_ip") && !again.contains("commit"),
        "{again}"
    );
}

#[test]
fn lines_of_others_are_refused_with_their_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(RECORDS);
    let error = |text: &str| {
        std::fs::write(&path, text).expect("written");
        read(&path).expect_err("no record").to_string()
    };
    assert!(error("{}\n").contains("line 1: its schema is \"\""));
    assert!(error("\n").contains("line 1"));
    let good = serde_json::to_string(&record(1)).expect("written");
    assert!(error(&format!("{good}\n[]\n")).contains("line 2"));
    assert!(error(&format!("{}\n", "x".repeat(LINE_MAX_BYTES + 1))).contains("longer than"));
}

#[test]
fn a_summary_is_of_exact_times_and_the_histogram_of_times_to_a_thousandth() {
    let times: Vec<i64> = (1..=1000).map(|time| time * 1_000).collect();
    let latency = PhaseLatency::of(&times, From::Intended).expect("written").expect("times");
    assert_eq!((latency.p50, latency.p99, latency.max, latency.n), (500_000, 990_000, 1_000_000, 1000));
    assert!((latency.mean - 500_500.0).abs() < 1e-6);
    let histogram = latency.histogram().expect("a histogram");
    let off = (histogram.value_at_quantile(0.5) as f64 / 500_000.0 - 1.0).abs();
    assert!(off < 0.002, "{off}");
    assert_eq!(PhaseLatency::of(&[], From::Start).expect("nothing to write"), None);
}

#[test]
fn a_key_names_the_fork_and_not_the_attempt() {
    let again = ForkRecord { attempt: 2, ..record(1) };
    assert_eq!(again.key(), record(1).key());
    assert_ne!(record(2).key(), record(1).key());
}

proptest! {
    #[test]
    fn no_text_of_a_histogram_panics(hdr in "[A-Za-z0-9+/]{0,200}={0,2}") {
        let _ = PhaseLatency { hdr, ..PhaseLatency::default() }.histogram();
    }

    #[test]
    fn no_line_panics(text in ".{0,200}") {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(RECORDS);
        std::fs::write(&path, text + "\n").expect("written");
        let _ = read(&path);
    }
}

#[test]
fn energy_of_older_records_keeps_the_name_it_was_written_with() {
    let older = r#"{"component":"client processor","joule":1.5,"kind":"modelled","model":"m","coefficients_ref":"c"}"#;
    let older: EnergyValue = serde_json::from_str(older).expect("read");
    assert_eq!(
        (older.name().as_str(), older.joule, older.unresolved),
        ("client processor", Some(1.5), false)
    );
    let newer =
        EnergyValue { component: "processor".into(), side: crate::energy::EnergySide::Client, ..older };
    assert_eq!(newer.name(), "client processor", "both stand in one row of a picture");
}

#[test]
fn a_record_that_forgets_its_times_keeps_what_was_answered_and_nothing_that_an_emulator_took() {
    let mut timed = record(1);
    timed.env.emulated = "built for aarch64".into();
    timed.counts = ExchangeCounts { sent: 3, ok: 3, ..ExchangeCounts::default() };
    timed.bytes = Some(Bytes { exchanges: 3, ..Bytes::default() });
    let original = timed.clone();
    timed.first_call_ns = Some(7);
    (timed.cpu, timed.mem) = (timed.start_ns, timed.start_ns);
    timed.clock = Some(ClockComparison { offset_ns: 9, ..ClockComparison::default() });
    timed.energy = vec![
        serde_json::from_str(
            r#"{"component":"radio","joule":1.5,"kind":"modelled","model":"m","coefficients_ref":"c"}"#,
        )
        .expect("read"),
    ];
    timed.link.lateness_us = Some(Quantiles { p50: 1.0, p99: 2.0, max: 3.0 });
    timed.instrument = Instrument {
        cpu_ns: 5,
        wall_ns: 9,
        steal_percent: Some(1.0),
        late_pages_percent: Some(2.0),
        lateness_us: Quantiles { p50: 1.0, p99: 2.0, max: 3.0 },
    };
    timed.raw = vec![Raw { path: "raw/samples".into(), ..Raw::default() }];
    timed.forget_times();
    assert_eq!(timed, ForkRecord { latency: BTreeMap::new(), start_ns: Sides::default(), ..original });
}

#[test]
fn a_record_from_before_emulation_was_told_is_of_a_real_processor() {
    let older = r#"{"schema":"stentor.lab.result/1","env":{"cpu":"A processor","optimized":true}}"#;
    let older: ForkRecord = serde_json::from_str(older).expect("read");
    assert!(!older.is_emulated());
}

#[test]
fn the_runs_in_a_directory_are_those_folders_that_have_records() {
    let directory = tempfile::tempdir().expect("a directory");
    for (run, file) in [("tuesday", "records.jsonl.zst"), ("monday", RECORDS), ("notes", "notes.txt")] {
        let folder = directory.path().join(run);
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join(file), "").expect("written");
    }
    let runs = runs_in(directory.path()).expect("read");
    assert_eq!(runs, ["monday", "tuesday"].map(|run| directory.path().join(run)));
}

#[test]
fn runs_of_the_same_settings_are_told_apart_and_a_single_one_keeps_its_id() {
    let run = || vec![ForkRecord { run_id: "cai-2009-1".into(), ..ForkRecord::default() }];
    let ids = |runs| joined(runs).into_iter().map(|record| record.run_id).collect::<Vec<_>>();
    assert_eq!(ids(vec![run()]), ["cai-2009-1"]);
    assert_eq!(ids(vec![run(), run()]), ["cai-2009-1 (1)", "cai-2009-1 (2)"]);
}
