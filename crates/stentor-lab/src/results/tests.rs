//! Artificial records with known parameters.

use super::*;
use crate::claims::ClaimVerdict::{DoesNotHold, Holds, NotTestable, SetByExperiment, Undecided};
use crate::record::{
    Bytes, DirectionBytes, Environment, ExchangeCounts, ForkRecord, RecordedLink, SCHEMA, Sides, Subject,
    phase,
};
use crate::record::{From, PhaseLatency};
use crate::statistics::Samples;
use crate::statistics::invented::Invented;

mod chance;

/// A fork of cai-2009 with a median exchange of about `ms`.
pub(crate) fn record(
    subject: &str,
    kind: &str,
    items: &str,
    fork: u32,
    ms: f64,
    invented: &mut Invented,
) -> ForkRecord {
    let owned = str::to_owned;
    ForkRecord {
        schema: owned(SCHEMA),
        run_id: owned("r1"),
        ended: owned("2026-11-22T03:00:00Z"),
        study: owned("cai-2009"),
        variant: owned("paper"),
        experiment: owned("query latency (Zend)"),
        cell: BTreeMap::from([(owned("type"), owned(kind)), (owned("items"), owned(items))]),
        subject: Subject {
            label: owned(subject),
            stack: owned("period"),
            client: format!("{subject}/php"),
            server: format!("{subject}/php"),
            ..Subject::default()
        },
        fork,
        attempt: 1,
        seed: 7,
        env: Environment {
            kernel: owned("6.1"),
            cpu: owned("A processor"),
            cores: 2,
            rig: owned("netns"),
            ..Environment::default()
        },
        link: RecordedLink { profile: owned("lan"), ..RecordedLink::default() },
        valid: true,
        outcome: owned("finished"),
        counts: ExchangeCounts { sent: 60, ok: 60, warmup_discarded: 5, ..ExchangeCounts::default() },
        latency: latency(fork, ms, invented),
        first_call_ns: Some((ms * 20.0 * 1e6) as u64),
        start_ns: Sides { client: Some(80_000_000), server: Some(120_000_000) },
        bytes: Some(bytes(items.parse::<u64>().unwrap_or(1000) * 20)),
        cpu: Sides { client: Some((ms * 0.3e6 * 60.0) as u64), server: Some((ms * 0.4e6 * 60.0) as u64) },
        mem: Sides { client: Some(24 << 20), server: Some(31 << 20) },
        ..ForkRecord::default()
    }
}

fn latency(fork: u32, ms: f64, invented: &mut Invented) -> BTreeMap<String, PhaseLatency> {
    let times: Vec<i64> = (0..60).map(|_| (ms * f64::exp(0.08 * invented.normal()) * 1e6) as i64).collect();
    let part = |share: f64| {
        let mut sorted: Vec<u64> = times.iter().map(|time| (*time as f64 * share) as u64).collect();
        sorted.sort_unstable();
        let at = |share: f64| sorted[(share * sorted.len() as f64) as usize];
        let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
        // Histograms are slow to make without optimizations; the first fork is enough.
        let whole = || PhaseLatency::of(&times, From::Start).expect("written");
        let whole = (fork == 1 && share == 1.0).then(whole).flatten();
        let (p50, p95, p99, n) = (at(0.5), at(0.95), at(0.99), sorted.len() as u64);
        whole.unwrap_or_else(|| PhaseLatency { mean, p50, p95, p99, n, ..PhaseLatency::default() })
    };
    let parts = [
        (phase::RTT, 1.0),
        (phase::CLIENT_SER, 0.05),
        (phase::REQUEST, 0.5),
        (phase::TRANSFER, 0.2),
        (phase::CLIENT_DESER, 0.25),
    ];
    parts.into_iter().map(|(phase, share)| (phase.to_owned(), part(share))).collect()
}

