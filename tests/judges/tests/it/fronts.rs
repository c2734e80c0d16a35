//! Foreign clients of other servers against our fronts, which send on to the FCM emulator.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use reqwest::{Client as Http, StatusCode};
use serde_json::{Value, json};
use stentor_emulators::policy::{Policy, ServiceError, Stall};
use stentor_emulators::{FcmConfig, FcmEmulator, RunningFcm};
use stentor_server::config::{Config, Engine};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::authority::RoomAuthority;
use crate::client::{Client, Report};
use crate::policy::{always, scripted};
use crate::room::{Room, judge};

/// The maximum time until a message arrives at FCM.
const ARRIVAL_MAX: Duration = Duration::from_secs(60);

/// A request on its way.
pub(crate) type PendingRequest = JoinHandle<reqwest::Result<reqwest::Response>>;

/// A Stentor server with an app that sends to an emulator. The emulator does not know the token `gone`.
pub(crate) struct Served {
    url: String,
    pub(crate) app: String,
    root: String,
    key: String,
    pub(crate) fcm: RunningFcm,
    http: Http,
    _stop: oneshot::Sender<()>,
    _reload: mpsc::Sender<()>,
}

impl Served {
    async fn start(room: &Room) -> anyhow::Result<Self> {
        Self::begin(room, Http::builder(), |config| config.api.listen = ([127, 0, 0, 1], 0).into()).await
    }

    /// Starts one under the names that the clients of GCM and FCM have built in.
    pub(crate) async fn disguised(
        room: &Room,
        files: &RoomAuthority,
        change: impl FnOnce(&mut Config),
    ) -> anyhow::Result<Self> {
        let trusted = reqwest::Certificate::from_pem(&std::fs::read(&files.authority)?)?;
        let http = Http::builder().tls_certs_only([trusted]);
        Self::begin(room, http, |config| {
            config.api.listen = ([127, 0, 0, 1], 443).into();
            config.api.tls_cert_file.clone_from(&files.certificate);
            config.api.tls_key_file.clone_from(&files.key);
            change(config);
        })
        .await
    }

    async fn begin(
        room: &Room,
        http: reqwest::ClientBuilder,
        change: impl FnOnce(&mut Config),
    ) -> anyhow::Result<Self> {
        let mut config = Config::embedded()?;
        config.data_dir = room.folder().join("data");
        config.store.engine = Engine::Memory;
        config.queue.engine = stentor_server::config::QueueEngine::Memory;
        config.outbound.allow("loopback").map_err(|invalid| anyhow::anyhow!("{invalid:?}"))?;
        change(&mut config);
        let data = config.data_dir.clone();
        let app = stentor_node::build(config).await?;
        let url = match app.is_encrypted() {
            true => "https://fcm.googleapis.com".to_owned(),
            false => format!("http://{}", app.local_addr()),
        };
        let root = std::fs::read_to_string(data.join("root.key"))?.trim().to_owned();
        let ((_stop, stopped), (_reload, reloads)) = (oneshot::channel::<()>(), mpsc::channel(1));
        tokio::spawn(app.run(async { _ = stopped.await }, reloads));
        let dead = ["gone", "gone-many"].map(|token| always(token, ServiceError::new("UNREGISTERED")));
        let policy = scripted(dead.into());
        let fcm = FcmEmulator::start(FcmConfig { policy, ..FcmConfig::default() }).await?;
        let http = http.no_proxy().build()?;
        let mut front = Self { url, app: String::new(), key: root.clone(), root, fcm, http, _stop, _reload };
        front.furnish().await?;
        Ok(front)
    }

