use super::super::tests::record;
use super::super::{figures_csv, verdicts};
use super::*;
use crate::record::Bytes;
use crate::statistics::invented::Invented;
use crate::study::Verdict;

/// Headers of data packets each way, and what handshake and acknowledgements take besides.
const HEADERS: u64 = 280;
const CONTROL: u64 = 180;

fn bytes(payload: u64, headers: u64, is_of_today: bool) -> Bytes {
    let exchanges = 10;
    let data = exchanges * (payload + headers);
    let way = Traffic {
        frames: exchanges * 6,
        ip: data + exchanges * CONTROL,
        data_frames: is_of_today.then_some(exchanges * 2),
        data_ip: is_of_today.then_some(data),
        tcp_payload: exchanges * (payload + 200),
        app: exchanges * payload,
        payload: exchanges * payload,
    };
    Bytes { source: "capture".into(), exchanges, up: way, down: way, ..Bytes::default() }
}

fn study(is_of_today: bool) -> Results {
    let mut invented = Invented::new(5);
    let mut records = Vec::new();
    for fork in 1..=4 {
        for (subject, factor) in [("REST", 1), ("SOAP", 2)] {
            for payload in PAYLOADS {
                let mut one = record(subject, "", "", fork, 20.0, &mut invented);
                let size = payload.parse().expect("a number");
                one.study = STUDY.into();
                one.experiment = "RTT".into();
                one.cell = BTreeMap::from([("payload".into(), payload.into())]);
                one.bytes = Some(bytes(size, HEADERS * factor + size / 40, is_of_today));
                records.push(one);
            }
        }
    }
    Results::of(records).expect("one study")
}

fn value(results: &Results, metric: &str, level: &str) -> Option<f64> {
    let csv = figures_csv(results, CONFIDENCE);
    let wanted = format!(",REST,payload={level},{metric},");
    let line = csv.lines().find(|line| line.contains(&wanted))?;
    line.split(',').nth(7)?.parse().ok()
}

fn is_about(found: Option<f64>, wanted: f64) -> bool {
    found.is_some_and(|found| (found - wanted).abs() < wanted * 1e-6)
}

#[test]
fn ndu_and_poh_are_of_data_packets_and_the_full_exchange_stands_beside_them() {
    let results = study(true);
    let overhead = (HEADERS + 1) as f64;
    assert!(is_about(value(&results, "POH in bytes", "64 B"), overhead));
    assert!(is_about(value(&results, "POH in bytes (full exchange)", "64 B"), overhead + CONTROL as f64));
    let percent = |overhead: f64| 100.0 * overhead / (64.0 + overhead);
    assert!(is_about(value(&results, "POH", "smallest (64 B)"), percent(overhead)));
    let full = percent(overhead + CONTROL as f64);
    assert!(is_about(value(&results, "POH (full exchange)", "smallest (64 B)"), full));
    let data: u64 = [64, 256, 1024, 4055].iter().map(|size| 2 * (size + HEADERS + size / 40)).sum();
    assert!(is_about(value(&results, "NDU", SUM), data as f64 / KB));
    let full = (data + 4 * 2 * CONTROL) as f64;
    assert!(is_about(value(&results, "NDU (full exchange)", SUM), full / KB));
}

#[test]
fn the_table_has_both_counts() {
    let table = overhead(&study(true));
    let row = table.rows.iter().find(|row| row[2] == "REST" && row[1].contains("64")).expect("a row");
    assert_eq!(row[3..], ["690", "1050", "281", "461", "81.4", "87.8"].map(str::to_owned), "{row:?}");
}

#[test]
fn records_that_know_no_data_packets_have_the_full_exchange_only_and_judge_nothing() {
    let results = study(false);
    assert_eq!(value(&results, "NDU", SUM), None);
    assert!(value(&results, "NDU (full exchange)", SUM).is_some());
    let judged = |results: &Results| {
        let verdicts = verdicts(results).expect("claims").expect("a dossier");
        verdicts
            .claims
            .into_iter()
            .find(|one| one.judged.statement.id == "C000-6")
            .expect("there")
            .period
            .verdict
    };
    assert_eq!(judged(&results), Verdict::NotTestable);
    assert_eq!(judged(&study(true)), Verdict::Holds);
}
