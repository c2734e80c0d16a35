//! Browsers as devices: the page of `examples/web-device`, which is pushed to, listens and sends, loses its connection, is closed and
//! comes back, and renews its token.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::authority::RoomAuthority;
use crate::client::Client;
use crate::room::{Room, browse};
use crate::web_push::sender::{Push, Sender};
use crate::web_push::server::PushServer;

/// The time limit of a browser's start and of one script: a browser does more than other clients, and other tests run beside it.
const STEP_MAX: Duration = Duration::from_secs(120);

/// A process that answers each line with a line.
pub(crate) struct Dialog {
    lines: Lines<BufReader<ChildStdout>>,
    /// Absent once it is to end.
    input: Option<ChildStdin>,
    process: Child,
}

impl Dialog {
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("it cannot be started")?;
        let lines = BufReader::new(process.stdout.take().context("piped")?).lines();
        let input = Some(process.stdin.take().context("piped")?);
        Ok(Self { lines, input, process })
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let line = tokio::time::timeout(STEP_MAX, self.lines.next_line()).await;
        line.context("it takes too long")??.context("it has ended")
    }

    /// Runs a script in the page and returns its result.
    pub(crate) async fn run(&mut self, script: &str) -> anyhow::Result<Value> {
        let input = self.input.as_mut().context("it was told to end")?;
        input.write_all(format!("{}\n", json!(script)).as_bytes()).await?;
        self.result().await.with_context(|| script.to_owned())
    }

    pub(crate) async fn result(&mut self) -> anyhow::Result<Value> {
        let result: Value = serde_json::from_str(&self.line().await?)?;
        ensure!(result["ok"] == true, "{result}");
        Ok(result["value"].clone())
    }

    /// Lets it end by itself, so that it closes its connections and files.
    pub(crate) async fn ends(&mut self) -> anyhow::Result<()> {
        self.input = None;
        let status = tokio::time::timeout(STEP_MAX, self.process.wait()).await;
        let status = status.context("it does not end")??;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// The command line of a browser; with the same profile it is the same device.
struct Launch {
    script: &'static str,
    arguments: Vec<OsString>,
    authority: PathBuf,
}

impl Launch {
    async fn begin(&self) -> anyhow::Result<Dialog> {
        let mut command = Client::Browsers.command(self.script, &self.authority);
        command.args(&self.arguments);
        let mut browser = Dialog::start(command)?;
        ensure!(browser.result().await? == "ready", "another page");
        Ok(browser)
    }
}

/// A page in a browser, and its sender.
pub(crate) struct Browsing {
    pub(crate) server: PushServer,
    pub(crate) sender: Sender,
    launch: Launch,
    pub(crate) browser: Dialog,
    /// The proxy that forwards the page's requests to the server: without it the page has no connection.
    page: Dialog,
    address: String,
    /// The messages that the app has received from the page.
    upstream: Vec<Value>,
}

impl Browsing {
    pub(crate) async fn firefox(room: &Room) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let server = PushServer::start(room, None).await?;
        let sender = Sender::start(Client::Pywebpush, &files).await?;
        let push_service = format!("ws://127.0.0.1:{}/gateway/v1/autopush/{}", server.port, server.app);
        Self::begin(("firefox.py", vec![push_service.into()]), files, (server, sender), room).await
    }

    pub(crate) async fn chromium(room: &Room) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let server = PushServer::start(room, Some(&files)).await?;
        let sender = Sender::start(Client::Pywebpush, &files).await?;
        // It registers for the key of a sender, which assigns the page to an app.
        server.name_sender(sender.key()).await?;
        let mcs = format!("https://localhost:{}", server.mcs_port);
        let places = vec![server.url.clone().into(), mcs.into()];
        Self::begin(("chromium.py", places), files, (server, sender), room).await
    }

    async fn begin(
        (script, places): (&'static str, Vec<OsString>),
        files: RoomAuthority,
        (server, sender): (PushServer, Sender),
        room: &Room,
    ) -> anyhow::Result<Self> {
        let (page, address) = serve(&server, &files.authority, "0").await?;
        let mut arguments = vec![room.folder().join("profile").into(), address.clone().into()];
        arguments.extend(places);
        let launch = Launch { script, arguments, authority: files.authority };
        let browser = launch.begin().await?;
        Ok(Self { server, sender, launch, browser, page, address, upstream: Vec::new() })
    }

    /// Makes the page a device of the gateway that listens.
    pub(crate) async fn joins(&mut self) -> anyhow::Result<()> {
        let key = json!(self.server.join_key);
        let script = format!(
            "document.querySelector('#join input').value = {key}; document.querySelector('#join button').click(); \
             const listens = () => document.getElementById('state').textContent.includes('listens'); \
             while (!listens()) await new Promise((over) => setTimeout(over, 50));"
        );
        self.browser.run(&script).await.map(drop)
    }

    /// Subscribes the page for the sender.
    pub(crate) async fn subscribes(&mut self) -> anyhow::Result<()> {
        let key = self.sender.key().to_owned();
        self.subscribes_for(&key).await
    }

    /// Subscribes the page for the holder of a key.
    pub(crate) async fn subscribes_for(&mut self, key: &str) -> anyhow::Result<()> {
        let key = json!(key);
        let script = format!("return await (await import('./device.js')).subscribe({key});");
        self.sender.subscription = self.browser.run(&script).await?;
        Ok(())
    }

    /// Replaces the vendor's host in the URL of a subscription, which Chromium has built in; the path is ours.
    pub(crate) fn leads_here(&mut self) -> anyhow::Result<()> {
        let url = self.sender.subscription["endpoint"].as_str().context("a URL")?;
        let (_, token) = url.split_once("/fcm/send/").with_context(|| url.to_owned())?;
        self.sender.subscription["endpoint"] = json!(format!("{}/fcm/send/{token}", self.server.url));
        Ok(())
    }

    /// Has the page gather the messages that its service worker receives from now on.
    pub(crate) async fn gathers(&mut self) -> anyhow::Result<()> {
        let script = "window.pushed = new Promise((done) => navigator.serviceWorker.addEventListener('message', \
                      (event) => done(event.data)));";
        self.browser.run(script).await.map(drop)
    }
}