    /// Creates the app, its credential and the key that the clients use.
    async fn furnish(&mut self) -> anyhow::Result<()> {
        let app = self.ask("POST", "/v1/apps", json!({"name": "judged"})).await?;
        self.app = app["id"].as_str().context("an id")?.to_owned();
        let here = format!("/v1/apps/{}", self.app);
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256)?;
        let endpoint = format!("https://{}", self.fcm.addr());
        let account = json!({"type": "service_account", "project_id": "judged", "private_key_id": "k1",
            "private_key": key.serialize_pem(), "client_email": "me@judged.example",
            "token_uri": format!("{endpoint}/token")});
        let ca = self.fcm.ca_pem().context("the emulator has TLS")?;
        let credential = json!({"service_account": account, "endpoint": endpoint, "ca_pem": ca});
        self.ask("PUT", &format!("{here}/credentials/fcm"), credential).await?;
        let scopes = json!({"name": "clients", "scopes": ["send", "register"]});
        let made = self.ask("POST", &format!("{here}/keys"), scopes).await?;
        self.key = made["secret"].as_str().context("a secret")?.to_owned();
        let device = json!({"platform": "android", "token": "subscribed", "topics": ["news"]});
        self.ask("POST", "/v1/devices", device).await?;
        Ok(())
    }

    /// Creates a service account and returns the text of its file.
    pub(crate) async fn service_account(&self) -> anyhow::Result<String> {
        let path = format!("/v1/apps/{}/service-accounts", self.app);
        let body = json!({"name": "an app server", "url": "https://oauth2.googleapis.com"});
        let made = self.ask_with(&self.root, "POST", &path, body).await?;
        Ok(made["file"].as_str().context("a file")?.to_owned())
    }

    /// Registers a device of the gateway that replaces its token; returns the former one and the present one.
    async fn replaced_token(&self) -> anyhow::Result<[String; 2]> {
        let text = |device: &Value, name: &str| device[name].as_str().map(str::to_owned).context("a text");
        let former = self.ask("POST", "/gateway/v1/devices", json!({})).await?;
        let as_device = |method: &str, path: &str, device: &Value| {
            let request = self.http.request(method.parse()?, format!("{}{path}", self.url));
            let request = request.basic_auth(text(device, "token")?, Some(text(device, "secret")?));
            anyhow::Ok(
                async move { anyhow::Ok(request.send().await?.error_for_status()?.json::<Value>().await?) },
            )
        };
        let present = as_device("POST", "/gateway/v1/device/token", &former)?.await?;
        // The first use makes the offered token the device's.
        as_device("GET", "/gateway/v1/device", &present)?.await?;
        Ok([text(&former, "token")?, text(&present, "token")?])
    }

    /// Removes the credential for FCM.
    pub(crate) async fn forget_credential(&self) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/credentials/fcm", self.app);
        self.ask_with(&self.root, "DELETE", &path, Value::Null).await.map(drop)
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        self.ask_with(&self.key, method, path, body).await
    }

    async fn ask_with(&self, key: &str, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        let (status, text) = self.try_to(key, method, path, body).await?;
        ensure!(status.is_success(), "{method} {path}: {status} {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    async fn try_to(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> anyhow::Result<(StatusCode, String)> {
        let request = self.http.request(method.parse()?, format!("{}{path}", self.url));
        let answer = request.bearer_auth(key).json(&body).send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    /// Sends messages that FCM accepts and does not answer, until there is no room for more. Returns the number of accepted messages.
    pub(crate) async fn fill(&self, at_most: usize) -> anyhow::Result<usize> {
        let stall = Stall { prefixes: vec!["held-".to_owned()], taken_over: true, ..Stall::default() };
        self.fcm.set_policy(Policy { stall: Some(stall), ..Policy::default() })?;
        for number in 0..=at_most {
            let token = format!("held-{number}");
            let body =
                json!({"target": {"token": {"platform": "android", "token": token}}, "data": {"k": "v"}});
            let (status, text) = self.try_to(&self.key, "POST", "/v1/messages", body).await?;
            if status == StatusCode::SERVICE_UNAVAILABLE && text.contains("queue_full") {
                return Ok(number);
            }
            ensure!(status.is_success(), "{status} {text}");
            // A message at FCM counts as waiting until FCM answers.
            self.arrived(&token).await?;
        }
        bail!("more than {at_most} messages may wait")
    }

    /// Takes the only place for a request with a request that never sends its body. Returns it once it has the place.
    pub(crate) async fn occupy(&self) -> anyhow::Result<PendingRequest> {
        let taken = async {
            loop {
                let request = tokio::spawn(self.endless().send());
                // One of those that look may have the place just when it comes.
                while !request.is_finished() {
                    if self.is_occupied().await? {
                        return anyhow::Ok(request);
                    }
                }
            }
        };
        tokio::time::timeout(ARRIVAL_MAX, taken).await.context("no request gets the place")?
    }

    fn endless(&self) -> reqwest::RequestBuilder {
        let body = futures_util::stream::pending::<std::io::Result<Vec<u8>>>();
        let request = self.http.post(format!("{}/v1/devices", self.url)).bearer_auth(&self.key);
        request.header("content-type", "application/json").body(reqwest::Body::wrap_stream(body))
    }

    /// Ends such a request, and waits until its place is free.
    pub(crate) async fn vacate(&self, request: PendingRequest) -> anyhow::Result<()> {
        request.abort();
        let freed = async {
            while self.is_occupied().await? {
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(ARRIVAL_MAX, freed).await.context("the place is not given back")?
    }

    async fn is_occupied(&self) -> anyhow::Result<bool> {
        let (status, text) = self.try_to(&self.key, "GET", "/v1/messages", Value::Null).await?;
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && text.contains("unavailable"))
    }

    /// Waits until FCM has received a request for a token.
    async fn arrived(&self, token: &str) -> anyhow::Result<()> {
        let arrival = async {
            while self.fcm.counts(token).attempts == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(ARRIVAL_MAX, arrival).await.with_context(|| format!("{token} does not arrive"))
    }

    /// Makes FCM answer everything.
    pub(crate) fn release(&self) -> anyhow::Result<()> {
        Ok(self.fcm.set_policy(Policy::default())?)
    }

    /// Waits until every message has ended. Returns the number of messages and the number of accepted deliveries.
    pub(crate) async fn books(&self) -> anyhow::Result<(usize, u64)> {
        let list = self.ask("GET", "/v1/messages?limit=1000", Value::Null).await?;
        let messages = list["messages"].as_array().context("a list")?;
        let mut accepted = 0;
        for message in messages {
            let campaign = message["campaign"].as_str().context("an id")?;
            let books = loop {
                let books = self.ask("GET", &format!("/v1/campaigns/{campaign}"), Value::Null).await?;
                if books["state"] == "finished" {
                    break books;
                }
                tokio::task::yield_now().await;
            };
            ensure!(books["balanced"] == true, "{books}");
            accepted += books["totals"]["accepted"].as_u64().context("a count")?;
        }
        Ok((messages.len(), accepted))
    }

    /// Demands that the emulator accepted one message for each token.
    pub(crate) fn reached<'a>(&self, tokens: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
        for token in tokens {
            let counts = self.fcm.counts(token);
            ensure!(counts.accepted == 1, "{token} is not reached once: {counts:?}");
        }
        Ok(())
    }

    /// Makes the push service report a token as dead, before a client sends to it.
    pub(crate) async fn bury(&self, token: &str) -> anyhow::Result<()> {
        let target = json!({"token": {"platform": "android", "token": token}});
        let body = json!({"target": target, "data": {"k": "v"}});
        self.ask("POST", "/v1/messages", body).await?;
        self.books().await.map(drop)
    }
}

#[test]
fn pyfcm_sends_to_fcm_through_the_legacy_front() {
    judge("fronts::pyfcm_sends_to_fcm_through_the_legacy_front", Client::Pyfcm, async |room| {
        let front = Served::start(&room).await?;
        front.bury("gone").await?;
        let authority = room.file("authority.pem", front.fcm.ca_pem().context("TLS")?)?;
        let mut command = Client::Pyfcm.command("judge.py", &authority);
        command.arg(&front.url).arg(&front.key);
        let report = Report::of(command).await?;
        let one = json!({"success": 1, "failure": 0, "errors": [null]});
        report.is("single", &one)?;
        report.is("data only", &one)?;
        let many = report.value("many")?;
        ensure!((&many["success"], &many["failure"]) == (&json!(30), &json!(1)), "{many}");
        ensure!(many["errors"][30] == "InvalidRegistration", "{many}");
        report.is("topic", &json!(true))?;
        report.is("dead", &json!({"success": 0, "failure": 1, "errors": ["NotRegistered"]}))?;
        report.failed("wrong key", "AuthenticationError")?;
        report.failed("broken", "InvalidDataError")?;
        // One to the token that died, 32 to tokens of the client and one to the topic; all but the first were accepted.
        ensure!(front.books().await? == (34, 33), "{:?}", front.books().await?);
        let tokens: Vec<String> = (0..30).map(|number| format!("py-{number}")).collect();
        front.reached(tokens.iter().map(String::as_str))?;
        front.reached(["py-one", "py-data", "subscribed"])
    });
}

#[test]
fn node_gcm_sends_to_fcm_through_the_legacy_front() {
    judge("fronts::node_gcm_sends_to_fcm_through_the_legacy_front", Client::NodeGcm, async |room| {
        let front = Served::start(&room).await?;
        front.bury("gone").await?;
        let authority = room.file("authority.pem", front.fcm.ca_pem().context("TLS")?)?;
        let mut command = Client::NodeGcm.command("judge.js", &authority);
        let [former, present] = front.replaced_token().await?;
        command.arg(&front.url).arg(&front.key).arg(Client::NodeGcm.home()).arg(former);
        let report = Report::of(command).await?;
        report.is("single", &json!({"success": 1, "failure": 0, "errors": [null]}))?;
        report.is("many", &json!({"success": 2, "failure": 1, "errors": [null, null, "NotRegistered"]}))?;
        report.is("topic", &json!("number"))?;
        report.is("canonical", &json!({"count": 1, "id": present}))?;
        report.failed("wrong key", "401")?;
        ensure!(front.books().await? == (6, 5), "{:?}", front.books().await?);
        front.reached(["node-one", "node-1", "node-2", "subscribed"])
    });
}

#[test]
fn gcm_server_sends_to_fcm_through_the_legacy_front() {
    judge("fronts::gcm_server_sends_to_fcm_through_the_legacy_front", Client::GcmServer, async |room| {
        let front = Served::start(&room).await?;
        front.bury("gone").await?;
        let authority = room.file("authority.pem", front.fcm.ca_pem().context("TLS")?)?;
        let mut command = Client::GcmServer.command("Judge.java", &authority);
        let [former, present] = front.replaced_token().await?;
        command.arg(&front.url).arg(&front.key).arg(former);
        let report = Report::of(command).await?;
        report.is("single", &json!("sent"))?;
        report.is("retried", &json!("sent"))?;
        let many = json!({"success": 2, "failure": 1, "results": ["sent", "sent", "NotRegistered"]});
        report.is("many", &many)?;
        report.is("topic", &json!("sent"))?;
        report.is("dead", &json!("NotRegistered"))?;
        report.is("canonical", &json!(present))?;
        report.is("bad ttl", &json!("InvalidTtl"))?;
        report.failed("wrong key", "HTTP 401")?;
        ensure!(front.books().await? == (7, 6), "{:?}", front.books().await?);
        front.reached(["gcm-one", "gcm-two", "gcm-1", "gcm-2", "subscribed"])
    });
}

#[test]
fn python_gcm_with_its_own_address_sends_to_fcm_through_the_legacy_front() {
    let name = "fronts::python_gcm_with_its_own_address_sends_to_fcm_through_the_legacy_front";
    judge(name, Client::PythonGcm, async |room| {
        let files = RoomAuthority::make(&room)?;
        let front = Served::disguised(&room, &files, |_| {}).await?;
        front.bury("gone").await?;
        let [former, present] = front.replaced_token().await?;
        let mut command = Client::PythonGcm.command("judge.py", &files.authority);
        command.arg(&front.key).arg(&former);
        let report = Report::of(command).await?;
        let canonical = json!({former: present});
        report.is(
            "many",
            &json!({"success": 21, "errors": {"NotRegistered": ["gone"]}, "canonical": canonical}),
        )?;
        report.is("plain", &json!(null))?;
        report.is("plain replaced", &json!(present))?;
        report.failed("plain gone", "GCMNotRegisteredException")?;
        report.failed("plain too big", "GCMMessageTooBigException")?;
        report.is("topic", &json!(true))?;
        report.is("retried", &json!(1))?;
        report.failed("wrong key", "GCMAuthenticationException")?;
        // One to the token that died, 21 at once, two in plain text, one to the topic and one alone.
        ensure!(front.books().await? == (26, 25), "{:?}", front.books().await?);
        let tokens: Vec<String> = (0..20).map(|number| format!("pg-{number}")).collect();
        front.reached(tokens.iter().map(String::as_str))?;
        front.reached(["pg-plain", "busy", "subscribed"])
    });
}
