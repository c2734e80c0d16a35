//! The app server: it receives the device's messages, acknowledges them, and sends them back, over the same connection or by FCM's HTTP v1.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use reqwest::Method;
use serde_json::{Map, Value, json};
use stentor_lab::subject::clock::monotonic_ns;
use stentor_lab::subject::protocol::{Arm, Prepare, Report};
use stentor_lab::subject::sample::ServerSample;
use stentor_lab::subject::setup::{Stream, SubjectSetup};
use tokio::task::{JoinHandle, JoinSet};

use super::gateway_api::{APP, CCS_PORT, GatewayCaller, HeaderField, SEND_KEY, SEND_PORT, fact, port_at};
use crate::features::PushServiceFront;
use parking_lot::{Mutex, MutexGuard};
use stentor_stage::ccs_client::{CcsAppServer, read, stanza};

/// Time to live of a returned message, in seconds: that of a fork, and that in the published code of GCM.
const TTL_SECONDS: u32 = 600;
const TTL_SECONDS_OF_CODE: u32 = 5;

/// The app server, once it has logged in.
pub(super) struct AppServerHalf {
    samples: Arc<Mutex<Vec<ServerSample>>>,
    serving: JoinHandle<anyhow::Result<()>>,
    out: Option<PathBuf>,
}

impl AppServerHalf {
    /// Logs in and begins to serve.
    pub(super) async fn start(service: PushServiceFront, prepare: Prepare) -> anyhow::Result<Self> {
        let factors = &prepare.factors;
        let target = prepare.target.context("an app server needs a gateway")?;
        let ccs = port_at(factors, CCS_PORT, target.ip())?;
        let setup = SubjectSetup::of(factors, prepare.seed)?;
        let (app, key) = (fact(factors, APP)?, fact(factors, SEND_KEY)?);
        let server = CcsAppServer::log_in(setup.connect(ccs).await?, service.ccs_domain(), app, key).await?;
        let is = |name: &str, level: &str| factors.get(name).is_some_and(|given| given == level);
        let answers = AppServerAnswers { has_no_echo: is("reply", "number") };
        let front = if is("downstream", "http-v1") {
            let api = GatewayCaller::at(port_at(factors, SEND_PORT, target.ip())?, factors)?;
            Some(Arc::new(HttpV1Front::of(api, app, key)))
        } else {
            None
        };
        let samples: Arc<Mutex<Vec<ServerSample>>> = Arc::default();
        let (sends, shared_samples) = (JoinSet::new(), Arc::clone(&samples));
        let serving = AppServer { server, answers, front, sends, samples: shared_samples };
        let serving = tokio::spawn(serving.serve());
        Ok(Self { samples, serving, out: None })
    }

    /// Starts a new count of samples.
    pub(super) fn arm(&mut self, arm: Arm) {
        lock(&self.samples).clear();
        self.out = Some(arm.out);
    }

    /// Writes the samples to the file of the order `Arm`. Fails if serving ended early.
    pub(super) async fn stop(&mut self) -> anyhow::Result<Report> {
        if self.serving.is_finished() {
            (&mut self.serving).await??;
        }
        self.serving.abort();
        let mut samples = std::mem::take(&mut *lock(&self.samples));
        // In the order of the device, which numbers its messages: one may have overtaken another on the way.
        samples.sort_by_key(|sample| sample.seq);
        let bytes: Vec<u8> = samples.iter().flat_map(ServerSample::to_bytes).collect();
        if let Some(out) = &self.out {
            std::fs::write(out, bytes)?;
        }
        Ok(Report::Done { n: samples.len() as u64, errors: 0, digest: String::new() })
    }
}

fn lock(samples: &Mutex<Vec<ServerSample>>) -> MutexGuard<'_, Vec<ServerSample>> {
    samples.lock()
}

