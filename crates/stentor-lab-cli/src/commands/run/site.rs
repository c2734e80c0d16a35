//! The site of a study: a server with its apps, and an emulator of each push service.

use anyhow::Context;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use stentor_lab::plan::{Background, CampaignCell, Campaigns, PlatformDevices, PlatformMix};
use stentor_stage::client::ApiClient;
use stentor_stage::devices::{DevicePopulation, PopulationMember, StagedService, StagedServices};
use stentor_stage::emulator::{Emulators, StageCredentials};
use stentor_stage::import;
use stentor_stage::keys::Keys;
use stentor_stage::server::Server;
use stentor_stage::stage::make_app;
use stentor_terminal::output::cell;
use stentor_terminal::progress::on_the_terminal;
use tempfile::TempDir;

/// The app of tests of one platform.
const ONE: usize = 0;
/// The app of tests of both.
const BOTH: usize = 1;
/// The app of tests by GCM's legacy protocol.
const LEGACY: usize = 2;
/// Numbers of parts of an audience, one for each producer at one provider, apart from a single producer.
const PARTS: [u32; 2] = [2, 4];

/// The push services that have an emulator.
pub(super) const EMULATED: [StagedService; 3] = [StagedService::Fcm, StagedService::Apns, StagedService::Gcm];

/// Prefix of the name of the processes' directory, below the results.
pub(super) const DIRECTORY: &str = "site-";

/// All running processes.
pub(super) struct Site {
    // The server comes first, so that it is dropped before the processes that it connects to.
    pub(super) server: Server,
    pub(super) emulators: Emulators,
    pub(super) apps: Vec<SiteApp>,
    /// Load beside every trial.
    pub(super) background: Background,
    /// Apps that send at the same time, by their number and the app that they stand for.
    at_once: HashMap<(u32, usize), Vec<usize>>,
    /// Devices of each app of the study.
    devices: [PlatformDevices; 3],
    /// Credentials of every app for the emulators.
    credentials: StageCredentials,
    _directory: TempDir,
}

/// An app and its devices.
pub(super) struct SiteApp {
    pub(super) client: ApiClient,
    pub(super) fleet: DevicePopulation,
}

impl Site {
    /// Starts all processes, creates the two apps of the study and imports their devices.
    pub(super) async fn build(study: &Campaigns, scale: f64, out: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix(DIRECTORY).tempdir_in(out);
        let directory = directory.context("no directory can be made for the processes")?;
        let path = std::path::absolute(directory.path())?;
        let (keys, devices) = (
            Keys::make()?,
            [PlatformMix::Gcm, PlatformMix::Both, PlatformMix::LegacyGcm]
                .map(|mix| study.devices(mix, scale)),
        );
        let tokens: u64 = devices.iter().map(|devices| devices.gcm.max(devices.apns)).sum();
        // A run has no more tokens than these; the rest is room for unexpected ones.
        let settings = |service| settings(service, &keys, 4 * tokens + 1000);
        let all = StagedServices::new(&EMULATED).context("each is named once")?;
        let emulators = Emulators::start(all, false, &path, settings).await?;
        let server = Server::start(&path).await?;
        let credentials = emulators.credentials(&keys)?;
        let mut site = Self {
            server,
            emulators,
            apps: Vec::new(),
            background: study.background,
            at_once: HashMap::new(),
            devices,
            credentials,
            _directory: directory,
        };
        for (place, devices) in devices.into_iter().enumerate() {
            site.add_app(devices, place == LEGACY).await?;
        }
        Ok(site)
    }

    /// Returns the apps for the pushes of a cell, and creates missing ones.
    pub(super) async fn apps_for(&mut self, cell: &CampaignCell) -> anyhow::Result<Vec<usize>> {
        let place = match cell.mix {
            PlatformMix::Gcm | PlatformMix::Apns => ONE,
            PlatformMix::Both => BOTH,
            PlatformMix::LegacyGcm => LEGACY,
        };
        let key = (cell.apps, place);
        if cell.needs_own_devices() || (cell.apps > 1 && !self.at_once.contains_key(&key)) {
            let made = self.add_apps(cell.apps, place).await?;
            if cell.needs_own_devices() {
                return Ok(made);
            }
            self.at_once.insert(key, made);
        }
        Ok(self.at_once.get(&key).cloned().unwrap_or_else(|| vec![place]))
    }

    /// Creates `count` apps that share as many devices as an app of the study has; returns their indexes.
    async fn add_apps(&mut self, count: u32, place: usize) -> anyhow::Result<Vec<usize>> {
        // The settings and limits of the run before are not for an import.
        self.server.restart_with("", None).await?;
        let (first, devices) = (self.apps.len(), self.devices[place]);
        let share = |all: u64| (all / u64::from(count)).max(2);
        for _ in 0..count {
            let devices = PlatformDevices { gcm: share(devices.gcm), apns: share(devices.apns) };
            self.add_app(devices, place == LEGACY).await?;
        }
        Ok((first..self.apps.len()).collect())
    }

