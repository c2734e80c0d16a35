//! The exchanges of a run: their intended starts, their concurrency, and their results.

use crate::order::SplitMix64;
use crate::subject::SubjectError;
use crate::subject::client::SubjectClient;
use crate::subject::clock::monotonic_ns;
use crate::subject::dialect::SubjectDialect;
use crate::subject::protocol::{Arm, ExchangeSchedule, Prepare};
use crate::subject::reference::Digest;
use crate::subject::sample::ClientSample;
use crate::subject::setup::SubjectSetup;
use crate::subject::store::PointStore;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use stentor_wire::Content;
use tokio::task::JoinSet;

/// The runtime's timers have a resolution of a millisecond only, so the last part of a wait is slept on the thread.
const FINE_NS: i64 = 2_000_000;

/// A prepared client half.
pub(super) struct ClientHalf {
    dialect: SubjectDialect,
    prepare: Prepare,
    target: SocketAddr,
    setup: SubjectSetup,
    /// Idle connections.
    idle: Vec<SubjectClient>,
    rows: Option<PointStore>,
}

/// The result of the exchanges.
#[derive(Default)]
pub(super) struct ExchangesResult {
    pub(super) samples: Vec<ClientSample>,
    /// Insertion times of rows, for each sample; empty if no rows are stored.
    pub(super) inserted: Vec<i64>,
    pub(super) answered: u64,
    pub(super) errors: u64,
    pub(super) digest: Digest,
}

impl ClientHalf {
    /// Connects to the server.
    pub(super) async fn ready(
        dialect: SubjectDialect,
        prepare: Prepare,
        target: SocketAddr,
    ) -> Result<Self, SubjectError> {
        let setup = SubjectSetup::of(&prepare.factors, prepare.seed)?;
        let first = SubjectClient::connect_as(dialect, prepare.op, target, setup.clone()).await?;
        let rows = setup.rows()?;
        Ok(Self { dialect, prepare, target, setup, idle: vec![first], rows })
    }

    /// Makes the exchanges of a run. Each has its own seed, the sum of the run's seed and its number, so that no response can be reused.
    pub(super) async fn run(&mut self, arm: &Arm, t0_ns: i64) -> Result<ExchangesResult, SubjectError> {
        let begin_ns = t0_ns.max(monotonic_ns());
        match arm.schedule {
            ExchangeSchedule::Open { max_in_flight: places @ 2.., .. } => {
                self.together(arm, begin_ns, places).await
            }
            _ => self.one_by_one(arm, begin_ns).await,
        }
    }

    async fn one_by_one(&mut self, arm: &Arm, begin_ns: i64) -> Result<ExchangesResult, SubjectError> {
        let mut run = ExchangesResult::default();
        let mut times = Times::new(arm.schedule, begin_ns, self.prepare.seed);
        let first = if self.setup.resume { self.rows.as_ref().map_or(Ok(0), PointStore::pages)? } else { 0 };
        let mut client = self.client().await?;
        for seq in first..arm.count {
            let request = self.request(seq);
            let t_intended = times.next();
            until(t_intended, true).await;
            match client.exchange(seq, t_intended, &request).await {
                Ok((sample, answer)) => {
                    run.inserted.extend(self.keep(seq, &answer)?);
                    run.samples.push(sample);
                    run.answered += 1;
                    run.digest.add(&answer);
                }
                Err(_) => run.fail(seq, t_intended, self.rows.is_some()),
            }
            if let ExchangeSchedule::Closed { think_ns: think_ns @ 1.. } = arm.schedule {
                tokio::time::sleep(Duration::from_nanos(think_ns)).await;
            }
        }
        self.idle.push(client);
        Ok(run)
    }

    /// Makes concurrent exchanges, each on its own connection. If all slots are taken, an exchange waits for a free one.
    async fn together(
        &mut self,
        arm: &Arm,
        begin_ns: i64,
        places: u32,
    ) -> Result<ExchangesResult, SubjectError> {
        let mut times = Times::new(arm.schedule, begin_ns, self.prepare.seed);
        let (mut run, mut flying, mut answers) =
            (ExchangesResult::default(), JoinSet::new(), BTreeMap::new());
        for seq in 0..arm.count {
            let request = self.request(seq);
            let t_intended = times.next();
            until(t_intended, false).await;
            while flying.len() >= places as usize {
                self.land(flying.join_next().await, &mut run, &mut answers);
            }
            while let Some(landed) = flying.try_join_next() {
                self.land(Some(landed), &mut run, &mut answers);
            }
            let mut client = self.client().await?;
            flying.spawn(async move {
                let made = client.exchange(seq, t_intended, &request).await.ok();
                (client, seq, t_intended, made)
            });
        }
        while !flying.is_empty() {
            self.land(flying.join_next().await, &mut run, &mut answers);
        }
        run.samples.sort_by_key(|sample| sample.seq);
        answers.values().for_each(|answer| run.digest.add(answer));
        Ok(run)
    }

