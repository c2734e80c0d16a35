//! Measures a cell with a server of its own: campaigns without bad answers, and one with them beside single messages.

use super::case::{SINGLES, TroubleCase, TroubleCell};
use crate::bench::campaigns::millis;
use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_emulators::ObserverFile;
use stentor_emulators::observer::{Counts, token_hash};
use stentor_lab::statistics::Samples;
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::devices::{
    DevicePopulation, PopulationMember, StagedService, StagedServices, TokenOrigins,
};
use stentor_stage::failure::CommandFailure;
use stentor_stage::import;
use stentor_stage::ledger::CampaignLedger;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};
use stentor_stage::text::cell;
use tokio::task::JoinHandle;

/// Enough for a 99th percentile below the maximum, within three seconds.
const SINGLES_COUNT: u64 = 150;
const SINGLES_EVERY: Duration = Duration::from_millis(20);
/// Longest wait for the last single message; an unfinished one then counts with its age.
const SINGLES_LIMIT: Duration = Duration::from_secs(10);
/// Number of clean campaigns; the clean rate is their median, which one outlier does not change.
const CLEAN_ROUNDS: u32 = 3;
/// Interval between reads, each of which reads all counts and costs time of the measured machine.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Seed of tokens and responses; that of every stage.
const SEED: u64 = 1;
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// A server, its push service and a population of devices.
pub(super) struct CellStage {
    stage: Stage,
    service: StagedService,
    devices: u64,
    /// Longest time for the good deliveries, and for all deliveries of a cell with many bad answers.
    limit: Duration,
}