/// Bytes of 60 exchanges, each on a connection of its own.
fn bytes(size: u64) -> Bytes {
    let traffic = |payload: u64, headers: u64| DirectionBytes {
        frames: 60 * (payload / 1400 + 2),
        ip: 60 * (payload * 2 + headers + 52 * (payload / 1400 + 5)),
        tcp_payload: 60 * (payload * 2 + headers),
        app: 60 * payload * 2,
        payload: 60 * payload,
        ..DirectionBytes::default()
    };
    Bytes {
        source: "capture".into(),
        exchanges: 60,
        up: traffic(40, 180),
        down: traffic(size, 160),
        handshake: DirectionBytes { frames: 180, ip: 60 * 160, ..DirectionBytes::default() },
    }
}

/// A small study in which REST is fast, SOAP a third slower, and XML-RPC slow with objects.
pub(crate) fn study(forks: u32, seed: u64) -> Vec<ForkRecord> {
    let mut invented = Invented::new(seed);
    let mut records = Vec::new();
    for fork in 1..=forks {
        for kind in ["Int", "String", "Object"] {
            for items in ["200", "400", "800", "1600", "3200"] {
                for subject in ["REST", "SOAP", "XML-RPC"] {
                    let size: f64 = items.parse().expect("a number");
                    let factor = match (subject, kind) {
                        ("REST", _) => 1.0,
                        ("SOAP", _) => 1.35,
                        (_, "Object") => 8.0,
                        _ => 2.0,
                    };
                    let ms = (0.4 + size * 0.004) * factor * f64::exp(0.05 * invented.normal());
                    records.push(record(subject, kind, items, fork, ms, &mut invented));
                }
            }
        }
    }
    records
}

fn of(records: Vec<ForkRecord>) -> Results {
    Results::of(records).expect("one study")
}

/// Judges all claims and returns the findings for one.
pub(crate) fn finding(results: &Results, id: &str) -> ClaimFindings {
    let verdicts = verdicts(results).expect("judged").expect("a study with claims");
    verdicts.claims.into_iter().find(|one| one.judged.statement.id == id).expect(id)
}

#[test]
fn records_of_a_cell_come_together_and_invalid_ones_stay_outside() {
    let mut records = study(3, 1);
    records[0].valid = false;
    records[0].invalid_reason = "late".into();
    let mut again = record("REST", "Int", "200", 1, 1.2, &mut Invented::new(9));
    again.attempt = 2;
    records.push(again);
    let results = of(records);
    assert_eq!((results.cells.len(), results.uncounted().count()), (45, 1));
    let first =
        results.cells.iter().find(|cell| cell.name == "REST" && cell.levels["type"] == "Int").expect("there");
    assert_eq!((first.forks.len(), first.invalid, first.levels["items"].as_str()), (3, 1, "200"));
}

#[test]
fn levels_are_ordered_by_size_and_not_by_letters() {
    let results = of(study(1, 1));
    assert_eq!(results.factors()["items"], ["200", "400", "800", "1600", "3200"]);
    assert_eq!(cell::size("100Kb"), Some(100_000.0));
    assert_eq!((cell::size("4055 B"), cell::size("Int")), (Some(4055.0), None));
}

#[test]
fn records_of_two_studies_are_no_report() {
    let mut records = study(1, 1);
    records[0].study = "nunes-2014".into();
    assert!(matches!(Results::of(records), Err(ResultsError::Mixed(_))));
    assert!(matches!(Results::of(Vec::new()), Err(ResultsError::Empty)));
}

#[test]
fn ratios_are_to_the_fastest_subject_with_the_papers_beside_them() {
    let results = of(study(5, 2));
    let groups = ratios(&results);
    let [group] = &groups[..] else { panic!("one group, not {}", groups.len()) };
    assert_eq!((group.base.as_str(), group.rows.len()), ("REST", 30));
    let row = group
        .rows
        .iter()
        .find(|row| row.subject == "XML-RPC" && row.place.contains("3200") && row.place.contains("Object"));
    let row = row.expect("there");
    let ours = row.ours.expect("five forks");
    assert!(ours.low.is_some_and(|low| low < 8.0) && ours.high.is_some_and(|high| high > 8.0), "{ours:?}");
    // Table 5: 8.1609 over 1.0634 seconds.
    assert!(row.published.is_some_and(|ratio| ratio > 7.0 && ratio < 8.5), "{row:?}");
}

