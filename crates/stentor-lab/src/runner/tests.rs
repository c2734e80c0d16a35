use super::*;
use crate::plan::{PlanChoice, RunProfile, SampleChoice, StudyPlan};
use crate::record::{ClockComparison, From, PhaseLatency, phase};

fn cells(forks: u32) -> Vec<Cell> {
    let samples = SampleChoice { forks: Some(forks), samples: Some(2) };
    let choice = PlanChoice { subjects: vec!["rust".into()], samples, ..PlanChoice::default() };
    let plan = StudyPlan::shipped("cai-2009").expect("readable").expect("there");
    plan.expand(&choice, &roster::ours(&["stentor".to_owned()])).expect("sense").cells
}

fn record(cell: &Cell, fork: u32, attempt: u32, valid: bool) -> ForkRecord {
    ForkRecord {
        variant: cell.variant.clone(),
        experiment: cell.name.clone(),
        cell: cell.levels.clone(),
        subject: crate::record::Subject {
            label: cell.label.clone(),
            client: cell.client.id.clone(),
            server: cell.server.id.clone(),
            ..Default::default()
        },
        fork,
        attempt,
        valid,
        ..ForkRecord::default()
    }
}

fn state(cells: &[Cell], records: Vec<ForkRecord>) -> RunState<'_, Cell> {
    let attempts_max = ValidityLimits::default().attempts_max;
    RunState { cells, attempts_max, records, not_run: Vec::new(), left_out: BTreeSet::new(), refused: 0 }
}

#[test]
fn what_counts_or_was_tried_three_times_is_not_run_again() {
    let cells = cells(2);
    let records = vec![
        record(&cells[0], 1, 1, true),
        record(&cells[1], 1, 1, false),
        record(&cells[1], 1, 2, false),
        record(&cells[2], 1, 3, false),
    ];
    let mut state = state(&cells, records);
    let left = |state: &RunState<'_, Cell>| [0, 1, 2, 3].map(|place| state.is_left(place, 1));
    assert_eq!(left(&state), [false, true, false, true]);
    state.attempts_max = 9;
    assert_eq!(left(&state), [false, true, true, true], "with more attempts a run goes on");
    assert_eq!(state.attempts(&cells[1], 1), 2);
    assert!(state.is_left(0, 2) && !state.is_left(0, 3), "there are two forks");
}

#[test]
fn a_cell_without_its_minimum_of_forks_that_count_is_not_complete() {
    let cells = cells(2);
    let all = |skip: usize| {
        let pairs =
            cells.iter().enumerate().flat_map(|(place, cell)| (1..=2).map(move |fork| (place, cell, fork)));
        pairs.map(|(place, cell, fork)| record(cell, fork, 1, (place, fork) != (skip, 2))).collect()
    };
    let whole = state(&cells, all(usize::MAX)).summary(Duration::ZERO);
    assert!(whole.is_complete());
    assert_eq!(whole.forks_valid, 2 * cells.len() as u64);
    let torn = state(&cells, all(3)).summary(Duration::ZERO);
    assert!(!torn.is_complete());
    assert_eq!((torn.forks_invalid, torn.cells_complete), (1, cells.len() - 1));
}

#[test]
fn a_refused_subject_takes_its_cells_with_it_and_is_told() {
    let cells = cells(1);
    let all = cells.iter().map(|cell| record(cell, 1, 1, true)).collect();
    let mut state = state(&cells, all);
    state.leave_out(0, "refused: it answers wrongly");
    let same =
        cells.iter().filter(|cell| (cell.op, &cell.client.id) == (cells[0].op, &cells[0].client.id)).count();
    assert_eq!(state.left_out.len(), same);
    let summary = state.summary(Duration::ZERO);
    assert_eq!(summary.cells, cells.len() - same);
    assert!(summary.not_run[0].reason.contains("refused"));
    assert_eq!((summary.cells_complete, summary.refused), (summary.cells, 1));
    assert!(!summary.is_complete(), "what is left is complete, and yet a subject was wrong");
}

