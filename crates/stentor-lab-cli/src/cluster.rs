//! Several servers over one PostgreSQL with a standby and three nats-servers, in network namespaces of their own. Faults are injected one
//! after the other while a campaign, imports and single messages run. At the end the run proves that nothing was lost.

mod batches;
mod beside;
mod caller;
mod controlled;
mod database;
mod database_pair;
mod fault;
mod faults_state;
mod gateway_devices;
mod injection;
mod network;
mod promises;
mod queue_servers;
mod report;
mod roles;
mod site;
mod traffic;
mod watch;
mod writing;

use beside::{BesideLogs, BesideTasks};
pub(crate) use fault::FaultKind;
use fault::PlannedFault;
use faults_state::FaultsState;
use gateway_devices::{GatewayDevicesOptions, JoinedDevices};
use network::ClusterNetwork;
use parking_lot::Mutex;
use promises::CountedPushes;
pub(crate) use report::{ClusterReport, FaultRecord};
pub(crate) use roles::RoleMix;
use serde_json::json;
use site::{ClusterApp, ClusterSite};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::client::ApiClient;
use stentor_stage::demo::comparison::{self, ComparedCampaign};
use stentor_stage::demo::{CampaignResult, ClusterFacts, DemoFindings, DemoReport, ImportCost, Kills};
use stentor_stage::devices::DevicePopulation;
use stentor_stage::engines::StageQueue;
use stentor_stage::import;
use stentor_stage::ledger::CampaignLedger;
use stentor_stage::policy::AnswerPolicy;
use stentor_stage::reporter::Reporter;
use stentor_stage::text::cell;
use stentor_stage::troubles::{clock, disk};
use tokio::task::JoinHandle;
use watch::{CampaignWatch, WatchedCampaign};

/// Time of the campaign allotted to a fault and its recovery: at its pace the campaign does not end before the last fault.
const SECONDS_PER_FAULT: u64 = 25;
/// Shortest time of the campaign under its quota.
const SECONDS_MIN: u64 = 20;
/// Changes the seed for the tokens of devices outside the campaign.
const OTHER_SEED: u64 = 0x5bd1_e995;
/// Faults that need a clock that can be shifted.
const CLOCK_KINDS: [FaultKind; 3] =
    [FaultKind::NodeClock, FaultKind::NodeClockDeath, FaultKind::DatabaseClock];
/// Slack of the quota check: each server may hold a part of the quota for this number of seconds and send it at once.
const QUOTA_SLACK_SECONDS: f64 = 5.0;

/// Options of a run.
#[derive(Clone, Debug)]
pub(crate) struct ClusterOptions {
    /// Number of servers.
    pub(crate) nodes: u32,
    /// Number of faults, one after the other.
    pub(crate) faults: u32,
    /// Devices of the campaign: half through FCM, half through APNs.
    pub(crate) devices: u64,
    /// Seed of tokens, answers, and the kinds, places and times of faults.
    pub(crate) seed: u64,
    /// The queue of waiting chunks.
    pub(crate) queue: StageQueue,
    /// True if the database has a standby.
    pub(crate) has_standby: bool,
    /// The kinds of faults to choose from; all kinds if it is empty.
    pub(crate) kinds: Vec<FaultKind>,
    /// An older program that can use our schema: one server runs it from the start, and faults exchange it.
    pub(crate) older: Option<PathBuf>,
    /// Roles of the servers.
    pub(crate) roles: RoleMix,
    /// Number of devices of the gateway.
    pub(crate) gateway_devices: u64,
    /// Directory for all files; without it they are deleted after the run.
    pub(crate) keep: Option<PathBuf>,
}

/// Abilities of this setting that faults need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterAbilities {
    /// Hosts can be cut off from each other.
    pub(crate) can_cut: bool,
    /// The database has a standby.
    pub(crate) has_standby: bool,
    /// The queue is in NATS.
    pub(crate) has_nats: bool,
    /// The database's disk can be made so small that it can be filled.
    pub(crate) has_small_disk: bool,
    /// Clocks can be shifted.
    pub(crate) has_clock: bool,
    /// There is an older program.
    pub(crate) has_older: bool,
}

impl ClusterOptions {
    fn devices(&self) -> DevicePopulation {
        DevicePopulation::new(self.devices, self.seed)
    }

    fn others(&self) -> DevicePopulation {
        DevicePopulation::new(traffic::DEVICES_MAX + controlled::DEVICES_MAX, self.seed ^ OTHER_SEED)
    }

    const fn policy(&self) -> AnswerPolicy {
        AnswerPolicy::Realistic
    }

    /// Quota of each credential per minute, until the last fault is over.
    fn quota_per_minute(&self) -> u32 {
        let seconds = (u64::from(self.faults) * SECONDS_PER_FAULT).max(SECONDS_MIN);
        // Half of the devices are those of one credential.
        u32::try_from((self.devices * 30 / seconds).max(60)).unwrap_or(u32::MAX)
    }