#[test]
fn claims_are_judged_by_records_and_corrected_for_their_number() {
    let results = of(study(6, 3));
    let verdicts = verdicts(&results).expect("judged").expect("a study with claims");
    assert!(verdicts.period);
    let find = |id: &str| verdicts.claims.iter().find(|one| one.judged.statement.id == id).expect(id);
    // In the artificial records REST is the fastest everywhere.
    let fastest = find("C004-1");
    assert_eq!((fastest.judged.published.verdict, fastest.period.verdict), (DoesNotHold, Holds));
    assert!(fastest.period.p.is_some_and(|p| p <= 0.05));
    assert_eq!(fastest.modern.verdict, NotTestable);
}

#[test]
fn parsing_and_formatting_are_judged_by_what_both_sides_spend_on_them() {
    let judged = |like: &str| {
        let mut records = study(6, 3);
        for record in &mut records {
            let times = record.latency[like].clone();
            for phase in [phase::SERVER_DESER, phase::SERVER_SER] {
                record.latency.insert(phase.to_owned(), times.clone());
            }
        }
        finding(&of(records), "C004-7").period.verdict
    };
    // The client takes 30 % of each artificial exchange, and the claim requires half.
    assert_eq!(judged(phase::CLIENT_SER), DoesNotHold);
    assert_eq!(judged(phase::CLIENT_DESER), Holds);
    assert_eq!(
        finding(&of(study(6, 3)), "C004-7").period.verdict,
        NotTestable,
        "the server's part is missing"
    );
}

#[test]
fn a_file_that_is_parsed_is_a_figure_of_table_2_and_its_exchange_is_none() {
    let records = (1..=3).map(|fork| {
        let invented = &mut Invented::new(u64::from(fork));
        let mut record = record("simplexml_load_file", "Int", "200", fork, 10.0, invented);
        ("XML parsing (file)").clone_into(&mut record.experiment);
        record.cell = BTreeMap::from([("strings".to_owned(), "200".to_owned())]);
        record
    });
    let results = of(records.collect());
    let figures = evidence::figures(&results, &evidence::chosen(&results, true), CONFIDENCE);
    let all: Vec<_> = figures.iter().collect();
    let [figure] = all[..] else { panic!("one figure: {all:?}") };
    assert_eq!((figure.experiment.as_str(), figure.subject.as_str()), ("XML parsing", "simplexml_load_file"));
    assert_eq!(figure.factors["strings"], "200");
    let crate::claims::figures::FigureValue::Number(seconds) = figure.value else { panic!("{figure:?}") };
    assert!((0.0023..0.0027).contains(&seconds.value), "a quarter of 10 ms: {seconds}");
}

#[test]
fn a_single_fork_decides_nothing() {
    assert_eq!(finding(&of(study(1, 3)), "C004-1").period.verdict, Undecided);
}

#[test]
fn software_of_today_does_not_speak_for_the_paper() {
    let mut records = study(6, 3);
    records.iter_mut().for_each(|record| record.subject.stack = "rust".into());
    let verdicts = verdicts(&of(records)).expect("judged").expect("a study with claims");
    let fastest = verdicts.claims.iter().find(|one| one.judged.statement.id == "C004-1").expect("there");
    assert!(!verdicts.period && fastest.period.verdict == NotTestable);
    assert_eq!(fastest.modern.verdict, Holds);
}

#[test]
fn the_number_of_items_explains_most_of_an_invented_study() {
    let designs = designs(&of(study(4, 4)));
    let [design] = &designs[..] else { panic!("one design") };
    let names: Vec<&str> = design.effects.effects.iter().map(|effect| effect.name.as_str()).collect();
    assert_eq!(names[..3], ["items", "type", "items x type"]);
    assert!(design.effects.effects[0].share > 0.4 && design.effects.effects[0].is_sure(), "{design:?}");
    assert_eq!(design.factors[0].1, ["200", "3200"]);
}

