//! One fork: a fresh server, a fresh client, the first exchange, the warm-up, the measured exchanges, and the record.

mod digests;
mod gateway;
mod half;
mod interruption;
mod leftovers;
mod rest;

use super::environment::{environment, load};
use super::interruption::Interruption;
use super::keeper::MemoryKeeper;
use super::power::{self, TimedCapture};
use super::samples::{self, ForkSamples};
use super::seed::ForkIdentity;
use super::testbed::{CaptureResult, Testbed};
use super::watch::InstrumentWatch;
use super::{AttemptResult, RAW, Settings};
use crate::plan::Cell;
use crate::record::{
    Bytes, ClockComparison, FINISHED, ForkRecord, QueriedClocks, Raw, SCHEMA, Sides, Subject,
};
use crate::subject::certificate;
use crate::subject::clock::{epoch_ns, monotonic_ns};
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::{ExchangeSchedule, Prepare, Report, SubjectOrder, SubjectRole};
use crate::subject::reference::Op;
use crate::subject::sample::{self, ClientSample};
use crate::subject::{COLLECTOR, Definition, JAVA_HEAP, SubjectError};
use aws_lc_rs::digest::{SHA256, digest};
use digests::Digests;
use half::{KnownHalves, RunningHalf};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum interval between intended starts, as a multiple of the warm-up's median; with a shorter one, exchanges would queue behind each
/// other.
const SLACK: f64 = 1.5;
/// A run may take this multiple of its intended time before it is aborted.
const PATIENCE_FACTOR: u32 = 3;
/// Words in the reports of subjects that are out of memory.
const OUT_OF_MEMORY: [&str; 3] = ["OutOfMemory", "MemoryError", "out of memory"];
/// The outcome of a fork after a subject ran out of memory, in the paper's words.
pub(super) const OUTCOME_MEMORY: &str = "Out of Memory";
/// The factor of a limited heap, in MiB; it applies to the client.
const HEAP: &str = "heap";
/// The setting for the end of a round trip: `headers`, or the decoded values (or inserted rows) by default.
const CLOCK: &str = "clock";
/// The setting of a server that does not return the payload.
const REPLY: &str = "reply";
/// Factors with the path of a file that the fork provides.
const FILES: [&str; 2] = ["store", "insert"];

/// One attempt at a fork.
#[derive(Clone, Copy)]
pub(super) struct ForkAttempt<'a> {
    pub(super) cell: &'a Cell,
    pub(super) fork: u32,
    pub(super) attempt: u32,
    pub(super) settings: &'a Settings,
    /// The directory of the run.
    pub(super) raw: &'a Path,
}

/// The cause and the time of a failure.
enum AttemptFailure {
    /// A half could not be started, or violates the protocol at its start.
    Start(SubjectError),
    /// A later failure.
    Later(SubjectError),
}

impl From<SubjectError> for AttemptFailure {
    fn from(error: SubjectError) -> Self {
        Self::Later(error)
    }
}

/// The output of a fork's two halves before evaluation.
#[derive(Default)]
struct ForkOutput {
    first: Vec<ClientSample>,
    captured: CaptureResult,
    clocks: Option<QueriedClocks>,
}

/// Returns the key of a fork's records.
pub(super) fn key(cell: &Cell, fork: u32) -> String {
    blank(cell, fork).key()
}

fn blank(cell: &Cell, fork: u32) -> ForkRecord {
    ForkRecord {
        schema: SCHEMA.into(),
        variant: cell.variant.clone(),
        experiment: cell.name.clone(),
        cell: cell.levels.clone(),
        subject: Subject {
            label: cell.label.clone(),
            stack: cell.stack.clone(),
            client: cell.client.id.clone(),
            server: cell.server.id.clone(),
            versions: BTreeMap::new(),
        },
        fork,
        ..ForkRecord::default()
    }
}

