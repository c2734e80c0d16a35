//! The site of a study: a server with its apps, and an emulator of each push service.

use crate::client::Client;
use crate::demo::emulator::Emulator;
use crate::demo::fleet::{Fleet, Half, Member};
use crate::demo::import;
use crate::demo::keys::Keys;
use crate::demo::server::Server;
use crate::demo::stage::make_app;
use anyhow::Context;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use stentor_lab::study::{Background, Devices, Mix, Study};
use tempfile::TempDir;

/// The app of tests of one platform.
pub(super) const ONE: usize = 0;
/// The app of tests of both.
pub(super) const BOTH: usize = 1;

/// Everything that runs.
pub(super) struct Site {
    // The server is first, so that it is ended before those it talks to.
    pub(super) server: Server,
    pub(super) fcm: Emulator,
    pub(super) apns: Emulator,
    pub(super) apps: Vec<App>,
    /// What goes on beside every trial.
    pub(super) background: Background,
    keys: Keys,
    ca_pem: String,
    _directory: TempDir,
}

/// An app and its devices.
pub(super) struct App {
    pub(super) client: Client,
    pub(super) fleet: Fleet,
}

impl Site {
    /// Starts everything, makes the two apps of the study and imports their devices.
    pub(super) async fn build(study: &Study, scale: f64, out: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("site-").tempdir_in(out);
        let directory = directory.context("no directory can be made for the processes")?;
        let path = std::path::absolute(directory.path())?;
        let (keys, devices) = (Keys::make()?, [Mix::Gcm, Mix::Both].map(|mix| study.devices(mix, scale)));
        let tokens: u64 = devices.iter().map(|devices| devices.gcm.max(devices.apns)).sum();
        // Further apps have as many devices again as the second; the rest is for tokens that should not be there.
        let settings = |half| settings(half, &keys, 4 * tokens + 1000);
        let fcm = Emulator::start(Half::Fcm, false, &path, settings(Half::Fcm)).await?;
        let apns = Emulator::start(Half::Apns, false, &path, settings(Half::Apns)).await?;
        let server = Server::start(&path).await?;
        let ca_pem = std::fs::read_to_string(path.join("ca").join("ca.pem"))?;
        let (apps, background) = (Vec::new(), study.background);
        let mut site = Self { server, fcm, apns, apps, background, keys, ca_pem, _directory: directory };
        for devices in devices {
            site.add_app(devices).await?;
        }
        Ok(site)
    }

    /// Makes so many apps that share these devices evenly; returns their places.
    pub(super) async fn add_apps(&mut self, count: usize, devices: Devices) -> anyhow::Result<Vec<usize>> {
        let first = self.apps.len();
        let share = |all: u64| (all / count as u64).max(2);
        for _ in 0..count {
            self.add_app(Devices { gcm: share(devices.gcm), apns: share(devices.apns) }).await?;
        }
        Ok((first..first + count).collect())
    }

    /// One of the emulators.
    pub(super) fn emulator(&self, half: Half) -> &Emulator {
        match half {
            Half::Fcm => &self.fcm,
            Half::Apns => &self.apns,
        }
    }

    /// Asks the emulators how many connections they have taken since they were started.
    pub(super) async fn connections_opened(&self) -> anyhow::Result<u64> {
        let mut opened = 0;
        for emulator in [&self.fcm, &self.apns] {
            let control = Client::new(emulator.control.as_deref().unwrap_or_default(), None, None)?;
            opened += control.get("/counts").await?["wire"]["connections"].as_u64().unwrap_or(0);
        }
        Ok(opened)
    }

    /// Fails when a process has ended by itself.
    pub(super) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.server.check_alive()?;
        self.fcm.check_alive()?;
        self.apns.check_alive()
    }

    async fn add_app(&mut self, devices: Devices) -> anyhow::Result<()> {
        let credentials = [
            self.keys.fcm_credential(&self.fcm.url, &self.ca_pem),
            self.keys.apns_credential(&self.apns.url, &self.ca_pem),
        ];
        let number = self.apps.len() as u64 + 1;
        let client = make_app(self.server.client()?, &format!("app {number}"), &credentials).await?;
        // Both platforms have as many devices, which is what a fleet is made of.
        let fleet = Fleet::new(2 * devices.gcm.min(devices.apns), number);
        import::run_with(&client, fleet, write_line).await?;
        self.apps.push(App { client, fleet });
        Ok(())
    }
}

/// The platforms that a mix means.
pub(super) const fn halves(mix: Mix) -> &'static [Half] {
    match mix {
        Mix::Gcm => &[Half::Fcm],
        Mix::Apns => &[Half::Apns],
        Mix::Both => &Half::BOTH,
    }
}

/// The topic that all devices of a platform are subscribed to.
pub(super) const fn topic(half: Half) -> &'static str {
    match half {
        Half::Fcm => "gcm",
        Half::Apns => "apns",
    }
}

/// A device as the API wants it.
pub(super) fn registration(fleet: Fleet, member: Member) -> Value {
    let platform = match member.half {
        Half::Fcm => "android",
        Half::Apns => "apple",
    };
    json!({"platform": platform, "token": fleet.token(member)})
}

fn write_line(fleet: Fleet, member: Member, lines: &mut String) {
    let mut device = registration(fleet, member);
    device["topics"] = json!([topic(member.half)]);
    // Writing to a string cannot fail.
    let _ = writeln!(lines, "{device}");
}

fn settings(half: Half, keys: &Keys, capacity_tokens: u64) -> Value {
    let mut settings = json!({
        "seed": 1,
        "control": "127.0.0.1:0",
        "observer": {"capacity_tokens": capacity_tokens},
    });
    keys.introduce(half, &mut settings);
    settings
}