    fn abilities(&self, network: &ClusterNetwork, reporter: &Arc<dyn Reporter>) -> ClusterAbilities {
        ClusterAbilities {
            can_cut: network.can_cut(),
            has_standby: self.has_standby,
            has_nats: self.queue == StageQueue::Nats,
            has_small_disk: self.wants(FaultKind::DatabaseDiskFull) && disk::obstacle(reporter).is_none(),
            has_clock: CLOCK_KINDS.iter().any(|kind| self.wants(*kind)) && clock::obstacle().is_none(),
            has_older: self.older.is_some(),
        }
    }

    fn wants(&self, kind: FaultKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Runs the cluster from beginning to end.
pub(crate) async fn run(
    options: &ClusterOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<ClusterReport> {
    let (network, why_not) = ClusterNetwork::make();
    if let Some(why) = why_not {
        reporter.line(&format!("no partitions: {why}"));
    }
    let abilities = options.abilities(&network, reporter);
    let wanted: Vec<_> = FaultKind::ALL.into_iter().filter(|kind| options.wants(*kind)).collect();
    let skipped = wanted.iter().filter_map(|kind| Some((*kind, kind.obstacle(&abilities)?)));
    let skipped: Vec<_> = skipped.collect();
    for (kind, why) in &skipped {
        reporter.line(&format!("skipped: {}: {why}", kind.word()));
    }
    let possible: Vec<_> =
        wanted.into_iter().filter(|kind| skipped.iter().all(|(other, _)| other != kind)).collect();
    let plan = fault::plan(&possible, options.faults, options.seed);
    let mut site = ClusterSite::start(options, abilities, network, reporter).await?;
    reporter.line(&format!("everything is ready in {}", site.directory().display()));
    let imported =
        import::run(&site.clients(ClusterApp::Campaign)?[0], options.devices(), &**reporter).await?;
    let run = ClusterRun::new(options, plan, reporter, site.state.clone());
    let played = run.play(&mut site).await?;
    played.into_report(options, site, skipped, imported, reporter).await
}

/// A campaign with its faults.
struct ClusterRun<'a> {
    options: &'a ClusterOptions,
    plan: Vec<PlannedFault>,
    reporter: &'a Arc<dyn Reporter>,
    records: Vec<FaultRecord>,
    broken: Vec<String>,
    state: Arc<FaultsState>,
}

/// Results of the campaign and its faults, before they are compared.
struct PlayedCluster {
    planned: u32,
    records: Vec<FaultRecord>,
    broken: Vec<String>,
    watched: WatchedCampaign,
    beside: BesideLogs,
    wall: Duration,
}

impl<'a> ClusterRun<'a> {
    fn new(
        options: &'a ClusterOptions,
        plan: Vec<PlannedFault>,
        reporter: &'a Arc<dyn Reporter>,
        state: Arc<FaultsState>,
    ) -> Self {
        Self { options, plan, reporter, records: Vec::new(), broken: Vec::new(), state }
    }

    async fn play(mut self, site: &mut ClusterSite) -> anyhow::Result<PlayedCluster> {
        let joined = self.join_devices(site).await?;
        let clients = site.clients(ClusterApp::Campaign)?;
        let (beside, slow) = (site.clients(ClusterApp::Beside)?, site.clients(ClusterApp::Slow)?);
        let (accepted_at, latest) = (Instant::now(), Arc::new(Mutex::new(CampaignLedger::default())));
        let watch = self.begin(&clients, latest.clone()).await?;
        let tasks = BesideTasks::begin(self.options, &self.state, [&beside, &slow], joined).await?;
        let plan = std::mem::take(&mut self.plan);
        for (number, fault) in plan.iter().enumerate() {
            tokio::time::sleep(fault.before).await;
            // A fault after the campaign would prove nothing.
            if watch.is_finished() {
                break;
            }
            self.inject(site, *fault, number).await?;
        }
        self.state.end();
        // Before the quota is lifted, since it does not apply to later messages.
        self.check_quota(&latest, accepted_at.elapsed());
        site.lift_quota().await?;
        let (watched, wall) = (watch.await?, accepted_at.elapsed());
        let beside = tasks.finish([&beside, &slow]).await?;
        let Self { records, broken, .. } = self;
        Ok(PlayedCluster { planned: plan.len() as u32, records, broken, watched, beside, wall })
    }

    /// Registers the devices of the gateway, if the options contain any.
    async fn join_devices(&self, site: &ClusterSite) -> anyhow::Result<Option<JoinedDevices>> {
        let ClusterOptions { gateway_devices: devices, seed, .. } = *self.options;
        if devices == 0 {
            return Ok(None);
        }
        let (urls, clients) = (site.gateway_urls()?, site.clients(ClusterApp::Gateway)?);
        let options = GatewayDevicesOptions { devices, urls, clients, seed, state: self.state.clone() };
        JoinedDevices::register(options, &**self.reporter).await.map(Some)
    }

    async fn begin(
        &self,
        clients: &[ApiClient],
        latest: Arc<Mutex<CampaignLedger>>,
    ) -> anyhow::Result<JoinHandle<WatchedCampaign>> {
        let message = json!({
            "target": "everyone",
            "notification": {"title": "Stentor", "body": "One request, every device."},
        });
        let campaign = cell(&clients[0].post("/v1/messages", &message).await?["campaign"]);
        let progress = self.reporter.begin("campaign", self.options.devices);
        let (clients, state) = (clients.to_vec(), self.state.clone());
        let watch = CampaignWatch { clients, campaign, progress, latest, state };
        Ok(tokio::spawn(watch.run()))
    }

    /// Injects one fault and waits until every server serves again.
    async fn inject(
        &mut self,
        site: &mut ClusterSite,
        fault: PlannedFault,
        number: usize,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        site.inject(fault).await?;
        let lasted = begun.elapsed();
        let recovery =
            writing::until_served(&site.clients(ClusterApp::Beside)?, &site.all_clients()?).await?;
        site.check_alive()?;
        let word = fault.kind.word();
        self.reporter.line(&format!(
            "fault {}: {word}, over after {:.1} s, all servers serve {:.1} s later",
            number + 1,
            lasted.as_secs_f64(),
            recovery.as_secs_f64()
        ));
        self.records.push(FaultRecord { kind: fault.kind, recovery });
        Ok(())
    }

    /// Records a violation if all servers together sent more than the quota allows.
    fn check_quota(&mut self, latest: &Mutex<CampaignLedger>, elapsed: Duration) {
        let attempts = latest.lock().attempts;
        let per_second = f64::from(self.options.quota_per_minute()) / 60.0;
        // Each of both credentials has the quota.
        let most = 2.0 * per_second * (elapsed.as_secs_f64() + QUOTA_SLACK_SECONDS);
        if attempts as f64 > most {
            self.broken.push(format!("{attempts} attempts, where the quota allows {most:.0}"));
        }
    }
}

impl PlayedCluster {
    async fn into_report(
        self,
        options: &ClusterOptions,
        mut site: ClusterSite,
        skipped: Vec<(FaultKind, &'static str)>,
        imported: Duration,
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<ClusterReport> {
        let Self { planned, records, mut broken, watched, beside, wall } = self;
        let ledger = watched.ledger;
        // Stopped before their counts are compared, so that none changes in between.
        site.emulators.stop();
        let counted = CountedPushes::read(&site.emulators, options.others())?;
        let BesideLogs { traffic, controlled, gateway } = beside;
        let (beside, controlled) = (traffic.compare(&counted), controlled.compare(&counted));
        broken.extend(beside.broken.iter().chain(&controlled.broken).cloned());
        broken.extend(gateway.iter().flat_map(|gateway| gateway.broken.iter().cloned()));
        let compared = ComparedCampaign {
            policy: options.policy(),
            emulators: &site.emulators,
            client: &site.clients(ClusterApp::Campaign)?[0],
            population: options.devices(),
            others: options.others(),
            ledger: &ledger,
        };
        let comparison = comparison::run(compared, &**reporter).await?;
        let limits = site.nodes[0].server.limits()?;
        let usage = site.nodes.iter_mut().map(|node| node.server.stop());
        let usage = usage.reduce(|sum, next| sum.with(next)).unwrap_or_default();
        let done = records.len() as u32;
        let facts = ClusterFacts {
            faults: [planned, done],
            unanswered: records.iter().filter(|record| record.kind.cuts_answers()).count() as u32,
            nodes: options.nodes,
            broken,
        };
        let stuck = ledger.totals.open() + options.devices.saturating_sub(ledger.audience);
        let run = CampaignResult {
            ledger,
            always_balanced: watched.always_balanced,
            wall_seconds: wall.as_secs_f64(),
            cpu_seconds: usage.cpu_seconds,
            nodes: Vec::new(),
            engine_seconds: Default::default(),
            peak_rss_bytes: usage.peak_rss_bytes,
            done: Kills::default(),
            acceptance: Default::default(),
            stuck,
        };
        let import = ImportCost { seconds: imported.as_secs_f64(), usage: None };
        let findings = DemoFindings { devices: options.devices, run, comparison, usage, import, limits };
        let campaign = DemoReport::of_cluster(facts, findings);
        Ok(ClusterReport { campaign, beside, controlled, gateway, records, skipped })
    }
}