#[test]
fn the_time_left_follows_how_wrong_the_expectation_was() {
    let mut pace = RemainingTime::new([10.0, 10.0, 20.0].into_iter());
    assert!((pace.seconds_left() - 40.0).abs() < f64::EPSILON);
    pace.began = Instant::now().checked_sub(Duration::from_secs(20)).expect("a while ago");
    pace.done(10.0);
    assert!((pace.seconds_left() - 60.0).abs() < 0.5, "{}", pace.seconds_left());
}

fn sound() -> ForkRecord {
    let latency = PhaseLatency::of(&[1_000_000], From::Start).expect("written").expect("a time");
    let mut record = ForkRecord { latency: [(phase::RTT.into(), latency)].into(), ..ForkRecord::default() };
    record.env.cores = 2;
    (record.counts.sent, record.counts.ok) = (10, 10);
    record
}

#[test]
fn a_fork_counts_when_nothing_was_amiss() {
    assert_eq!(ValidityLimits::default().reason(&sound()), None);
}

#[test]
fn a_late_link_a_busy_machine_a_drop_and_a_failed_exchange_make_a_fork_not_count() {
    let gate = ValidityLimits::default();
    let reason = |change: fn(&mut ForkRecord)| {
        let mut record = sound();
        change(&mut record);
        gate.reason(&record).unwrap_or_default()
    };
    let late = |record: &mut ForkRecord| {
        record.link.lateness_us = Some(Quantiles { p50: 100.0, p99: 65_000.0, max: 99_000.0 });
    };
    assert!(reason(late).contains("the link was late: frames by 65.00 ms"));
    assert!(reason(|record| record.env.load_after = 9.0).contains("load 4.5 for each processor"));
    assert!(reason(|record| record.instrument.lateness_us.p99 = 40_000.0).contains("40 ms late"));
    assert!(
        reason(|record| (record.link.frames, record.link.drops) = (1_000, 20)).contains("dropped 20 of 1000")
    );
    let failed = |record: &mut ForkRecord| record.counts.errors.extend([("status 1".to_owned(), 2)]);
    assert!(reason(failed).contains("2 of 10 exchanges failed"));
    assert!(reason(|record| record.counts.ok = 9).contains("9 of 10 exchanges were answered"));
}

#[test]
fn the_lateness_that_a_fork_may_have_depends_on_the_time_of_its_exchanges() {
    let judged = |profile, exchange_ms: i64, link_us: f64, sleeper_us: f64| {
        let mut record = sound();
        let times =
            PhaseLatency::of(&[exchange_ms * 1_000_000], From::Start).expect("written").expect("a time");
        record.latency.insert(phase::RTT.into(), times);
        record.link.lateness_us = Some(Quantiles { p50: 0.0, p99: link_us, max: link_us });
        record.instrument.lateness_us.p99 = sleeper_us;
        ValidityLimits::of(profile).reason(&record)
    };
    let reason =
        |exchange_ms, link_us, sleeper_us| judged(RunProfile::Standard, exchange_ms, link_us, sleeper_us);
    assert_eq!(reason(10, 900.0, 9_000.0), None);
    assert_eq!(reason(4, 300.0, 4_900.0), None, "two busy processors wake a sleeper so late");
    let link = reason(4, 900.0, 0.0).expect("a fifth of an exchange");
    assert_eq!(link, "the link was late: frames by 0.90 ms, 0.40 ms at most");
    assert_eq!(judged(RunProfile::Quick, 4, 900.0, 0.0), None, "less than a quarter");
    let sleeper = reason(4, 0.0, 9_000.0).expect("two exchanges");
    assert_eq!(sleeper, "the machine was busy: a sleeper was woken 9 ms late, 5.0 ms at most");
    assert!(reason(500, 6_000.0, 0.0).is_some() && reason(1000, 0.0, 21_000.0).is_some());
    assert_eq!(reason(2500, 24_000.0, 24_000.0), None, "less than a hundredth");
    assert!(reason(2500, 26_000.0, 0.0).is_some() && reason(2500, 0.0, 26_000.0).is_some());
}

