//! One cheap operation through every face of one server, beside other servers that answer with the same record.

mod measured;
mod report;
mod rivals;

use crate::faces::replay::{FaceCall, FieldValue, Replay};
use anyhow::Context;
use measured::MeasuredFace;
use rivals::Rival;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use stentor_stage::client::ApiClient;
use stentor_stage::reporter::Reporter;
use stentor_stage::server::{Server, data_dir};
use stentor_stage::text::cell;

pub(crate) use report::{ABOVE_REST_MAX_US, FaceRow, FacesReport};
pub(crate) use rivals::RivalFolder;

/// The operation that is called through every face: a read of one record.
pub(crate) const OPERATION: &str = "devices.show";
/// The faces, in the order in which they take turns.
const FACES: [&str; 5] = ["rest", "soap", "xmlrpc", "grpc", "socket"];
/// The raw socket is off unless it has an address.
const SETTINGS: &str = "[api]\nsocket_listen = \"127.0.0.1:0\"\n";

/// Options of the bench.
#[derive(Clone, Debug)]
pub(crate) struct FacesOptions {
    /// Seconds of each turn.
    pub(crate) seconds: u32,
    /// Number of turns of each face.
    pub(crate) rounds: u32,
    /// Connections at the same time, each with one call at a time.
    pub(crate) connections: usize,
    /// Seconds of calls that are not timed, before the first turn.
    pub(crate) warm_up_seconds: u32,
    /// Folder of the rivals.
    pub(crate) rivals: RivalFolder,
    /// The commit of the build.
    pub(crate) commit: &'static str,
}

/// A face of ours with its rival, or the reason for which it has none.
struct FacePair {
    face: &'static str,
    ours: MeasuredFace,
    rival: Result<Rival, String>,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(options: FacesOptions, reporter: &dyn Reporter) -> anyhow::Result<FacesReport> {
    let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
    let mut server = Server::start_with(directory.path(), Some(SETTINGS.to_owned()), Vec::new()).await?;
    let (client, key) = make_app(server.client()?).await?;
    let record = register(&client).await?;
    let process = server.process().context("the server does not run")?.id();
    let mut pairs = Vec::new();
    for face in FACES {
        let replay = replay(face, &client, directory.path(), &key, &record)?;
        let ours = MeasuredFace::find(replay, process, &texts(&record))?;
        let rival = rivals::start(face, &options.rivals, &record, &texts(&record)).await;
        pairs.push(FacePair { face, ours, rival });
    }
    let load_before = stentor_stage::child_process::load_average();
    options.measure(&mut pairs, reporter)?;
    let usage = server.stop();
    Ok(FacesReport::of(&options, pairs, &record, usage.peak_rss_bytes, load_before))
}

impl FacesOptions {
    /// Warms all servers up and gives them their turns. In each round every face and every rival has one turn, so that a slow minute of the
    /// machine affects all of them.
    fn measure(&self, pairs: &mut [FacePair], reporter: &dyn Reporter) -> anyhow::Result<()> {
        let limit = |seconds: u32| Duration::from_secs(seconds.into());
        let (warm_up, turn) = (limit(self.warm_up_seconds), limit(self.seconds));
        for pair in &*pairs {
            pair.ours.warm_up(self.connections, warm_up)?;
            if let Ok(rival) = &pair.rival {
                rival.measured.warm_up(self.connections, warm_up)?;
            }
        }
        for round in 1..=self.rounds {
            for pair in &mut *pairs {
                let failed = || format!("{}, round {round}", pair.face);
                pair.ours.take_turn(self.connections, turn).with_context(failed)?;
                if let Ok(rival) = &mut pair.rival {
                    rival.measured.take_turn(self.connections, turn).with_context(|| rival.id.clone())?;
                }
            }
            reporter.line(&format!("round {round} of {}", self.rounds));
        }
        Ok(())
    }
}

/// Creates an app; returns a client that acts for it and a key of its own.
async fn make_app(root: ApiClient) -> anyhow::Result<(ApiClient, String)> {
    let app = cell(&root.post("/v1/apps", &json!({"name": "faces"})).await?["id"]);
    let request = json!({"name": "bench", "scopes": ["admin"]});
    let key = root.post(&format!("/v1/apps/{app}/keys"), &request).await?;
    let secret = key["secret"].as_str().context("the server made no key")?.to_owned();
    Ok((root.for_app(app), secret))
}

/// Registers a device with a value in every field that a device in use has, and returns its record.
async fn register(client: &ApiClient) -> anyhow::Result<Value> {
    let device = json!({
        "platform": "android",
        "token": "a-token-of-a-phone-of-which-only-the-end-is-shown-0001",
        "tags": ["beta", "europe", "subscriber-since-2019", "wants-weekly-summary"],
        "locale": "de-DE",
        "time_zone": "Europe/Berlin",
        "user": "anna-4711",
    });
    let id = cell(&client.post("/v1/devices", &device).await?["id"]);
    client.get(&format!("/v1/devices/{id}")).await
}

fn replay(
    face: &str,
    client: &ApiClient,
    directory: &Path,
    key: &str,
    record: &Value,
) -> anyhow::Result<Replay> {
    let written = if face == "socket" {
        std::fs::read_to_string(data_dir(directory).join("socket.addr"))?
    } else {
        client.server().trim_start_matches("http://").to_owned()
    };
    let address = written.trim().parse().with_context(|| format!("{written:?} is no address"))?;
    Ok(Replay::of(face, address, key, &show(record)))
}

/// The call that reads this device.
fn show(record: &Value) -> FaceCall {
    let id = cell(&record["id"]);
    FaceCall {
        operation: OPERATION,
        element: "ShowDevice",
        method: "/stentor.v1.Devices/ShowDevice",
        verb: "GET",
        path: format!("/v1/devices/{id}"),
        path_fields: 1,
        fields: vec![(1, "device", FieldValue::Text(id))],
    }
}

/// The texts of a record that every encoding carries unchanged. The hint of the token begins with a character beyond ASCII, which XML may
/// write as a number, so that only its end is compared.
fn texts(record: &Value) -> Vec<String> {
    let fields = record.as_object().into_iter().flatten().map(|(_, value)| value);
    let values =
        fields.flat_map(|value| value.as_array().map_or_else(|| vec![value], |items| items.iter().collect()));
    let texts = values.filter_map(Value::as_str);
    texts.map(|text| text.trim_start_matches(|letter: char| !letter.is_ascii()).to_owned()).collect()
}
