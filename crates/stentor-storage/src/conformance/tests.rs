use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use super::model::{self, ModelStep};
use super::{BenchmarkLoad, benchmark};
use crate::sqlite::SqliteStore;

/// Names the cases that the files of a port define.
fn defined(port: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance").join(port);
    let files = std::fs::read_dir(folder).expect("the folder of cases");
    let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a text"));
    let names = |text: String| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        lines.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())).collect::<Vec<_>>()
    };
    texts.flat_map(names).collect()
}

#[test]
fn every_case_is_in_its_suite_once() {
    let suites = include_str!("suites.rs");
    for port in ["store", "queue"] {
        let cases = defined(port);
        assert!(cases.len() > 10, "the cases of the {port} were not found");
        for case in cases {
            let listed = suites.lines().filter(|line| line.trim() == case).count();
            assert_eq!(listed, 1, "{case} is defined and must be listed once in suites.rs");
        }
    }
}

/// Makes a script from a number; the same every time.
fn script(number: u64) -> Vec<ModelStep> {
    let mut state = number;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..200).map(|_| (byte(), byte(), byte())).collect()
}

#[tokio::test]
async fn random_scripts_reach_everything_that_may_happen() {
    let mut reached = BTreeSet::new();
    for number in 0..20 {
        reached
            .extend(model::run(&SqliteStore::temporary().expect("a store"), &script(number)).await.reached);
    }
    let all = [
        "a chunk given back",
        "a collapsed delivery",
        "a crash with leases",
        "a device gone at sending time",
        "a device removed",
        "a lease ran out",
        "a message sent at once",
        "a paused chunk asked for",
        "a stale settlement",
        "an awaited chunk",
        "a stop",
        "a void chunk asked for",
        "an ambiguous chunk",
        "canceled",
        "children",
        "chunks expired",
        "paused",
        "running",
    ];
    for kind in all {
        assert!(reached.contains(kind), "{kind} was never reached: {reached:?}");
    }
}

#[tokio::test]
async fn the_benchmark_reaches_every_device() {
    let load = BenchmarkLoad { devices: 500, batch_devices: 100, chunk_max_devices: 50 };
    let start = Instant::now();
    let figures = benchmark(&SqliteStore::temporary().expect("a store"), load, || start.elapsed()).await;
    let expected_ratio = load.chunk_max_devices as f64;
    assert!(figures.devices_per_second > 0.0);
    let ratio = figures.deliveries_per_second / figures.chunks_per_second;
    assert!((ratio - expected_ratio).abs() < 1e-6, "ten chunks of fifty devices: {figures:?}");
}