#[test]
fn a_fork_from_which_the_host_took_memory_does_not_count_unless_nothing_is_decided_by_it() {
    let judged = |profile, late| {
        let mut record = sound();
        record.instrument.late_pages_percent = late;
        ValidityLimits::of(profile).reason(&record)
    };
    assert_eq!(judged(RunProfile::Standard, None), None, "not measured");
    assert_eq!(judged(RunProfile::Standard, Some(5.0)), None);
    assert_eq!(judged(RunProfile::Quick, Some(41.0)), None);
    let reason = judged(RunProfile::Full, Some(5.1)).expect("more than 5 %");
    assert_eq!(reason, "the host took memory away: 5.1 % of touched pages came back late, 5.0 % at most");
}

#[test]
fn on_an_emulated_processor_only_a_failed_exchange_makes_a_fork_not_count() {
    let mut record = sound();
    record.env.emulated = "built for aarch64".into();
    record.env.load_after = 90.0;
    record.instrument.lateness_us.p99 = 400_000.0;
    assert_eq!(ValidityLimits::default().reason(&record), None);
    record.counts.ok = 9;
    assert!(ValidityLimits::default().reason(&record).is_some_and(|why| why.contains("9 of 10")));
}

#[test]
fn a_fork_does_not_count_when_its_clocks_may_be_further_apart_than_a_tenth_of_the_one_way_delay() {
    let mut record = sound();
    let delay = PhaseLatency::of(&[5_000_000], From::Start).expect("written").expect("a time");
    record.latency.insert(phase::OWD.into(), delay);
    record.clock = Some(ClockComparison::shared());
    assert_eq!(ValidityLimits::default().reason(&record), None, "one clock has no bound");
    let estimated = |bound_ns| {
        Some(ClockComparison {
            method: "shortest round trips".into(),
            bound_ns,
            ..ClockComparison::default()
        })
    };
    record.clock = estimated(400_000);
    assert_eq!(ValidityLimits::default().reason(&record), None);
    record.clock = estimated(600_000);
    let why = ValidityLimits::default().reason(&record).expect("too wide");
    assert!(
        why.contains("0.600 ms apart, at a one-way delay of 5.") && why.ends_with("10 % at most"),
        "{why}"
    );
    record.latency.remove(phase::OWD);
    assert_eq!(ValidityLimits::default().reason(&record), None, "without one-way delay nothing rests on it");
}

#[test]
fn results_are_not_mixed_with_those_of_other_settings() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = |seed: u64, resume| Settings {
        study: "cai-2009".into(),
        out: directory.path().to_owned(),
        resume,
        seed,
        plan: serde_json::json!({ "seed": seed }),
        ..Settings::default()
    };
    let (mut journal, recorded) = Journal::open(&settings(1, false), RECORDS).expect("new");
    assert!(recorded.is_empty());
    journal
        .add(&ForkRecord { schema: crate::record::SCHEMA.into(), ..record(&cells(1)[0], 1, 1, true) })
        .expect("kept");
    assert!(matches!(Journal::open(&settings(1, false), RECORDS), Err(RunError::InUse(_))));
    assert!(matches!(Journal::open(&settings(2, true), RECORDS), Err(RunError::OtherSettings(_))));
    assert_eq!(Journal::open(&settings(1, true), RECORDS).expect("the same").1.len(), 1);
}

/// Returns a record made from a client's exchanges only.
fn summed(client: &[crate::subject::sample::ClientSample]) -> ForkRecord {
    let mut record = sound();
    samples::ForkSamples { client, ..Default::default() }.sum_up(&mut record).expect("written");
    record
}

#[test]
fn a_client_that_has_no_memory_for_an_exchange_has_run_out_of_memory_and_has_not_failed() {
    let of = |status: u16| {
        let client = [crate::subject::sample::ClientSample { status, ..Default::default() }];
        summed(&client).counts
    };
    assert!(samples::ran_out(&of(crate::subject::sample::STATUS_OUT_OF_MEMORY)));
    assert!(!samples::ran_out(&of(1)) && !samples::ran_out(&of(0)));
}

