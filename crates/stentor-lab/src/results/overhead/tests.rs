use super::super::figures_csv;
use super::super::tests::{finding, record};
use super::*;
use crate::claims::ClaimVerdict;
use crate::record::{BATTERY_BY_EXCHANGE, Bytes};
use crate::statistics::invented::Invented;

/// Headers of data packets in each direction, and below the bytes of handshake and acknowledgements.
const HEADERS: u64 = 280;
const CONTROL: u64 = 180;

fn bytes(payload: u64, headers: u64, is_of_today: bool) -> Bytes {
    let exchanges = 10;
    let data = exchanges * (payload + headers);
    let way = DirectionBytes {
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
    of(records(is_of_today, |_| 20.0))
}

fn of(records: Vec<ForkRecord>) -> Results {
    Results::of(records).expect("one study")
}

/// Four forks of each cell, with a round trip of `ms(payload)`.
fn records(is_of_today: bool, ms: impl Fn(&str) -> f64) -> Vec<ForkRecord> {
    let mut invented = Invented::new(5);
    let mut records = Vec::new();
    for fork in 1..=4 {
        for (subject, factor) in [("REST", 1), ("SOAP", 2)] {
            for payload in PAYLOADS {
                let mut one = record(subject, "", "", fork, ms(payload), &mut invented);
                let size = payload.parse().expect("a number");
                one.study = STUDY.into();
                one.experiment = "RTT".into();
                one.cell = BTreeMap::from([("payload".into(), payload.into())]);
                one.bytes = Some(bytes(size, HEADERS * factor + size / 40, is_of_today));
                records.push(one);
            }
        }
    }
    records
}

fn verdict(results: &Results, id: &str) -> ClaimVerdict {
    finding(results, id).period.verdict
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
    assert_eq!(verdict(&results, "C000-6"), ClaimVerdict::NotTestable);
    assert_eq!(verdict(&study(true), "C000-6"), ClaimVerdict::Holds);
}

#[test]
fn whether_delay_grows_with_the_payload_is_judged_by_the_round_trip_of_each() {
    let judged = |largest: f64| {
        let ms = |payload: &str| if payload == "4055" { largest } else { 20.0 };
        verdict(&of(records(true, ms)), "C000-3")
    };
    assert_eq!(judged(30.0), ClaimVerdict::Holds);
    assert_eq!(judged(20.0), ClaimVerdict::Undecided);
    assert_eq!(judged(13.0), ClaimVerdict::DoesNotHold);
    let ends_missing: Vec<ForkRecord> =
        records(true, |_| 20.0).into_iter().filter(|one| one.cell["payload"] != "64").collect();
    assert_eq!(verdict(&of(ends_missing), "C000-3"), ClaimVerdict::NotTestable);
}

#[test]
fn a_test_of_one_way_delay_is_in_no_round_trip() {
    let mut all = records(true, |_| 20.0);
    let one_way =
        records(true, |_| 5.0).into_iter().map(|one| ForkRecord { experiment: "OWD".into(), ..one });
    all.extend(one_way);
    let results = of(all);
    let (mean, each) =
        (value(&results, "RTT", ALL).expect("there"), value(&results, "RTT each payload", "64 B"));
    assert!((18.0..22.0).contains(&mean), "{mean}");
    assert!(each.is_some_and(|each| (18.0..22.0).contains(&each)), "{each:?}");
    assert_ne!(verdict(&results, "C000-3"), ClaimVerdict::NotTestable);
}

#[test]
fn hours_of_a_model_and_those_cut_by_the_clock_are_marked_and_compared_with_nothing() {
    let line = |rule: &str| {
        let hours = |one: ForkRecord| ForkRecord {
            battery_hours: Some(120.0 + f64::from(one.fork)),
            battery_cut: rule.to_owned(),
            ..one
        };
        let csv = figures_csv(&of(records(true, |_| 20.0).into_iter().map(hours).collect()), CONFIDENCE);
        csv.lines().find(|line| line.contains(",REST,") && line.contains(",BD,")).expect("hours").to_owned()
    };
    assert!(
        line(BATTERY_BY_EXCHANGE).contains(",modelled,\"the hours (BD) are those of a model"),
        "{}",
        line(BATTERY_BY_EXCHANGE)
    );
    assert!(line("").contains(",cut by clock,\"the hours of these records"), "{}", line(""));
}

/// Four forks of eight ways: REST and SOAP with both kinds of connection, GCM and FCM with a near and a far gateway.
fn of_connections() -> Results {
    let mut invented = Invented::new(7);
    let ways = [("REST", "fresh", 8.0), ("REST", "kept", 2.0), ("SOAP", "fresh", 9.0), ("SOAP", "kept", 3.0)];
    let pushes = [("GCM", "LAN", 5.0), ("FCM", "LAN", 5.0), ("GCM", "WAN", 20.0), ("FCM", "WAN", 20.0)];
    let mut all = Vec::new();
    for (fork, payload) in (1..=4).flat_map(|fork| PAYLOADS.map(|payload| (fork, payload))) {
        for (subject, connection, ms) in ways.into_iter().chain(pushes) {
            let mut one = record(subject, "", "", fork, ms, &mut invented);
            one.study = STUDY.into();
            one.experiment = "RTT".into();
            one.subject.stack = "rust".into();
            one.latency.insert(phase::OWD.into(), one.latency[phase::RTT].clone());
            one.cell = BTreeMap::from([("payload".into(), payload.into())]);
            let levels: &[(&str, &str)] = match connection {
                hop @ ("LAN" | "WAN") => &[("hop", hop), ("push_tls", "on"), ("provider_delay", "0 ms")],
                connection => &[("connection", connection), ("tls", "off")],
            };
            one.cell.extend(levels.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())));
            all.push(one);
        }
    }
    of(all)
}

