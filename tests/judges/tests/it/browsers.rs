//! Browsers as devices: the page of `examples/web-device`, which is pushed to, listens and sends.

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

/// How long a browser may take to start or for one script: it does more than others, and other tests run beside it.
const STEP_MAX: Duration = Duration::from_secs(120);

/// A process that answers each line with a line.
struct Dialog {
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
    _process: Child,
}

impl Dialog {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("it cannot be started")?;
        let lines = BufReader::new(process.stdout.take().context("piped")?).lines();
        let input = process.stdin.take().context("piped")?;
        Ok(Self { lines, input, _process: process })
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let line = tokio::time::timeout(STEP_MAX, self.lines.next_line()).await;
        line.context("it takes too long")??.context("it has ended")
    }

    /// Runs a script in the page; returns what it returned.
    async fn run(&mut self, script: &str) -> anyhow::Result<Value> {
        self.input.write_all(format!("{}\n", json!(script)).as_bytes()).await?;
        self.result().await.with_context(|| script.to_owned())
    }

    async fn result(&mut self) -> anyhow::Result<Value> {
        let result: Value = serde_json::from_str(&self.line().await?)?;
        ensure!(result["ok"] == true, "{result}");
        Ok(result["value"].clone())
    }

    /// Lets it end by itself, so that it closes what it has opened.
    async fn ends(self) -> anyhow::Result<()> {
        let Self { input, _process: mut process, .. } = self;
        drop(input);
        let status = tokio::time::timeout(STEP_MAX, process.wait()).await.context("it does not end")??;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// A page in a browser, and who sends to it.
struct Browsing {
    server: PushServer,
    sender: Sender,
    browser: Dialog,
    _page: Dialog,
}

impl Browsing {
    async fn firefox(room: &Room) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let server = PushServer::start(room, None).await?;
        let sender = Sender::start(Client::Pywebpush, &files).await?;
        let (page, address) = serve(&server, &files).await?;
        let push_service = format!("ws://127.0.0.1:{}/gateway/v1/autopush/{}", server.port, server.app);
        let mut firefox = Client::Browsers.command("firefox.py", &files.authority);
        firefox.arg(room.folder().join("profile")).arg(address).arg(push_service);
        Self::begin(firefox, (server, sender, page)).await
    }

    async fn chromium(room: &Room) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let server = PushServer::start(room, Some(&files)).await?;
        let sender = Sender::start(Client::Pywebpush, &files).await?;
        // It registers for the key of a sender: that says whose device the page is.
        server.name_sender(sender.key()).await?;
        let (page, address) = serve(&server, &files).await?;
        let mcs = format!("https://localhost:{}", server.mcs_port);
        let mut chromium = Client::Browsers.command("chromium.py", &files.authority);
        chromium.arg(room.folder().join("profile")).arg(address).arg(&server.url).arg(mcs);
        Self::begin(chromium, (server, sender, page)).await
    }

    async fn begin(
        command: Command,
        (server, sender, page): (PushServer, Sender, Dialog),
    ) -> anyhow::Result<Self> {
        let mut browser = Dialog::start(command)?;
        ensure!(browser.result().await? == "ready", "another page");
        Ok(Self { server, sender, browser, _page: page })
    }

    /// Makes the page a device of the gateway that listens.
    async fn joins(&mut self) -> anyhow::Result<()> {
        let key = json!(self.server.join_key);
        let script = format!(
            "document.querySelector('#join input').value = {key}; document.querySelector('#join button').click(); \
             const listens = () => document.getElementById('state').textContent.includes('listens'); \
             while (!listens()) await new Promise((over) => setTimeout(over, 50));"
        );
        self.browser.run(&script).await.map(drop)
    }

    /// Subscribes the page for the sender.
    async fn subscribes(&mut self) -> anyhow::Result<()> {
        let key = json!(self.sender.key());
        let script = format!("return await (await import('./device.js')).subscribe({key});");
        self.sender.subscription = self.browser.run(&script).await?;
        Ok(())
    }

    /// Has the page gather what its service worker gets from now on.
    async fn gathers(&mut self) -> anyhow::Result<()> {
        let script = "window.pushed = new Promise((done) => navigator.serviceWorker.addEventListener('message', \
                      (event) => done(event.data)));";
        self.browser.run(script).await.map(drop)
    }
}

/// Serves the example; returns where it is.
async fn serve(server: &PushServer, files: &RoomAuthority) -> anyhow::Result<(Dialog, String)> {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-device/serve.py");
    let mut command = Client::Browsers.command(example, &files.authority);
    command.arg(&server.url).arg("0");
    let mut page = Dialog::start(command)?;
    let address = page.line().await?;
    Ok((page, address))
}

/// Pushes to the page, sends to it through its stream, and looks at what it has told its app.
async fn tell(mut here: Browsing) -> anyhow::Result<()> {
    let shown = json!({"title": "Hello", "body": "from a library"});
    here.sender.send(Push::of(shown.to_string().as_bytes())).await?.taken(600)?;
    let pushed = here.browser.run("return await window.pushed;").await?;
    ensure!(pushed == shown, "{pushed}");
    let device = here.browser.run("return JSON.parse(localStorage.device).device;").await?;
    let body = json!({"target": {"devices": [device]}, "notification": {"title": "Through the stream"}});
    here.server.ask("POST", "/v1/messages", body).await?;
    let came = "const has = () => document.getElementById('messages').textContent.includes('Through the stream'); \
                while (!has()) await new Promise((over) => setTimeout(over, 50)); return true;";
    here.browser.run(came).await?;
    let told = here.server.ask("GET", "/v1/upstream/messages", Value::Null).await?;
    ensure!(told.to_string().contains("p256dh"), "its subscription is with the app: {told}");
    here.browser.ends().await
}

#[test]
fn firefox_is_a_device_that_is_pushed_to_listens_and_sends() {
    let name = "browsers::firefox_is_a_device_that_is_pushed_to_listens_and_sends";
    browse(name, "firefox-esr", &[Client::Browsers, Client::Pywebpush], async |room| {
        let mut here = Browsing::firefox(&room).await?;
        here.joins().await?;
        here.subscribes().await?;
        here.gathers().await?;
        tell(here).await
    });
}

#[test]
fn chromium_is_a_device_that_is_pushed_to_listens_and_sends() {
    let name = "browsers::chromium_is_a_device_that_is_pushed_to_listens_and_sends";
    browse(name, "chromium", &[Client::Browsers, Client::Pywebpush], async |room| {
        let mut here = Browsing::chromium(&room).await?;
        here.joins().await?;
        here.subscribes().await?;
        here.gathers().await?;
        // Its maker's host is built into the URL; the path is ours.
        let url = here.sender.subscription["endpoint"].as_str().context("a URL")?;
        let (_, token) = url.split_once("/fcm/send/").with_context(|| url.to_owned())?;
        here.sender.subscription["endpoint"] = json!(format!("{}/fcm/send/{token}", here.server.url));
        tell(here).await
    });
}
