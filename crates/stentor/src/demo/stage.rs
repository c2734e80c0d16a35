//! The stage of the demo: a directory, two emulators, a server, an app with its credentials.

use super::Demo;
use super::emulator::Emulator;
use super::fleet::{Fleet, Half};
use super::keys::Keys;
use super::server::{Server, data_dir};
use super::troubles::{self, Ground, Inquiry};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::cell;
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long the campaign should last at least, for every kill, so that all of them fall into it.
pub(crate) const SECONDS_PER_KILL: f64 = 0.5;
/// How many requests a provider may have in flight when it begins.
const USUAL_INFLIGHT_REQUESTS: f64 = 4_096.0;
/// A small campaign is in flight as a whole; it must not be answered before the next kill can come.
const MAX_LATENCY_MS: f64 = 1000.0 * SECONDS_PER_KILL;

/// Everything that runs.
pub(crate) struct Stage {
    // The server is first, so that it is ended before those it talks to.
    pub(crate) server: Server,
    pub(crate) fcm: Emulator,
    pub(crate) apns: Emulator,
    /// A client that acts for the demo's app.
    pub(crate) client: Client,
    /// How long the emulators take to answer, if they were told to take their time.
    pub(crate) latency_ms: Option<f64>,
    /// The keys that its emulators know.
    pub(crate) keys: Keys,
    // Gone before its directory, and after the server that stands on it.
    pub(crate) ground: Ground,
    directory: Directory,
}

enum Directory {
    Passing(TempDir),
    Kept(PathBuf),
}

impl Directory {
    fn path(&self) -> &Path {
        match self {
            Self::Passing(directory) => directory.path(),
            Self::Kept(path) => path,
        }
    }
}

impl Stage {
    /// Starts everything and waits until it is ready.
    pub(crate) async fn build(demo: &Demo) -> anyhow::Result<Self> {
        let directory = make_directory(demo.keep.as_deref())?;
        let path = directory.path();
        let keys = Keys::make()?;
        let latency_ms = latency_ms(demo);
        let fcm = Emulator::start(Half::Fcm, demo.sinks, path, settings(demo, Half::Fcm, &keys)).await?;
        let apns = Emulator::start(Half::Apns, demo.sinks, path, settings(demo, Half::Apns, &keys)).await?;
        let ground = Ground::prepare(demo.trouble, path, &data_dir(path), demo.devices)?;
        let settings = demo.trouble.map(|_| troubles::settings(demo.devices));
        let server = Server::start_with(path, settings, ground.environment()).await?;
        let ca_pem = std::fs::read_to_string(path.join("ca").join("ca.pem"))
            .context("the emulators left no ca.pem")?;
        let credentials = [keys.fcm_credential(&fcm.url, &ca_pem), keys.apns_credential(&apns.url, &ca_pem)];
        let client = make_app(server.client()?, "demo", &credentials).await?;
        Ok(Self { server, fcm, apns, client, latency_ms, keys, ground, directory })
    }

    /// Where everything lies.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// One of the emulators.
    pub(crate) fn emulator(&self, half: Half) -> &Emulator {
        match half {
            Half::Fcm => &self.fcm,
            Half::Apns => &self.apns,
        }
    }

    /// One of the emulators, to be killed.
    pub(crate) fn emulator_mut(&mut self, half: Half) -> &mut Emulator {
        match half {
            Half::Fcm => &mut self.fcm,
            Half::Apns => &mut self.apns,
        }
    }

    /// Ends the emulators, so that their counts are final.
    pub(crate) fn stop_emulators(&mut self) {
        self.fcm.stop();
        self.apns.stop();
    }

    /// Stops both emulators where they are for so long: the campaign cannot end meanwhile.
    pub(crate) async fn stall_emulators(&self, span: Duration) {
        let both = [&self.fcm, &self.apns];
        both.into_iter().for_each(Emulator::pause);
        tokio::time::sleep(span).await;
        both.into_iter().for_each(Emulator::resume);
    }

    /// Makes the trouble for which this stage was built.
    pub(crate) async fn shake(&mut self, inquiry: &mut Inquiry) -> anyhow::Result<()> {
        match self.server.process() {
            Some(server) => self.ground.shake(server, &self.client, inquiry).await,
            None => Ok(()),
        }
    }

    /// Fails when a process has ended by itself.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.server.check_alive()?;
        self.fcm.check_alive()?;
        self.apns.check_alive()
    }
}

fn make_directory(keep: Option<&Path>) -> anyhow::Result<Directory> {
    let Some(path) = keep else {
        let directory = tempfile::Builder::new().prefix("stentor-demo-").tempdir();
        return Ok(Directory::Passing(directory.context("no directory can be made for the demo")?));
    };
    let usable = std::fs::create_dir_all(path).and_then(|()| std::fs::read_dir(path));
    let mut entries = usable.with_context(|| format!("{} cannot be used", path.display()))?;
    if entries.next().is_some() {
        let sentence = format!("{} is not empty: name a new directory with --keep", path.display());
        return Err(Failure::usage(sentence).into());
    }
    let path = std::path::absolute(path).context("the directory has no absolute path")?;
    Ok(Directory::Kept(path))
}

fn settings(demo: &Demo, half: Half, keys: &Keys) -> Value {
    // Every token fits in, with room for ones that should not be there.
    let capacity_tokens = Fleet::new(demo.devices, demo.seed).devices_of(half) + 1000;
    if demo.sinks {
        let latency = latency_ms(demo).map(|ms| json!({"kind": "fixed", "ms": ms}));
        return json!({"latency": latency, "observer": {"capacity_tokens": capacity_tokens}});
    }
    let mut settings = json!({
        "seed": demo.seed,
        "policy": policy(demo, half),
        "observer": {"capacity_tokens": capacity_tokens},
        "control": "127.0.0.1:0",
    });
    keys.introduce(half, &mut settings);
    settings
}

fn policy(demo: &Demo, half: Half) -> Value {
    let mut policy = demo.policy.of(half);
    if let Some(ms) = latency_ms(demo) {
        policy["latency"] = json!({"kind": "fixed", "ms": ms});
    }
    policy
}

/// Returns the latency that was asked for, or one at which the campaign lasts long enough for all kills.
fn latency_ms(demo: &Demo) -> Option<f64> {
    let kills = f64::from(demo.all_kills());
    if demo.latency_ms.is_some() || kills < 1.0 {
        return demo.latency_ms;
    }
    let devices_per_provider = demo.devices as f64 / 2.0;
    let seconds = SECONDS_PER_KILL * kills;
    Some((1000.0 * seconds * USUAL_INFLIGHT_REQUESTS / devices_per_provider).clamp(1.0, MAX_LATENCY_MS))
}

/// Makes an app with both credentials; returns a client that acts for it.
pub(crate) async fn make_app(root: Client, name: &str, credentials: &[Value; 2]) -> anyhow::Result<Client> {
    let app = root.post("/v1/apps", &json!({"name": name})).await?;
    let app = cell(&app["id"]);
    let path = format!("/v1/apps/{}/credentials", segment(&app));
    for (half, credential) in Half::BOTH.iter().zip(credentials) {
        root.put(&format!("{path}/{}", half.word()), credential).await?;
    }
    Ok(root.for_app(app))
}