    /// Returns the tokens of the known devices of a platform: the first of each app.
    pub(super) fn known_tokens(&self, apps: &[usize], service: StagedService) -> Vec<String> {
        apps.iter().map(|app| self.apps[*app].fleet.token(PopulationMember { service, number: 0 })).collect()
    }

    /// Counts the devices that a campaign of each of these apps reaches.
    pub(super) fn audience(&self, apps: &[usize], mix: PlatformMix) -> u64 {
        let services = || services(mix).iter();
        apps.iter()
            .map(|app| services().map(|service| self.apps[*app].fleet.devices_of(*service)).sum::<u64>())
            .sum()
    }

    /// Cancels unfinished campaigns of a run, so that they do not continue in the next.
    pub(super) async fn cancel_running(&self, apps: &[usize]) -> anyhow::Result<()> {
        for SiteApp { client, .. } in apps.iter().map(|app| &self.apps[*app]) {
            let listed = client.get_with("/v1/campaigns", &[("limit", "100".to_owned())]).await?;
            let campaigns = listed["campaigns"].as_array().into_iter().flatten();
            for campaign in campaigns.filter(|campaign| campaign["ended_at"].is_null()) {
                client.act(&format!("/v1/campaigns/{}/cancel", cell(&campaign["id"]))).await?;
            }
        }
        Ok(())
    }

    /// Returns the number of connections that the emulators have accepted since their start.
    pub(super) async fn connections_opened(&self) -> anyhow::Result<u64> {
        let mut opened = 0;
        for emulator in self.emulators.all() {
            let control = ApiClient::new(emulator.control.as_deref().unwrap_or_default(), None, None)?;
            opened += control.get("/counts").await?["wire"]["connections"].as_u64().unwrap_or(0);
        }
        Ok(opened)
    }

    /// Returns the time of creation of the newest campaign of any app, by the server's clock.
    pub(super) async fn newest_campaign(&self) -> anyhow::Result<Option<String>> {
        let mut newest = None;
        for SiteApp { client, .. } in &self.apps {
            let listed = client.get_with("/v1/campaigns", &[("limit", "1".to_owned())]).await?;
            // Instants in this form are ordered as text.
            newest = newest.max(listed["campaigns"][0]["created_at"].as_str().map(str::to_owned));
        }
        Ok(newest)
    }

    /// Fails if a process has ended by itself.
    pub(super) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.server.check_alive()?;
        self.emulators.check_alive()
    }

    async fn add_app(&mut self, devices: PlatformDevices, is_legacy: bool) -> anyhow::Result<()> {
        let number = self.apps.len() as u64 + 1;
        let used: &[StagedService] = if is_legacy { &[StagedService::Gcm] } else { &StagedService::USUAL };
        let credentials = self.credentials.iter().filter(|(service, _)| used.contains(service)).cloned();
        let name = format!("app {number}");
        let client = make_app(self.server.client()?, &name, &credentials.collect()).await?;
        let services = StagedServices::new(used).context("each is named once")?;
        // A population has the same number of devices for each platform.
        let count = used.len() as u64 * devices.gcm.min(devices.apns);
        let fleet = DevicePopulation::new(count, number).through(services);
        import::run_with(&client, fleet, write_line, &*on_the_terminal()).await?;
        self.apps.push(SiteApp { client, fleet });
        Ok(())
    }
}

/// The platforms of a mix.
pub(super) const fn services(mix: PlatformMix) -> &'static [StagedService] {
    match mix {
        PlatformMix::Gcm => &[StagedService::Fcm],
        PlatformMix::Apns => &[StagedService::Apns],
        PlatformMix::Both => &StagedService::USUAL,
        PlatformMix::LegacyGcm => &[StagedService::Gcm],
    }
}

/// The topic of all devices of a platform.
pub(super) const fn topic(service: StagedService) -> &'static str {
    match service {
        StagedService::Fcm => "gcm",
        other => other.word(),
    }
}

/// The topic of a part of a platform's devices.
pub(super) fn part(service: StagedService, parts: u32, number: u64) -> String {
    format!("{}-{}-of-{parts}", topic(service), number % u64::from(parts) + 1)
}

/// A device in the form of the API.
pub(super) fn registration(fleet: DevicePopulation, member: PopulationMember) -> Value {
    let (platform, provider) = (member.service.platform(), member.service.word());
    json!({"platform": platform, "provider": provider, "token": fleet.token(member)})
}

fn write_line(fleet: DevicePopulation, member: PopulationMember, lines: &mut String) {
    let mut device = registration(fleet, member);
    let parts = PARTS.map(|parts| part(member.service, parts, member.number));
    let topics: Vec<&str> =
        [topic(member.service)].into_iter().chain(parts.iter().map(String::as_str)).collect();
    device["topics"] = json!(topics);
    // Writing to a string cannot fail.
    let _ = writeln!(lines, "{device}");
}

fn settings(service: StagedService, keys: &Keys, capacity_tokens: u64) -> Value {
    let mut settings = json!({
        "seed": 1,
        "control": "127.0.0.1:0",
        "observer": {"capacity_tokens": capacity_tokens},
    });
    keys.introduce(service, &mut settings);
    settings
}
