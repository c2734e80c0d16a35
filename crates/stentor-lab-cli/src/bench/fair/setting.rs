//! The server of the bench, its push services, the hostile apps and the tenth.

use super::apps::{HostileApp, HostileBehaviour};
use super::tenth::{TenthApp, TenthAppTimes, token};
use anyhow::Context;
use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use stentor_stage::client::{ApiClient, Key, segment};
use stentor_stage::devices::StagedService;
use stentor_stage::emulator::Emulator;
use stentor_stage::failure::CommandFailure;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};
use stentor_stage::text::cell;

/// Devices of the tenth app's topic.
const TENTH_DEVICES: u64 = 100;
/// Devices of the app with bad answers.
pub(super) const BAD_DEVICES: u64 = 20_000;
/// Further tokens that the FCM emulator has to count: the tenth app's single messages.
const SINGLE_TOKENS: u64 = 500_000;
const LINES_PER_PART: u64 = 256;

/// All running processes.
pub(super) struct FairStage {
    stage: Stage,
    apps: Vec<HostileApp>,
    tenth: TenthApp,
    /// Ended with the stage.
    tarpit: Emulator,
}

impl FairStage {
    /// Starts a server with ten apps and imports their devices.
    pub(super) async fn build(
        devices: u64,
        behaviours: &[HostileBehaviour],
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<Self> {
        let stage =
            Stage::build(&StageOptions::with_emulators(2 * (SINGLE_TOKENS + BAD_DEVICES)), reporter).await?;
        let policy = json!({"scripts": [{"prefix": "bad-", "then": {"error": {"code": "INTERNAL"}}}]});
        let control = stage.emulators.of(StagedService::Fcm)?.control.as_deref().unwrap_or_default();
        ApiClient::new(control, None, None)?.put("/policy", &policy).await?;
        let tarpit = start_tarpit(&stage, devices).await?;
        let mut apps = Vec::new();
        for (number, behaviour) in behaviours.iter().enumerate() {
            let app = make_app(&stage, number, *behaviour).await?;
            furnish(&stage, &app, &tarpit, devices).await?;
            apps.push(app);
        }
        reporter.line(&format!("{} hostile apps and their devices are ready", apps.len()));
        import(&stage.client, "tenth", 0..TENTH_DEVICES, "\"tenth\"").await?;
        let tenth = TenthApp::new(stage.client.clone());
        Ok(Self { stage, apps, tenth, tarpit })
    }

    /// The hostile apps.
    pub(super) fn apps(&self) -> &[HostileApp] {
        &self.apps
    }

    /// Measures the tenth app for the time `span`.
    pub(super) async fn measure(&mut self, span: Duration) -> anyhow::Result<TenthAppTimes> {
        let tokens: Vec<String> = (0..TENTH_DEVICES).map(|number| token("tenth", number)).collect();
        self.tenth.send(self.stage.emulators.of(StagedService::Fcm)?, &tokens, span).await
    }

    /// Fails if a process has ended by itself.
    pub(super) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.tarpit.check_alive()?;
        self.stage.check_alive()
    }
}

/// Starts a push service that answers after five to twenty seconds.
async fn start_tarpit(stage: &Stage, devices: u64) -> anyhow::Result<Emulator> {
    let directory = stage.directory().join("tarpit");
    std::fs::create_dir_all(&directory).context("no directory can be made for the tarpit")?;
    let settings = json!({
        "latency": {"kind": "uniform", "min_ms": 5_000, "max_ms": 20_000},
        "observer": {"capacity_tokens": devices + 1_000},
    });
    Emulator::start(StagedService::Fcm, true, &directory, settings).await
}

/// Creates an app with a key of its own; its callers have an address of their own.
async fn make_app(stage: &Stage, number: usize, behaviour: HostileBehaviour) -> anyhow::Result<HostileApp> {
    let root = stage.server.client()?;
    let id = cell(&root.post("/v1/apps", &json!({"name": behaviour.word()})).await?["id"]);
    let path = format!("/v1/apps/{}/keys", segment(&id));
    let request = json!({"name": "key", "scopes": ["send", "register", "admin"]});
    let key = root.post(&path, &request).await?;
    let key =
        key["secret"].as_str().ok_or_else(|| CommandFailure::not_done("a key has no secret"))?.to_owned();
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 1, number as u8 + 1));
    let client = ApiClient::new(root.server(), Some(Key(key.clone())), None)?.with_source(address)?;
    Ok(HostileApp { behaviour, id, key, address, client })
}

/// Creates the credential and the devices that a hostile app needs.
async fn furnish(stage: &Stage, app: &HostileApp, tarpit: &Emulator, devices: u64) -> anyhow::Result<()> {
    let (mut provider, mut credential) = ("null", json!({}));
    if matches!(app.behaviour, HostileBehaviour::Tarpit | HostileBehaviour::BadAnswers) {
        let emulator = if app.behaviour == HostileBehaviour::Tarpit {
            tarpit
        } else {
            stage.emulators.of(StagedService::Fcm)?
        };
        (provider, credential) = ("fcm", fcm_credential(stage, emulator)?);
    }
    let path = format!("/v1/apps/{}/credentials/{provider}", segment(&app.id));
    stage.server.client()?.put(&path, &credential).await?;
    match app.behaviour {
        HostileBehaviour::Tarpit => import(&app.client, "tarpit", 0..devices, "").await,
        HostileBehaviour::BadAnswers => import(&app.client, "bad", 0..BAD_DEVICES, "").await,
        HostileBehaviour::DryRun => import(&app.client, "counted", 0..devices, "\"all\"").await,
        _ => Ok(()),
    }
}

/// The credential of the demo's service account for another FCM.
fn fcm_credential(stage: &Stage, emulator: &Emulator) -> anyhow::Result<Value> {
    let beside =
        if std::ptr::eq(emulator, stage.emulators.of(StagedService::Fcm)?) { "ca" } else { "tarpit/ca" };
    let ca_pem = std::fs::read_to_string(stage.directory().join(beside).join("ca.pem"))?;
    Ok(stage.keys.fcm_credential(&emulator.url, &ca_pem))
}

/// Imports Android devices with these topics.
async fn import(
    client: &ApiClient,
    name: &'static str,
    numbers: std::ops::Range<u64>,
    topics: &'static str,
) -> anyhow::Result<()> {
    let count = numbers.end - numbers.start;
    let parts = numbers.clone().step_by(LINES_PER_PART as usize).map(move |start| {
        let end = (start + LINES_PER_PART).min(numbers.end);
        let line = |number| {
            format!(
                "{{\"platform\":\"android\",\"token\":\"{}\",\"topics\":[{topics}]}}\n",
                token(name, number)
            )
        };
        Ok::<_, Infallible>(Bytes::from((start..end).map(line).collect::<String>()))
    });
    let query = [("format", "ndjson".to_owned())];
    let body = Body::wrap_stream(stream::iter(parts));
    let reply = client.stream("/v1/devices/import", &query, "application/x-ndjson", body).await?;
    if reply["created"].as_u64() == Some(count) {
        return Ok(());
    }
    Err(CommandFailure::not_done(format!("of {count} devices not all were imported: {reply}")).into())
}
