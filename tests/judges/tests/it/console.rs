//! Browsers as people use them: the web console, from an empty server to the proof, examined by axe-core and html-validate.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, ensure};
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde_json::{Value, json};
use stentor_emulators::fcm::{FcmAuth, FcmConfig, FcmOptions, ServiceAccount};
use stentor_emulators::policy::ServiceError;
use stentor_emulators::{FcmEmulator, RunningFcm, TlsConfig};
use stentor_server::config::Config;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::browsers::Dialog;
use crate::client::Client;
use crate::policy::{always, scripted};
use crate::room::{Room, browse};

const PROJECT: &str = "judged-project";
const CLIENT_EMAIL: &str = "judge@judged-project.iam.gserviceaccount.com";
/// The pages that are examined.
const PAGES_COUNT: usize = 19;
/// The largest audience to which the console of a story sends without a question.
const UNCONFIRMED_DEVICES: u64 = 2;

/// A server that is stopped and started again at the same address.
struct ConsoleServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    _reload: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl ConsoleServer {
    async fn start(room: &Room, listen: SocketAddr) -> anyhow::Result<Self> {
        let mut config = Config::embedded()?;
        config.data_dir = room.folder().join("data");
        config.api.listen = listen;
        config.console.unconfirmed_devices_max_count = UNCONFIRMED_DEVICES;
        // The push service of a story is on this machine.
        config.outbound.allowed_networks = vec!["loopback".parse()?];
        let server = stentor_node::build(config).await?;
        let address = server.local_addr();
        let ((stop, stopped), (_reload, reloads)) = (oneshot::channel::<()>(), mpsc::channel(1));
        let run = server.run(async { _ = stopped.await }, reloads);
        let task = tokio::spawn(async { run.await.expect("the server runs") });
        Ok(Self { address, stop, _reload, task })
    }

    async fn stop(self) -> anyhow::Result<()> {
        let _it_has_stopped_itself = self.stop.send(());
        Ok(self.task.await?)
    }
}

/// Starts the push service, which refuses one token, and returns its credential as a person has it.
async fn push_service(room: &Room) -> anyhow::Result<(RunningFcm, Value)> {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256)?;
    let public_key_pem = key.public_key_pem();
    let account = ServiceAccount { client_email: CLIENT_EMAIL.to_owned(), public_key_pem };
    let config = FcmConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        tls: TlsConfig::Authority { directory: Some(room.folder().to_owned()) },
        policy: scripted(vec![always("gone", ServiceError::new("UNREGISTERED"))]),
        vendor: FcmOptions {
            projects: vec![PROJECT.to_owned()],
            auth: FcmAuth { accounts: vec![account], ..FcmAuth::default() },
            ..FcmOptions::default()
        },
        ..FcmConfig::default()
    };
    let emulator = FcmEmulator::start(config).await?;
    let endpoint = format!("https://localhost:{}", emulator.addr().port());
    let ca_pem = emulator.ca_pem().context("the emulator has TLS")?.to_owned();
    let service_account = json!({
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "0123456789abcdef",
        "private_key": key.serialize_pem(),
        "client_email": CLIENT_EMAIL,
        "token_uri": format!("{endpoint}/token"),
    });
    let facts =
        json!({"service_account": service_account.to_string(), "endpoint": endpoint, "ca_pem": ca_pem});
    Ok((emulator, facts))
}

fn window(program: &str, room: &Room, server: SocketAddr, mut facts: Value) -> anyhow::Result<Dialog> {
    let root = std::fs::read_to_string(room.folder().join("data/root.key"))?;
    facts["root"] = root.trim().into();
    facts["packages"] = json!(Client::Console.home());
    let facts = room.file("facts.json", &facts.to_string())?;
    let mut command = Client::Browsers.command("console.py", Path::new(""));
    command.arg(program).arg(room.folder().join("profile"));
    command.arg(format!("http://{server}/console")).arg(facts).arg(pictures(program));
    Dialog::start(command)
}

/// Returns the folder in which the pictures of all pages stay, for people.
fn pictures(program: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console").join(program)
}

/// Examines every page.
async fn examine(browser: &mut Dialog) -> anyhow::Result<()> {
    let mut pages_count = 0;
    loop {
        let examined = browser.run("examine").await?;
        if examined.is_null() {
            break;
        }
        ensure!(examined["findings"] == json!([]) && examined["hacked"].is_null(), "{examined:#}");
        pages_count += 1;
    }
    ensure!(pages_count == PAGES_COUNT, "{pages_count} pages");
    Ok(())
}

/// Uses the console from an empty server to the proof, examines every page, and restarts the server below an open page.
async fn use_console(program: &str, room: Room) -> anyhow::Result<()> {
    let (emulator, facts) = push_service(&room).await?;
    let server = ConsoleServer::start(&room, ([127, 0, 0, 1], 0).into()).await?;
    let mut browser = window(program, &room, server.address, facts)?;
    ensure!(browser.result().await? == "ready", "another page");
    browser.run("log_in").await?;
    check_proof(&browser.run("prove").await?)?;
    for (token, accepted) in [("token-1", 1), ("token-2", 1), ("gone", 0)] {
        let counts = emulator.counts(token);
        // One device got a test beside the campaign.
        ensure!((accepted..=accepted * 2).contains(&counts.accepted), "{token}: {counts:?}");
    }
    examine(&mut browser).await?;
    let keys = browser.run("keyboard").await?;
    let stops = json!(["Skip to the content", "Log out", "Overview"]);
    // A window of Firefox without a screen has no focus to show.
    let outline = if program == "firefox" { "none" } else { "solid" };
    ensure!(keys["stops"] == stops && keys["outline"] == outline, "{keys}");
    ensure!(browser.run("returns").await? == "Kept", "what was typed is gone");
    browser.run("waits").await?;
    let address = server.address;
    server.stop().await?;
    browser.run("reconnects").await?;
    let server = ConsoleServer::start(&room, address).await?;
    browser.run("goes_on").await?;
    ensure!(browser.run("log_out").await? == 401, "the session goes on");
    browser.ends().await?;
    server.stop().await
}

/// Every device of the audience is in one part of the bar, with the reason.
fn check_proof(proof: &Value) -> anyhow::Result<()> {
    let sum: u64 =
        proof["parts"].as_object().into_iter().flatten().filter_map(|(_, part)| part.as_u64()).sum();
    ensure!(sum == 3 && proof["sum"] == 3, "{proof}");
    ensure!(proof["parts"]["accepted"] == 2 && proof["parts"]["rejected"] == 1, "{proof}");
    ensure!(proof["bar"] == "2 accepted, 1 rejected", "{proof}");
    ensure!(proof["reasons"] == "unregistered: 1", "{proof}");
    let words = "3 of 3 devices are accounted for: the ledger is balanced.";
    ensure!(proof["proof"] == words, "{proof}");
    Ok(())
}

#[test]
fn chromium_goes_from_an_empty_server_to_the_proof_and_no_examiner_finds_anything() {
    let name = "console::chromium_goes_from_an_empty_server_to_the_proof_and_no_examiner_finds_anything";
    browse(name, "chromium", &[Client::Browsers, Client::Console], async |room| {
        use_console("chromium", room).await
    });
}

#[test]
fn firefox_goes_from_an_empty_server_to_the_proof_and_no_examiner_finds_anything() {
    let name = "console::firefox_goes_from_an_empty_server_to_the_proof_and_no_examiner_finds_anything";
    browse(name, "firefox-esr", &[Client::Browsers, Client::Console], async |room| {
        use_console("firefox", room).await
    });
}