impl ForkAttempt<'_> {
    /// Runs the attempt.
    pub(super) async fn run(self, testbed: &mut dyn Testbed) -> AttemptResult {
        if let Some(reason) = testbed.objection(self.cell) {
            return AttemptResult::Skipped(reason);
        }
        let mut record = ForkRecord {
            run_id: self.settings.study.clone() + "-" + &self.settings.seed.to_string(),
            study: self.settings.study.clone(),
            seed: self.seed(),
            looks: self.settings.looks.as_ref().map(|planned| planned.looks.count()),
            attempt: self.attempt,
            env: environment(testbed.level(), testbed.cgroup(), testbed.idle(), &self.settings.commit),
            ..blank(self.cell, self.fork)
        };
        let watch = InstrumentWatch::begin();
        let measured = self.measure(testbed, &mut record).await;
        record.instrument = watch.finish().0;
        record.env.load_after = load();
        record.ended = time_of_day();
        self.forget_times(&mut record);
        FINISHED.clone_into(&mut record.outcome);
        match measured {
            Ok(()) if samples::ran_out(&record.counts) => OUTCOME_MEMORY.clone_into(&mut record.outcome),
            Ok(()) => record.invalid_reason = self.settings.gate.reason(&record).unwrap_or_default(),
            Err(
                AttemptFailure::Later(SubjectError::Wrong(text))
                | AttemptFailure::Start(SubjectError::Wrong(text)),
            ) => {
                return AttemptResult::LeftOut(format!("refused: {text}"));
            }
            Err(AttemptFailure::Start(error)) if !self.cell.settings.contains_key(HEAP) => {
                return AttemptResult::LeftOut(format!("cannot be started: {error}"));
            }
            // A heap that is too small concerns this cell only.
            Err(AttemptFailure::Start(error)) => fail(&mut record, &error),
            Err(AttemptFailure::Later(error)) => fail(&mut record, &error),
        }
        record.valid = record.invalid_reason.is_empty();
        AttemptResult::Kept(Box::new(record))
    }

    /// Returns the seed of the fork, of all its attempts. A fork's number is that of its round.
    pub(super) fn seed(&self) -> u64 {
        let cell = key(self.cell, 0);
        let Settings { study, seed: run, .. } = self.settings;
        ForkIdentity { study, run: *run, round: self.fork, cell: &cell, fork: self.fork }.seed()
    }

    async fn measure(
        &self,
        testbed: &mut dyn Testbed,
        record: &mut ForkRecord,
    ) -> Result<(), AttemptFailure> {
        testbed.prepare(self.cell, self.seed())?;
        // Files left by an earlier attempt or an interrupted run must not be taken for those of this attempt.
        self.clear();
        let digests = Digests::of(self.cell, &self.factors(), self.seed())?;
        let found = match &self.cell.gateway {
            Some(_) => self.with_gateway(testbed, record, &digests).await?,
            None => self.with_server(testbed, &KnownHalves::default(), record, &digests).await?,
        };
        self.add_power(record, testbed.address(SubjectRole::Client), found.captured.epoch_ns);
        self.sum_up(record, found)?;
        Ok(())
    }

    /// Starts a half and prepares it.
    async fn start(
        &self,
        testbed: &mut dyn Testbed,
        role: SubjectRole,
        known: KnownHalves,
    ) -> Result<RunningHalf, AttemptFailure> {
        let began = Instant::now();
        let definition = self.definition(role);
        let started = testbed.start(role, &definition, self.settings.patience);
        let mut host = started.map_err(AttemptFailure::Start)?;
        match host.hello().await {
            Ok(mut versions) => {
                let collector = definition.collector().map(|name| (COLLECTOR.to_owned(), name.to_owned()));
                versions.extend(collector);
                RunningHalf { host, began, versions, ready_ns: 0, known }.prepared(self, testbed, role).await
            }
            Err(error) => {
                host.end().await;
                Err(AttemptFailure::Start(error))
            }
        }
    }

    async fn with_client(
        &self,
        testbed: &mut dyn Testbed,
        server: &mut RunningHalf,
        record: &mut ForkRecord,
        digests: &Digests,
    ) -> Result<ForkOutput, AttemptFailure> {
        let closed = ExchangeSchedule::Closed { think_ns: 0 };
        server.host.arm(closed, self.exchanges(), &self.path(SubjectRole::Server, "")).await?;
        server.host.send(&SubjectOrder::Go { t0_ns: monotonic_ns() }).await?;
        if let Some(interruption) = Interruption::of(self.cell) {
            return self.interrupted(interruption, testbed, server, record).await;
        }
        let mut client = self.start(testbed, SubjectRole::Client, server.known.clone()).await?;
        record.start_ns.client = Some(client.ready_ns);
        note_versions(record, "client", &client.versions);
        let exchanged = self.exchange(testbed, server, &mut client, record, digests).await;
        Ok(client.host.stop_after(exchanged).await?.0)
    }

    /// Runs the first exchange, the warm-up and the measured exchanges.
    async fn exchange(
        &self,
        testbed: &mut dyn Testbed,
        server: &RunningHalf,
        client: &mut RunningHalf,
        record: &mut ForkRecord,
        digests: &Digests,
    ) -> Result<ForkOutput, AttemptFailure> {
        let amount = self.cell.amount;
        let closed = ExchangeSchedule::Closed { think_ns: 0 };
        let patience = self.patience();
        let out = self.path(SubjectRole::Client, "");
        let first = self.go(&mut client.host, closed, 1, &digests.first, patience, &out).await?;
        record.first_call_ns = first.first().map(|one| samples::rtt(one).max(0).cast_unsigned());
        let mut median = record.first_call_ns.unwrap_or(0);
        if amount.warmup > 0 {
            let warm = u64::from(amount.warmup);
            let all = patience.saturating_mul(2);
            let paced = self.go(&mut client.host, closed, warm, &digests.warmup, all, &out).await?;
            median = samples::median_ns(&paced, &self.inserted()?);
        }
        let halves = [client.host.id(), server.host.id()];
        let _keeper = self.cell.cpu_percent.map(|_| MemoryKeeper::begin(halves));
        median = self.held(testbed, server, client, digests).await?.unwrap_or(median);
        let before = [
            testbed.usage(SubjectRole::Client, &client.host),
            testbed.usage(SubjectRole::Server, &server.host),
        ];
        // Before packets are counted, because the paper's figures exclude its queries.
        let clocks = if self.settings.queries_clocks { testbed.queried_clocks() } else { None };
        testbed.listen();
        let (schedule, count) = (self.schedule(median), u64::from(amount.samples));
        let interval = Duration::from_nanos(interval_ns(schedule).max(median));
        let expected = interval.saturating_mul(amount.samples).saturating_mul(PATIENCE_FACTOR);
        self.go(&mut client.host, schedule, count, &digests.samples, expected + patience, &out).await?;
        let captured = testbed.captured(Some(&self.path(SubjectRole::Client, ".pcap")));
        let after = [
            testbed.usage(SubjectRole::Client, &client.host),
            testbed.usage(SubjectRole::Server, &server.host),
        ];
        let spent = |place: usize| {
            let (before, after) = (before[place].cpu_ns?, after[place].cpu_ns?);
            Some(after.saturating_sub(before))
        };
        record.cpu = Sides { client: spent(0), server: spent(1) };
        record.mem = Sides { client: after[0].peak_bytes, server: after[1].peak_bytes };
        Ok(ForkOutput { first, captured, clocks })
    }

    /// Returns the longest wait for an exchange, which takes longer with a share of a processor.
    fn patience(&self) -> Duration {
        let percent = self.cell.cpu_percent.unwrap_or(100).max(1);
        self.settings.patience.saturating_mul(100) / percent
    }

    /// Runs exchanges at the client. Fails if the digest of the responses is wrong, which refuses the subject.
    async fn go(
        &self,
        client: &mut SubjectProcess,
        schedule: ExchangeSchedule,
        count: u64,
        digest: &str,
        patience: Duration,
        out: &Path,
    ) -> Result<Vec<ClientSample>, AttemptFailure> {
        let _ = std::fs::remove_file(out);
        client.arm(schedule, count, out).await?;
        let report = client.ask_within(&SubjectOrder::Go { t0_ns: monotonic_ns() }, patience).await?;
        let Report::Done { n, errors, digest: reported_digest } = &report else {
            return Err(report.instead_of("done").into());
        };
        if *errors == 0 && *n == count && reported_digest != digest {
            let sentence = format!("digest {reported_digest} of {count} answers instead of {digest}");
            return Err(SubjectError::Wrong(sentence).into());
        }
        Ok(sample::read_client(out)?)
    }

    /// Reads the times at which the client inserted the rows of its last exchanges; none without rows.
    fn inserted(&self) -> Result<Vec<i64>, SubjectError> {
        sample::read_times(&self.path(SubjectRole::Client, ".inserted"))
    }

    /// Counts the exchanges before the measured ones.
    fn unmeasured(&self) -> u32 {
        if Interruption::of(self.cell).is_some() {
            // Each page is requested once, by processes as fresh as a newly started app.
            return 0;
        }
        1 + self.cell.amount.warmup + self.paced()
    }

    fn schedule(&self, median_ns: u64) -> ExchangeSchedule {
        let slack = if self.cell.in_flight > 1 { 0.0 } else { SLACK };
        let interval_ns = self.cell.interval_ns.max((median_ns as f64 * slack) as u64);
        ExchangeSchedule::Open { interval_ns, poisson: false, max_in_flight: self.cell.in_flight }
    }

    /// Models the energy of the fork. Only the capture of a cell's first fork is kept, which suffices for later analyses.
    fn add_power(&self, record: &mut ForkRecord, device: IpAddr, epoch_ns: i64) {
        let file = self.path(SubjectRole::Client, ".pcap");
        // Without samples there is no battery; `sum_up` reports the error.
        let samples = sample::read_client(&self.path(SubjectRole::Client, "")).unwrap_or_default();
        let capture = TimedCapture { file: &file, device, samples: &samples, epoch_ns };
        power::add(record, &self.settings.models, &capture);
        if self.fork > 1 {
            let _ = std::fs::remove_file(&file);
        }
    }

    fn sum_up(&self, record: &mut ForkRecord, found: ForkOutput) -> Result<(), AttemptFailure> {
        let client = sample::read_client(&self.path(SubjectRole::Client, ""))?;
        let server = sample::read_server(&self.path(SubjectRole::Server, ""))?;
        let inserted = self.inserted()?;
        let skipped = self.unmeasured() as usize;
        let fork_samples = ForkSamples {
            client: &client,
            server: server.get(skipped..).unwrap_or_default(),
            inserted: &inserted,
            // An interrupted synchronisation is timed as a whole, by the clock.
            pages: if record.interruption.is_some() { 1 } else { self.pages() },
            stops_at_headers: self.cell.settings.get(CLOCK).is_some_and(|stop| stop == "headers"),
            server_end: Some(&found.captured.server_end),
            are_numbered: self.cell.gateway.is_some(),
        };
        // The first exchange is recorded separately.
        record.counts.warmup_discarded = u64::from(self.unmeasured().saturating_sub(1));
        fork_samples.sum_up(record).map_err(|error| SubjectError::Wrong(error.to_string()))?;
        record.clock = Some(ClockComparison { by_queries: found.clocks, ..ClockComparison::shared() });
        let bodies = samples::bodies(&fork_samples);
        record.link = found.captured.link;
        record.bytes = Some(match found.captured.bytes {
            Some(frames) => Bytes { exchanges: bodies.exchanges, ..samples::with_bodies(frames, &bodies) },
            None => bodies,
        });
        interruption::count(record, server.len() as u64);
        if let Some(bytes) = &mut record.bytes
            && self.cell.op == Op::Echo
        {
            let payload = self.cell.settings.get("payload").and_then(|text| text.parse::<u64>().ok());
            bytes.up.payload = payload.unwrap_or(0) * bytes.exchanges;
            let is_sent_back = !self.cell.settings.contains_key(REPLY);
            bytes.down.payload = if is_sent_back { bytes.up.payload } else { 0 };
        }
        drop(found.first);
        for (role, kind) in [
            (SubjectRole::Client, ""),
            (SubjectRole::Server, ""),
            (SubjectRole::Client, ".inserted"),
            (SubjectRole::Client, ".pcap"),
        ] {
            record.raw.extend(self.raw_file(role, kind));
        }
        Ok(())
    }

    /// Counts the exchanges of one synchronisation, if the study reads page by page.
    fn pages(&self) -> usize {
        let number = |name: &str| self.cell.settings.get(name).and_then(|text| text.parse::<usize>().ok());
        number("poi").zip(number("page")).map_or(1, |(all, page)| all.div_ceil(page.max(1)).max(1))
    }

    fn exchanges(&self) -> u64 {
        u64::from(self.unmeasured()) + u64::from(self.cell.amount.samples)
    }

    /// Returns the definition of a half with its start command for the cell.
    fn definition(&self, role: SubjectRole) -> Definition {
        match role {
            SubjectRole::Gateway => self.cell.gateway.clone().unwrap_or_else(|| self.cell.server.clone()),
            SubjectRole::Client => self.cell.client.for_cell(&self.cell.settings),
            SubjectRole::Server => {
                // The factor `heap` applies to the client only.
                let both = self.cell.settings.get_key_value(JAVA_HEAP);
                let both = both.map(|(name, level)| (name.clone(), level.clone()));
                self.cell.server.for_cell(&both.into_iter().collect())
            }
        }
    }

    fn factors(&self) -> BTreeMap<String, String> {
        let mut factors = self.cell.settings.clone();
        certificate::add(&mut factors, self.raw);
        for name in FILES {
            let Some(value) = factors.get_mut(name) else { continue };
            if value == "sqlite" {
                let role = if name == "store" { SubjectRole::Server } else { SubjectRole::Client };
                *value = self.path(role, ".db").display().to_string();
            } else {
                factors.remove(name);
            }
        }
        factors
    }

    fn prepare(&self, role: SubjectRole, testbed: &dyn Testbed, known: &KnownHalves) -> Prepare {
        let mut factors = self.factors();
        factors.extend(known.facts.clone());
        let connects =
            role == SubjectRole::Client || role == SubjectRole::Server && self.cell.gateway.is_some();
        let server = if self.cell.gateway.is_some() {
            testbed.gateway(role)
        } else {
            testbed.address(SubjectRole::Server)
        };
        let address = SocketAddr::new(server, known.port);
        Prepare {
            role,
            op: self.cell.op,
            factors,
            bind: (!connects).then_some(address),
            target: connects.then_some(address),
            seed: self.seed(),
            variant: self.cell.variant.clone(),
        }
    }

    fn path(&self, role: SubjectRole, kind: &str) -> PathBuf {
        let name = digest(&SHA256, key(self.cell, self.fork).as_bytes());
        let half = match role {
            SubjectRole::Client => "client",
            SubjectRole::Server => "server",
            SubjectRole::Gateway => "gateway",
        };
        let file = format!("{}-{}.{half}{kind}", &hex(name.as_ref())[..16], self.attempt);
        self.raw.join(RAW).join(file)
    }

    fn raw_file(&self, role: SubjectRole, kind: &str) -> Option<Raw> {
        let path = self.path(role, kind);
        let bytes = std::fs::read(&path).ok()?;
        let relative = path.strip_prefix(self.raw).unwrap_or(&path).display().to_string();
        let sha256 = hex(digest(&SHA256, &bytes).as_ref());
        Some(Raw { path: relative, sha256, bytes: bytes.len() as u64 })
    }
}

const fn interval_ns(schedule: ExchangeSchedule) -> u64 {
    match schedule {
        ExchangeSchedule::Open { interval_ns, .. } => interval_ns,
        ExchangeSchedule::Closed { think_ns } => think_ns,
    }
}

/// Records the reason for a fork without samples: exhausted memory is an outcome, any other error makes the attempt invalid.
fn fail(record: &mut ForkRecord, error: &SubjectError) {
    let text = error.to_string();
    if OUT_OF_MEMORY.iter().any(|words| text.contains(words)) {
        OUTCOME_MEMORY.clone_into(&mut record.outcome);
    } else {
        "failed".clone_into(&mut record.outcome);
        record.invalid_reason = text;
    }
}

fn note_versions(record: &mut ForkRecord, half: &str, versions: &BTreeMap<String, String>) {
    let named = versions.iter().map(|(name, version)| (format!("{half}.{name}"), version.clone()));
    record.subject.versions.extend(named);
}

/// Returns the current time, as RFC 3339 in UTC.
#[must_use]
pub fn time_of_day() -> String {
    let now = jiff::Timestamp::from_nanosecond(i128::from(epoch_ns()));
    now.map(|now| now.to_string()).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