#[test]
fn a_part_without_a_full_design_has_the_effects_at_the_papers_setting() {
    let mut records = Vec::new();
    for (subject, ms) in [("Axis2", 4.0), ("CXF", 2.0)] {
        for (message, size) in [("100Kb", 1.0), ("500Kb", 6.0)] {
            for (buffering, service, work) in
                [("unchanged", "1 sort", 1.0), ("whole messages", "200 sorts", 50.0)]
            {
                records.extend((1..=4).map(|fork| {
                    let ms = ms * size + work;
                    let mut record = record(subject, "", "", fork, ms, &mut Invented::new(u64::from(fork)));
                    "nunes-2014".clone_into(&mut record.study);
                    "client time".clone_into(&mut record.experiment);
                    let cell = [("message", message), ("buffering", buffering), ("service", service)];
                    record.cell = cell.map(|(name, level)| (name.into(), level.into())).into();
                    record
                }));
            }
        }
    }
    let designs = designs(&of(records));
    let [design] = &designs[..] else { panic!("one design") };
    assert!(design.name.ends_with("at the paper's setting"), "{}", design.name);
    let factors: Vec<&str> = design.factors.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((factors, design.forks), (vec!["message", "subject"], 16));
}

#[test]
fn the_same_twice_is_the_same_and_a_slower_run_is_slower() {
    let (first, same) = (of(study(12, 5)), of(study(12, 6)));
    let slower: Vec<ForkRecord> = study(12, 7).into_iter().map(slow_down).collect();
    let changes = |other: &Results| {
        compare(&first, other, &METRICS[0], 0.1).into_iter().map(|one| one.change).collect::<Vec<_>>()
    };
    let unchanged = changes(&same);
    assert_eq!(unchanged.len(), 45);
    assert!(
        !unchanged.contains(&CellChange::Slower) && !unchanged.contains(&CellChange::Faster),
        "{unchanged:?}"
    );
    assert!(changes(&of(slower)).iter().all(|change| *change == CellChange::Slower));
}

#[test]
fn a_run_whose_forks_differ_more_has_another_spread_though_its_middle_is_the_same() {
    let (first, same) = (of(study(12, 5)), of(study(12, 6)));
    let restless = |mut record: ForkRecord| {
        let factor = if record.fork.is_multiple_of(2) { 4.0 } else { 0.25 };
        record.latency.values_mut().for_each(|times| times.p50 = (times.p50 as f64 * factor) as u64);
        record
    };
    let other = of(study(12, 6).into_iter().map(restless).collect());
    let distances = |other: &Results| {
        let found = compare(&first, other, &METRICS[0], 0.1);
        found.into_iter().map(|one| one.spread_distance).collect::<Samples>().quantile(0.5).expect("some")
    };
    let (quiet, loud) = (distances(&same), distances(&other));
    assert!(quiet < 0.5 && loud >= 0.5, "{quiet}, {loud}");
}

#[test]
fn a_cells_percentiles_are_printed_where_its_forks_are_enough() {
    let fork = |fork: u32| {
        let mut invented = Invented::new(u64::from(fork));
        let mut one = record("REST", "strings", "200", fork, 2.0, &mut invented);
        let times: Vec<i64> = (0..60).map(|_| (2e6 * f64::exp(0.2 * invented.normal())) as i64).collect();
        let latency = PhaseLatency::of(&times, From::Start).expect("written").expect("samples");
        one.latency.insert(phase::RTT.to_owned(), latency);
        one
    };
    let (several, few) = (of((1..=12).map(fork).collect()), of((1..=5).map(fork).collect()));
    let found = several.cells[0].quantile_ms(0.95).expect("samples");
    assert!(found.low <= found.value && found.value <= found.high && found.low < found.high, "{found:?}");
    assert!(several.cells[0].quantile_ms(0.5).expect("samples").value < found.value);
    assert_eq!(few.cells[0].quantile_ms(0.95), None);
    assert_eq!(several.cells[0].quantile_ms(0.99), None, "seven samples are beyond it");
    let printed = |results: &Results| tables::cells(results).rows[0][5..7].to_vec();
    assert_eq!(printed(&few), ["–", "–"]);
    assert!(printed(&several)[0].contains('['), "{:?}", printed(&several));
    assert!(several.cells[0].quantile_ms(0.95) == Some(found), "the same samples give the same interval");
}