/// Serves the example; returns where it is.
async fn serve(server: &PushServer, authority: &Path, port: &str) -> anyhow::Result<(Dialog, String)> {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-device/serve.py");
    let mut command = Client::Browsers.command(example, authority);
    command.arg(&server.url).arg(port);
    let mut page = Dialog::start(command)?;
    let address = page.line().await?;
    Ok((page, address))
}

/// Pushes to the page, sends to it through its stream, and checks the page's messages to its app.
async fn tell(here: &mut Browsing) -> anyhow::Result<()> {
    let shown = json!({"title": "Hello", "body": "from a library"});
    here.sender.send(Push::of(shown.to_string().as_bytes())).await?.taken(600)?;
    let pushed = here.browser.run("return await window.pushed;").await?;
    ensure!(pushed == shown, "{pushed}");
    let token = here.told_token("").await?;
    here.send(&token, json!({"notification": {"title": "Through the stream"}})).await?;
    here.shows("Through the stream").await?;
    // Its subscription is with the app.
    let subscription =
        |data: &Value| data["subscription"].as_str().filter(|one| one.contains("p256dh")).map(drop);
    here.told(subscription).await
}

/// Walks through the mishaps of a limited device; each message is shown once, and each answer comes once.
async fn lose_nothing(mut here: Browsing) -> anyhow::Result<()> {
    let token = here.told_token("").await?;
    here.answers_data().await?;
    let sent_message = here.send(&token, json!({"data": {"command": "go"}})).await?;
    here.told_once("heard", &sent_message.id).await?;
    // The confirmation is lost on its way: the message comes again and is not shown again.
    here.loses_a_confirmation().await?;
    let unconfirmed = here.send(&token, json!({"notification": {"title": "unconfirmed"}})).await?;
    here.shows("unconfirmed").await?;
    here.confirms(&unconfirmed).await?;
    ensure!(here.times_shown("unconfirmed").await? == 1);
    // Without a connection, messages wait in both directions.
    here.page.process.kill().await?;
    let sends = "await (await import('./device.js')).send({offline: 'yes'});";
    here.browser.run(sends).await?;
    let away = here.send(&token, json!({"notification": {"title": "away"}})).await?;
    let port = here.address.trim_end_matches('/').rsplit(':').next().context("a port")?;
    here.page = serve(&here.server, &here.launch.authority, port).await?.0;
    here.told_once("offline", "yes").await?;
    here.confirms(&away).await?;
    // The browser is closed; at the next start its token is old.
    let ages = "const { keep, memory } = await import('./device.js'); \
                await keep('device', { ...(await memory('device')), since: 0 });";
    here.browser.run(ages).await?;
    here.browser.ends().await?;
    let closed = here.send(&token, json!({"notification": {"title": "closed"}})).await?;
    here.browser = here.launch.begin().await?;
    here.confirms(&closed).await?;
    let renewed = here.told_token(&token).await?;
    // Both tokens lead to the device.
    for token in [&renewed, &token] {
        let title = format!("to {token}");
        let sent = here.send(token, json!({"notification": {"title": title}})).await?;
        here.confirms(&sent).await?;
    }
    let shown = here.browser.run("return document.getElementById('messages').textContent;").await?;
    let shown = shown.as_str().context("a text")?.replace(' ', "");
    ensure!(shown == format!("closedto{renewed}to{token}"), "since it was opened again: {shown}");
    here.browser.ends().await
}