#[test]
fn exchanges_that_are_still_slower_at_the_beginning_are_kept_and_told_apart() {
    let mut invented = crate::statistics::invented::Invented::new(7);
    let exchange = |place: i64| {
        let usual = if place < 10 { 90e6 } else { 1e6 };
        let took = (usual * f64::exp(0.1 * invented.normal())) as i64;
        crate::subject::sample::ClientSample { t_deser_end: took, ..Default::default() }
    };
    let client: Vec<_> = (0..120).map(exchange).collect();
    let record = summed(&client);
    let count = |name: &str| record.latency[name].n;
    assert!(count(phase::RTT) == 120 && (60..=110).contains(&count(phase::RTT_STEADY)));
    assert_eq!(record.has_settled, Some(true));
    let few = summed(&client[..60]);
    assert_eq!((few.has_settled, few.latency[phase::RTT_STEADY].n), (None, 59), "too few to tell");
    assert!(record.latency[phase::RTT].p99 > 80_000_000 && record.latency[phase::RTT_STEADY].max < 2_000_000);
}

#[test]
fn every_fork_of_every_cell_has_a_seed_of_its_own_which_its_attempts_share() {
    let cells = cells(3);
    let settings = Settings { study: "cai-2009".into(), seed: 1, ..Settings::default() };
    let seed = |cell, fork, attempt| {
        fork::ForkAttempt { cell, fork, attempt, settings: &settings, raw: Path::new("") }.seed()
    };
    let all = cells.iter().flat_map(|cell| (1..=3).map(move |fork| (cell, fork)));
    let seeds: BTreeSet<u64> = all.map(|(cell, fork)| seed(cell, fork, 1)).collect();
    assert_eq!(seeds.len(), 3 * cells.len());
    assert_eq!(seed(&cells[0], 1, 1), seed(&cells[0], 1, 3));
}

/// Makes every fork valid, at this attempt.
struct Willing(u32);

impl Adapter for Willing {
    type Cell = Cell;

    fn file(&self) -> &'static str {
        RECORDS
    }

    async fn begin(&mut self, _directory: &Path) -> Result<(), RunError> {
        Ok(())
    }

    async fn attempt(&mut self, cell: &Cell, fork: u32, attempt: u32) -> Result<AttemptResult, RunError> {
        Ok(AttemptResult::Kept(Box::new(record(cell, fork, attempt, attempt == self.0))))
    }
}

/// Runs cells for at most ten rounds, and returns the number of rounds and of looks.
async fn looked_at(judge: fn(&[ForkRecord], f64) -> Result<LookFindings, String>) -> (u64, usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let (cells, mut looks) = (cells(10), 0);
    let settings = Settings {
        out: directory.path().join("run"),
        looks: Some(PlannedLooks { looks: Looks::until(10, 0.1), judge }),
        ..Settings::default()
    };
    let mut count = |event: RunEvent<'_>| looks += usize::from(matches!(event, RunEvent::Looked { .. }));
    let summary = run_with(&mut Willing(1), &cells, Vec::new(), &settings, &mut count).await.expect("run");
    (summary.forks_valid / cells.len() as u64, looks)
}

#[tokio::test]
async fn a_run_ends_at_the_look_that_finds_its_comparisons_settled() {
    assert_eq!(looked_at(|_, _| Ok(LookFindings { of: 3, open: 0 })).await, (6, 1));
    assert_eq!(looked_at(|_, _| Ok(LookFindings { of: 3, open: 1 })).await, (10, 1));
}

#[tokio::test]
async fn a_fork_that_does_not_count_is_attempted_again_at_the_end_of_its_round() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings { out: directory.path().join("run"), ..Settings::default() };
    let (cells, mut made) = (cells(2), Vec::new());
    let mut note = |event: RunEvent<'_>| {
        if let RunEvent::Attempt { record, .. } = event {
            made.push((record.fork, record.attempt));
        }
    };
    let summary = run_with(&mut Willing(2), &cells, Vec::new(), &settings, &mut note).await.expect("run");
    assert!(summary.is_complete() && made.is_sorted(), "{made:?}");
    assert_eq!(made.len(), 4 * cells.len());
}