#[test]
fn a_cell_says_how_many_of_its_forks_did_not_settle() {
    let mut records = study(3, 1);
    let text = |records: &[ForkRecord]| tables::cells(&of(records.to_vec())).rows[0][4].clone();
    assert!(!text(&records).contains("settle"), "{}", text(&records));
    let place = &of(records.clone()).cells[0];
    let is_here = |one: &&mut ForkRecord| one.cell == place.levels && one.subject.label == place.subject;
    for record in records.iter_mut().filter(is_here) {
        record.has_settled = Some(record.fork != 2);
    }
    assert!(text(&records).ends_with("(1 of 3 forks did not settle)"), "{}", text(&records));
}

/// Looks at a study of so many rounds, which was planned with so many looks.
fn looked_at(rounds: u32, looks: u32) -> crate::looks::LookFindings {
    let mut records = study(rounds, 3);
    records.iter_mut().for_each(|record| record.looks = Some(looks));
    look(&records, 0.25).expect("records of one study")
}

#[test]
fn a_study_of_large_differences_is_settled_after_some_rounds_and_not_after_two() {
    let (few, many) = (looked_at(2, 4), looked_at(30, 4));
    assert!(few.open > 0 && few.of == many.of, "{few:?} {many:?}");
    assert_eq!(many.open, 0, "{many:?}");
}

#[test]
fn a_run_that_was_looked_at_more_often_needs_more_certainty() {
    let p = |looks: u32| {
        let mut records = study(6, 3);
        records.iter_mut().for_each(|record| record.looks = Some(looks));
        finding(&of(records), "C004-1").period.p.expect("decided")
    };
    assert!((p(4) / p(1) - 4.0).abs() < 1e-6, "{} and {}", p(4), p(1));
}

fn slow_down(mut record: ForkRecord) -> ForkRecord {
    record.latency.values_mut().for_each(|times| times.p50 *= 2);
    record
}

#[test]
fn our_figures_are_readable_as_figures() {
    let text = figures_csv(&of(study(3, 8)), CONFIDENCE);
    let read = crate::claims::figures::Figures::parse(&text).expect("readable");
    // For cells with strings, parsing is a separate figure.
    assert_eq!(read.iter().count(), 45 + 15);
    assert!(read.iter().all(|figure| figure.metric == "latency" && figure.unit == "s"));
}

#[test]
fn processor_time_is_shared_out_among_the_measured_exchanges_alone() {
    let records = study(1, 3);
    let metric = metric::Metric::find("client_cpu").expect("known");
    let [record, ..] = &records[..] else { panic!("no record") };
    let each = (metric.of)(record).expect("measured");
    assert!((each * 1e6 * 60.0 - record.cpu.client.expect("measured") as f64).abs() < 1.0, "{each}");
    let load = metric::client_load_percent(record).expect("measured");
    assert!((28.0..=32.0).contains(&load), "it computes for three tenths of its time: {load}");
}

#[test]
fn two_frameworks_of_today_are_compared_where_both_run_on_the_same() {
    let mut records = Vec::new();
    for (subject, stack, ms) in
        [("Axis2", "axis2-2/jdk17", 9.0), ("CXF", "cxf-4/jdk17", 5.0), ("Axis2", "rust", 1.0)]
    {
        for fork in 1..=3 {
            let mut record = record(subject, "Int", "200", fork, ms, &mut Invented::new(u64::from(fork)));
            ("nunes-2014").clone_into(&mut record.study);
            ("client time").clone_into(&mut record.experiment);
            record.cell = [("cpu", "700MHz"), ("message", "500Kb")].map(|(n, l)| (n.into(), l.into())).into();
            stack.clone_into(&mut record.subject.stack);
            records.push(record);
        }
    }
    let results = of(records);
    let chosen: Vec<&str> =
        evidence::chosen(&results, false).iter().map(|cell| cell.stack.as_str()).collect();
    assert_eq!(chosen, ["axis2-2/jdk17", "cxf-4/jdk17"]);
}