impl CellStage {
    /// Starts all processes, imports the devices and warms the connections.
    pub(super) async fn build(
        service: StagedService,
        devices: u64,
        limit: Duration,
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<Self> {
        let providers = StagedServices::new(&[service]).context("one push service")?;
        let options = StageOptions::with_emulators(devices + 4 * SINGLES_COUNT);
        let mut stage = Stage::build(&StageOptions { providers, ..options }, reporter).await?;
        let (population, origins) = (population(service, devices)?, stage.emulators.origins(SEED)?);
        import::run_at(&stage.client, population, origins, &**reporter).await?;
        stage.server.restart().await?;
        Ok(Self { stage, service, devices, limit })
    }

    /// Returns the single messages of a case: the token by which the emulator knows each, and its target. They get no bad answers, unless
    /// all devices do.
    fn singles(&self, case: TroubleCase) -> anyhow::Result<Vec<Single>> {
        let (meets, count) = (case.meets()?, 2 * SINGLES_COUNT);
        if self.service == StagedService::Fcm {
            return Ok((0..count).map(|number| Single::of_fcm(single_token(number))).collect());
        }
        let (population, origins) =
            (population(self.service, self.devices)?, self.stage.emulators.origins(SEED)?);
        let members = (self.devices..).map(|number| PopulationMember { service: self.service, number });
        let is_good = |member: &PopulationMember| case.share >= 100.0 || !meets(&population.token(*member));
        let singles = members.filter(is_good).take(count as usize);
        Ok(singles.map(|member| Single::of(population, member, &origins)).collect())
    }

    /// Measures a cell.
    pub(super) async fn measure(&self, case: TroubleCase) -> anyhow::Result<TroubleCell> {
        let mut idle = self.singles(case)?;
        let beside = idle.split_off(SINGLES_COUNT as usize);
        let tokens: Vec<String> = beside.iter().map(|single| single.token.clone()).collect();
        let singles = |some| tokio::spawn(send_singles(self.stage.client.clone(), some));
        let single_idle_p99_ms = p99(&self.stage.client, singles(idle).await??).await?;
        let clean_rate = self.clean_rate(case).await?;
        let counted = self.counted()?;
        let mut open = OpenDeliveries::of(&counted, population(self.service, self.devices)?, case.meets()?);
        self.set_policy(&case.policy()).await?;
        let beside = singles(beside);
        let began = self.campaign().await?;
        let good = self.until_good(&mut open, began).await?;
        let parked = self.is_parked().await?;
        self.until_repeated(&mut open, began, case, &beside).await?;
        let single_p99_ms = p99(&self.stage.client, beside.await??).await?;
        let requests = self.requests_since(&counted, &tokens)?;
        Ok(TroubleCell {
            case,
            devices: self.devices,
            troubled: open.troubled,
            left: open.good.len() as u64,
            pending: good.pending,
            parked,
            rate: good.rate,
            clean_rate,
            unsent: if case.persistence.failures().is_some() { open.repeated.len() as u64 } else { 0 },
            single_idle_p99_ms,
            single_p99_ms,
            requests,
        })
    }

    /// Returns the median rate of some campaigns without bad answers; the push service has the same number of scripts to match for each
    /// request.
    async fn clean_rate(&self, case: TroubleCase) -> anyhow::Result<f64> {
        self.set_policy(&TroubleCase { share: 0.0, ..case }.policy()).await?;
        let mut rates = Samples::default();
        for round in 1..=CLEAN_ROUNDS {
            let population = population(self.service, self.devices)?;
            let mut open = OpenDeliveries::of(&self.counted()?, population, |_| false);
            let began = self.campaign().await?;
            let good = self.until_good(&mut open, began).await?;
            let left = open.good.len();
            if left > 0 {
                let sentence = format!("campaign {round} without trouble does not end: {left} are left");
                return Err(CommandFailure::not_done(sentence).into());
            }
            rates.push(good.rate);
        }
        Ok(rates.quantile(0.5).unwrap_or_default())
    }

    async fn set_policy(&self, policy: &Value) -> anyhow::Result<()> {
        let control = self.stage.emulators.of(self.service)?.control.as_deref().unwrap_or_default();
        ApiClient::new(control, None, None)?.put("/policy", policy).await.map(drop)
    }

    fn counted(&self) -> anyhow::Result<ObserverFile> {
        self.stage.emulators.of(self.service)?.counted()
    }

    /// Sends to everyone and returns the time of the request.
    async fn campaign(&self) -> anyhow::Result<Instant> {
        let began = Instant::now();
        let everyone =
            json!({"target": "everyone", "notification": {"title": "to everyone", "body": "from the bench"}});
        self.stage.client.post("/v1/messages", &everyone).await?;
        Ok(began)
    }

    /// Waits until the good deliveries are accepted, or until the limit.
    async fn until_good(&self, open: &mut OpenDeliveries, began: Instant) -> anyhow::Result<GoodDeliveries> {
        loop {
            open.remove_accepted(&self.counted()?);
            let elapsed = began.elapsed();
            if open.good.is_empty() || elapsed > self.limit {
                let pending = open.repeated.len() as u64;
                let accepted = self.devices - pending - open.good.len() as u64;
                return Ok(GoodDeliveries {
                    rate: accepted as f64 / elapsed.as_secs_f64().max(1e-9),
                    pending,
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until every delivery that can succeed is accepted and the single messages are sent, or until the limit.
    async fn until_repeated<T>(
        &self,
        open: &mut OpenDeliveries,
        began: Instant,
        case: TroubleCase,
        beside: &JoinHandle<T>,
    ) -> anyhow::Result<()> {
        let bound = began.elapsed() + case.repeats_max();
        let limit = if case.is_of_few() { bound } else { bound.min(self.limit) };
        let can_succeed = case.persistence.failures().is_some();
        while began.elapsed() < limit {
            open.remove_accepted(&self.counted()?);
            let waits = can_succeed && !open.repeated.is_empty();
            if !waits && beside.is_finished() {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn is_parked(&self) -> anyhow::Result<bool> {
        let path = format!("/v1/apps/{}/credentials", segment(self.stage.client.app().unwrap_or_default()));
        let list = self.stage.client.get(&path).await?;
        let mut credentials = list["credentials"].as_array().into_iter().flatten();
        Ok(credentials.any(|one| one["state"] == "parked"))
    }

    /// Counts the requests that arrived since, without those of the single messages beside the campaign.
    fn requests_since(&self, before: &ObserverFile, singles: &[String]) -> anyhow::Result<u64> {
        let now = self.counted()?;
        let singles: u64 = singles.iter().map(|token| u64::from(now.lookup(token).attempts)).sum();
        Ok((now.totals().attempts - before.totals().attempts).saturating_sub(singles))
    }
}

/// State at the time of the last accepted good delivery, or at the end of the wait.
struct GoodDeliveries {
    rate: f64,
    pending: u64,
}

/// A delivery that is not accepted yet: its token by its hash, and the number of earlier answers to it.
struct OpenDelivery {
    token: u64,
    before: Counts,
}

/// Deliveries that are not accepted yet.
struct OpenDeliveries {
    good: Vec<OpenDelivery>,
    repeated: Vec<OpenDelivery>,
    troubled: u64,
}

impl OpenDeliveries {
    fn of(counted: &ObserverFile, population: DevicePopulation, meets: impl Fn(&str) -> bool) -> Self {
        let (mut good, mut repeated) = (Vec::new(), Vec::new());
        for member in population.members() {
            let name = population.token(member);
            let token = token_hash(name.as_bytes());
            let list = if meets(&name) { &mut repeated } else { &mut good };
            list.push(OpenDelivery { token, before: counted.lookup_hash(token) });
        }
        let troubled = repeated.len() as u64;
        Self { good, repeated, troubled }
    }

    /// Removes deliveries that were accepted in between. A good one that was refused has shared the request of a bad one and is repeated
    /// with it.
    fn remove_accepted(&mut self, counted: &ObserverFile) {
        for list in [&mut self.good, &mut self.repeated] {
            list.retain(|open| counted.lookup_hash(open.token).accepted <= open.before.accepted);
        }
        let was_refused =
            |open: &mut OpenDelivery| counted.lookup_hash(open.token).rejected > open.before.rejected;
        let refused = self.repeated.len();
        self.repeated.extend(self.good.extract_if(.., was_refused));
        self.troubled += (self.repeated.len() - refused) as u64;
    }
}

/// A single message.
struct Single {
    /// The token by which the emulator knows its device.
    token: String,
    /// The token as the target of a message.
    target: Value,
}

impl Single {
    fn of_fcm(token: String) -> Self {
        let target = json!({"platform": "android", "token": token});
        Self { token, target }
    }

    fn of(population: DevicePopulation, member: PopulationMember, origins: &TokenOrigins) -> Self {
        let (platform, provider) = (member.service.platform(), member.service.word());
        let push_token = population.push_token(member, Some(origins));
        let target = json!({"platform": platform, "provider": provider, "token": push_token});
        Self { token: population.token(member), target }
    }
}

fn population(service: StagedService, devices: u64) -> anyhow::Result<DevicePopulation> {
    let services = StagedServices::new(&[service]).context("one push service")?;
    Ok(DevicePopulation::new(devices, SEED).through(services))
}

fn single_token(number: u64) -> String {
    format!("{SINGLES}{number:0140}")
}

/// Sends single messages to healthy devices, one after the other, and returns their campaigns.
async fn send_singles(client: ApiClient, singles: Vec<Single>) -> anyhow::Result<Vec<String>> {
    let mut ticks = tokio::time::interval(SINGLES_EVERY);
    let mut campaigns = Vec::new();
    for Single { target, .. } in singles {
        ticks.tick().await;
        let message = json!({
            "target": {"token": target},
            "notification": {"title": "Your code", "body": "123456"},
            "priority": "high",
            "ttl_seconds": 300,
        });
        campaigns.push(cell(&client.post("/v1/messages", &message).await?["campaign"]));
    }
    Ok(campaigns)
}

/// Returns the 99th percentile of the time of single messages, from acceptance to the commit of the answer, in whole milliseconds.
async fn p99(client: &ApiClient, campaigns: Vec<String>) -> anyhow::Result<f64> {
    let (began, mut times) = (Instant::now(), Samples::default());
    for campaign in campaigns {
        let created_at =
            client.get(&format!("/v1/campaigns/{}", segment(&campaign))).await?["created_at"].clone();
        let ended_at = loop {
            let (value, ledger) = CampaignLedger::fetch(client, &campaign).await?;
            if ledger.is_ended() {
                break value["ended_at"].clone();
            }
            if began.elapsed() > SINGLES_LIMIT {
                break json!(Timestamp::now().to_string());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        if let (Some(from), Some(to)) = (millis(&created_at), millis(&ended_at)) {
            times.push((to - from).rem_euclid(DAY_MS) as f64);
        }
    }
    times
        .quantile(0.99)
        .map(f64::round)
        .ok_or_else(|| CommandFailure::not_done("no single message was timed").into())
}