/// An app server that is connected.
struct AppServer {
    server: CcsAppServer<Stream>,
    answers: AppServerAnswers,
    /// The HTTP client for downstream messages; `None` if they go over the connection itself.
    front: Option<Arc<HttpV1Front>>,
    /// Downstream requests in flight through `front`.
    sends: JoinSet<anyhow::Result<()>>,
    samples: Arc<Mutex<Vec<ServerSample>>>,
}

impl AppServer {
    async fn serve(mut self) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                text = self.server.next() => self.hear(&text?, monotonic_ns()).await?,
                Some(sent) = self.sends.join_next() => sent??,
            }
        }
    }

    async fn hear(&mut self, text: &str, t_recv: i64) -> anyhow::Result<()> {
        let heard = read(text)?;
        match heard["message_type"].as_str() {
            None => self.answer(text, &heard, t_recv).await,
            Some("nack") => bail!("the gateway refused the response: {heard}"),
            Some(_) => Ok(()),
        }
    }

    async fn answer(&mut self, text: &str, heard: &Value, t_recv: i64) -> anyhow::Result<()> {
        let t_deser_end = monotonic_ns();
        let [ack, answer] = self.answers.to(heard);
        let t_work_end = monotonic_ns();
        let ack = stanza(&ack);
        let t_ser_end = match self.front.clone() {
            Some(front) => {
                let body = front.body(answer);
                let t_ser_end = monotonic_ns();
                self.sends.spawn(async move { front.send(body).await });
                self.server.write(&ack).await?;
                t_ser_end
            }
            None => {
                let both = ack + &stanza(&answer);
                let t_ser_end = monotonic_ns();
                self.server.write(&both).await?;
                t_ser_end
            }
        };
        let seq = heard["message_id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let sample = ServerSample {
            seq,
            t_recv,
            t_deser_end,
            t_work_end,
            t_ser_end,
            bytes,
            ..ServerSample::default()
        };
        lock(&self.samples).push(sample);
        Ok(())
    }
}

/// An app server's client of FCM's HTTP v1.
struct HttpV1Front {
    api: GatewayCaller,
    path: String,
    authorization: String,
}

impl HttpV1Front {
    fn of(api: GatewayCaller, app: &str, key: &str) -> Self {
        Self {
            api,
            path: format!("/v1/projects/{app}/messages:send"),
            authorization: format!("Bearer {key}"),
        }
    }

    /// Writes the HTTP v1 body of a downstream message, given as CCS.
    fn body(&self, mut answer: Value) -> String {
        let message = json!({"token": answer["to"].take(), "data": answer["data"].take()});
        json!({"message": message}).to_string()
    }

    /// Sends a body to the API.
    async fn send(&self, body: String) -> anyhow::Result<()> {
        let authorization = HeaderField { name: "authorization", value: &self.authorization };
        let sent = self.api.ask(Method::POST, &self.path, authorization, "application/json", body).await;
        sent.map(drop)
    }
}

/// Writes the answers to a message of the device.
struct AppServerAnswers {
    /// True if the device receives only the id of its message instead of an echo, as in the published code of GCM.
    has_no_echo: bool,
}

impl AppServerAnswers {
    /// Returns the acknowledgement for the gateway and the message for the device.
    fn to(&self, heard: &Value) -> [Value; 2] {
        let (from, id) = (&heard["from"], &heard["message_id"]);
        let ack = json!({"message_type": "ack", "to": from, "message_id": id});
        let mut answer = Map::new();
        answer.insert("to".to_owned(), from.clone());
        answer.insert("message_id".to_owned(), format!("d-{}", id.as_str().unwrap_or_default()).into());
        if self.has_no_echo {
            answer.insert("data".to_owned(), json!({"ack_msgid": id}));
            answer.insert("delay_while_idle".to_owned(), true.into());
            answer.insert("time_to_live".to_owned(), TTL_SECONDS_OF_CODE.into());
        } else {
            answer.insert("data".to_owned(), heard["data"].clone());
            answer.insert("time_to_live".to_owned(), TTL_SECONDS.into());
        }
        [ack, answer.into()]
    }
}