    fn land(
        &mut self,
        landed: Option<Result<LandedExchange, tokio::task::JoinError>>,
        run: &mut ExchangesResult,
        answers: &mut BTreeMap<u64, Content>,
    ) {
        let Some(Ok((client, seq, t_intended, made))) = landed else { return };
        self.idle.push(client);
        match made {
            Some((sample, answer)) => {
                run.samples.push(sample);
                run.answered += 1;
                answers.insert(seq, answer);
            }
            None => run.fail(seq, t_intended, false),
        }
    }

    async fn client(&mut self) -> Result<SubjectClient, SubjectError> {
        match self.idle.pop() {
            Some(client) => Ok(client),
            None => {
                SubjectClient::connect_as(self.dialect, self.prepare.op, self.target, self.setup.clone())
                    .await
            }
        }
    }

    fn request(&self, seq: u64) -> Content {
        let Prepare { op, factors, seed, .. } = &self.prepare;
        op.request_number(factors, *seed, seq)
    }

    /// Stores the points of a response as rows, if the cell requires it, and returns the time after that.
    fn keep(&mut self, seq: u64, answer: &Content) -> Result<Option<i64>, SubjectError> {
        let (Some(rows), Content::Points(points)) = (&mut self.rows, answer) else { return Ok(None) };
        let number = |name: &str| self.prepare.factors.get(name).and_then(|text| text.parse::<u64>().ok());
        let (from, page, pages) = match number("poi").zip(number("page")) {
            Some((all, page @ 1..)) => {
                let pages = all.div_ceil(page).max(1);
                ((seq % pages) * page, seq % pages + 1, pages)
            }
            _ => (0, 1, 1),
        };
        rows.keep(from, points, page, page == pages)?;
        Ok(Some(monotonic_ns()))
    }
}

type LandedExchange = (SubjectClient, u64, i64, Option<(ClientSample, Content)>);

impl ExchangesResult {
    fn fail(&mut self, seq: u64, t_intended: i64, keeps_rows: bool) {
        self.errors += 1;
        self.samples.push(ClientSample { seq, t_intended, status: 1, ..Default::default() });
        self.inserted.extend(keeps_rows.then_some(0));
    }
}

/// The intended starts of exchanges.
struct Times {
    schedule: ExchangeSchedule,
    next_ns: i64,
    chance: SplitMix64,
}

impl Times {
    const fn new(schedule: ExchangeSchedule, begin_ns: i64, seed: u64) -> Self {
        Self { schedule, next_ns: begin_ns, chance: SplitMix64::new(seed) }
    }

    fn next(&mut self) -> i64 {
        let ExchangeSchedule::Open { interval_ns, poisson, .. } = self.schedule else {
            return self.next_ns.max(monotonic_ns());
        };
        let intended = self.next_ns;
        let factor = if poisson { -(1.0 - self.chance.share()).ln() } else { 1.0 };
        self.next_ns = intended.saturating_add((interval_ns as f64 * factor) as i64);
        intended
    }
}

/// Waits until an instant. If the thread may block, the last part is slept on it for precision.
async fn until(instant_ns: i64, may_block: bool) {
    let wait = instant_ns - monotonic_ns();
    let coarse = if may_block { wait - FINE_NS } else { wait };
    if let Ok(coarse @ 1..) = u64::try_from(coarse) {
        tokio::time::sleep(Duration::from_nanos(coarse)).await;
    }
    if let Ok(rest @ 1..) = u64::try_from(instant_ns - monotonic_ns())
        && may_block
    {
        std::thread::sleep(Duration::from_nanos(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(poisson: bool) -> ExchangeSchedule {
        ExchangeSchedule::Open { interval_ns: 1_000, poisson, max_in_flight: 1 }
    }

    #[test]
    fn even_intervals_do_not_drift() {
        let mut times = Times::new(open(false), 5, 1);
        assert_eq!([times.next(), times.next(), times.next()], [5, 1_005, 2_005]);
    }

    #[test]
    fn drawn_intervals_have_the_mean_that_was_asked_for_and_follow_from_the_seed() {
        let mean = |seed| {
            let mut times = Times::new(open(true), 0, seed);
            (0..20_000).map(|_| times.next()).last().unwrap_or(0) as f64 / 19_999.0
        };
        assert!((mean(7) / 1_000.0 - 1.0).abs() < 0.03, "{}", mean(7));
        assert!((mean(7) - mean(7)).abs() < f64::EPSILON && (mean(7) - mean(8)).abs() > f64::EPSILON);
    }
}