#[test]
fn claims_on_delay_are_judged_with_fresh_and_with_kept_connections() {
    let found = finding(&of_connections(), "C000-16");
    let verdicts: Vec<(&str, ClaimVerdict)> =
        found.at_each_setting(false).into_iter().map(|(setting, one)| (setting, one.verdict)).collect();
    // Fresh connections of REST and SOAP are slower here than kept ones of GCM and FCM.
    let expected = [
        ("connection fresh, hop LAN", ClaimVerdict::SetByExperiment),
        ("connection kept", ClaimVerdict::Holds),
        ("connection kept, hop WAN", ClaimVerdict::Holds),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn delays_stand_beside_rests_with_the_same_kind_of_connection_and_tls() {
    let mut results = of_connections();
    for cell in &mut results.cells {
        cell.levels
            .insert(if cell.levels.contains_key("tls") { "tls" } else { "push_tls" }.into(), "on".into());
    }
    let table = super::super::delays::delays(&results);
    let row = |connection: &str, subject: &str| {
        let mut rows = table.rows.iter().filter(|row| row[0] == connection && row[2].starts_with(subject));
        rows.next().cloned()
    };
    let ratio = |connection: &str| -> f64 {
        let row = row(connection, "FCM").expect("a row");
        row[4].split(' ').next().expect("a ratio").parse().expect("a number")
    };
    assert!((2.4..2.6).contains(&ratio("kept, hop LAN")), "{}", ratio("kept, hop LAN"));
    assert!((9.0..11.0).contains(&ratio("kept, hop WAN")), "{}", ratio("kept, hop WAN"));
    assert_eq!(row("fresh", "FCM"), None);
    assert_eq!(row("kept", "REST").expect("a row")[4], "–");
}

#[test]
fn one_way_delays_are_by_packets_only_where_each_fork_has_them() {
    // By packets a message takes a tenth of what it takes by the clock.
    let judged = |with_packets: fn(&ForkRecord) -> bool| {
        let mut all = records(true, |_| 20.0);
        for one in &mut all {
            one.latency.insert(phase::OWD.into(), one.latency[phase::RTT].clone());
            let by_packets = record("REST", "", "", one.fork, 2.0, &mut Invented::new(u64::from(one.fork)));
            if with_packets(one) {
                one.latency.insert(phase::OWD_PACKETS.into(), by_packets.latency[phase::RTT].clone());
            }
        }
        value(&of(all), "OWD", ALL).expect("a mean")
    };
    assert!((1.5..2.5).contains(&judged(|_| true)));
    assert!((18.0..22.0).contains(&judged(|one| one.fork == 1)));
    assert!((18.0..22.0).contains(&judged(|one| one.cell["payload"] != "4055")));
}

#[test]
fn fcm_takes_three_times_as_long_as_rest_on_kept_connections_in_the_committed_run() {
    let Some(records) = crate::record::tests::kept("albertengo-2020") else { return };
    let table = super::super::delays::delays(&of(records));
    let row = |tls: &str, subject: &str| {
        let is_kept = |row: &&Vec<String>| ["kept", "kept, hop LAN"].contains(&row[0].as_str());
        let mut rows = table.rows.iter().filter(is_kept);
        rows.find(|row| row[1] == tls && row[2] == subject).expect(subject).clone()
    };
    let fcm = row("on", "FCM (today's)");
    assert!(fcm[4].starts_with("2.93 ") && fcm[6].starts_with("3.23 "), "{fcm:?}");
    let fcm = row("on", "FCM (period software)");
    assert!(fcm[4].starts_with("1.35 ") && fcm[6].starts_with("1.33 "), "{fcm:?}");
    // The paper has 13.4 kB.
    assert_eq!(row("off", "REST (period software)")[7], "13.4");
}