/// A message that was sent to a page.
struct Sent {
    id: String,
    campaign: String,
}

impl Browsing {
    /// Waits until the page has reported a token to the app, other than this one.
    async fn told_token(&mut self, former: &str) -> anyhow::Result<String> {
        self.told(|data| data["token"].as_str().filter(|token| *token != former).map(str::to_owned)).await
    }

    /// Waits until the page has reported this to the app, and checks that it did so once.
    async fn told_once(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        self.told(|data| (data[name] == value).then_some(())).await?;
        let times = self.upstream.iter().filter(|data| data[name] == value).count();
        ensure!(times == 1, "{times} times: {:?}", self.upstream);
        Ok(())
    }

    /// Receives the page's messages until one of them matches.
    async fn told<T>(&mut self, found: impl Fn(&Value) -> Option<T>) -> anyhow::Result<T> {
        let looks = async {
            loop {
                if let Some(found) = self.upstream.iter().find_map(&found) {
                    return Ok(found);
                }
                let mut upstream = self.server.ask("GET", "/v1/upstream/messages", Value::Null).await?;
                let messages = upstream["messages"].as_array_mut().context("a list")?;
                if !messages.is_empty() {
                    let ids = messages.iter().map(|message| message["id"].clone()).collect::<Vec<_>>();
                    self.server.ask("POST", "/v1/upstream/acknowledge", json!({"ids": ids})).await?;
                    self.upstream.extend(messages.iter_mut().map(|message| message["data"].take()));
                }
            }
        };
        tokio::time::timeout(STEP_MAX, looks).await.context("the app is not told")?
    }

    async fn send(&self, token: &str, mut message: Value) -> anyhow::Result<Sent> {
        message["target"] = json!({"token": {"platform": "web", "provider": "gateway", "token": token}});
        let sent = self.server.ask("POST", "/v1/messages", message).await?;
        let text = |name: &str| sent[name].as_str().map(str::to_owned).context("an id");
        Ok(Sent { id: text("id")?, campaign: text("campaign")? })
    }

    /// Waits until the page has confirmed a message.
    async fn confirms(&self, sent: &Sent) -> anyhow::Result<()> {
        let looks = async {
            let path = format!("/v1/campaigns/{}", sent.campaign);
            while self.server.ask("GET", &path, Value::Null).await?["totals"]["delivered"] != 1 {
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(STEP_MAX, looks).await.context("it is not confirmed")?
    }

    async fn shows(&mut self, text: &str) -> anyhow::Result<()> {
        let script = format!(
            "const has = () => document.getElementById('messages').textContent.includes({}); \
             while (!has()) await new Promise((over) => setTimeout(over, 50));",
            json!(text)
        );
        self.browser.run(&script).await.map(drop)
    }

    async fn times_shown(&mut self, text: &str) -> anyhow::Result<Value> {
        let shown = "document.getElementById('messages').textContent";
        self.browser.run(&format!("return {shown}.split({}).length - 1;", json!(text))).await
    }

    /// Makes the page's own code answer data messages.
    async fn answers_data(&mut self) -> anyhow::Result<()> {
        let script = "const { send } = await import('./device.js'); \
                      document.addEventListener('data', ({ detail }) => send({ heard: detail.id }));";
        self.browser.run(script).await.map(drop)
    }

    async fn loses_a_confirmation(&mut self) -> anyhow::Result<()> {
        let script = "const ask = window.fetch; window.fetch = (path, ...rest) => { \
                      if (!path.includes('receipts')) return ask(path, ...rest); \
                      window.fetch = ask; return Promise.reject(new Error('lost')); };";
        self.browser.run(script).await.map(drop)
    }
}

#[test]
fn firefox_is_a_device_that_is_pushed_to_and_loses_nothing() {
    let name = "browsers::firefox_is_a_device_that_is_pushed_to_and_loses_nothing";
    browse(name, "firefox-esr", &[Client::Browsers, Client::Pywebpush], async |room| {
        let mut here = Browsing::firefox(&room).await?;
        here.joins().await?;
        here.subscribes().await?;
        here.gathers().await?;
        tell(&mut here).await?;
        lose_nothing(here).await
    });
}

#[test]
fn chromium_is_a_device_that_is_pushed_to_and_loses_nothing() {
    let name = "browsers::chromium_is_a_device_that_is_pushed_to_and_loses_nothing";
    browse(name, "chromium", &[Client::Browsers, Client::Pywebpush], async |room| {
        let mut here = Browsing::chromium(&room).await?;
        here.joins().await?;
        here.subscribes().await?;
        here.gathers().await?;
        here.leads_here()?;
        tell(&mut here).await?;
        lose_nothing(here).await
    });
}
