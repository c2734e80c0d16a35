//! Persons in the web console: oidc-provider as the identity provider, and Chromium as their browser.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use anyhow::ensure;
use serde_json::{Value, json};
use stentor_server::config::Config;
use tokio::sync::{mpsc, oneshot};

use crate::browsers::Dialog;
use crate::client::Client;
use crate::room::{Room, browse};

const CLIENT_ID: &str = "stentor console";
const SECRET: &str = "a secret: with % and +";

/// Returns an address of this machine that nobody uses: the identity provider must know it before the server listens.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn identity_provider(server: SocketAddr) -> anyhow::Result<Dialog> {
    let mut command = Client::OidcProvider.command("judge.js", Path::new(""));
    command.arg(Client::OidcProvider.home()).args([CLIENT_ID, SECRET]);
    command.arg(format!("http://{server}/console/callback")).arg(format!("http://{server}/console"));
    Dialog::start(command)
}

fn config(room: &Room, listen: SocketAddr, issuer: &str) -> anyhow::Result<Config> {
    let mut config = Config::embedded()?;
    config.data_dir = room.folder().join("data");
    config.api.listen = listen;
    config.console.oidc.issuer = issuer.to_owned();
    config.console.oidc.client_id = CLIENT_ID.to_owned();
    config.console.oidc.client_secret = SECRET.into();
    config.console.oidc.redirect_url = format!("http://{listen}/console/callback");
    config.console.oidc.roles = vec!["push-admins=*:admin".to_owned()];
    config.console.unapproved_devices_max_count = 1;
    Ok(config)
}

/// Lets a viewer, an admin of all apps, a sender and a person without a role log in, one after the other.
async fn log_in(room: Room) -> anyhow::Result<()> {
    let listen = free_address()?;
    let mut provider = identity_provider(listen)?;
    let issuer = provider.result().await?;
    let server = stentor_node::build(config(&room, listen, issuer.as_str().unwrap_or_default())?).await?;
    let ((stop, stopped), (_reload, reloads)) = (oneshot::channel::<()>(), mpsc::channel(1));
    let run = server.run(async { _ = stopped.await }, reloads);
    let task = tokio::spawn(async { run.await.expect("the server runs") });

    let mut command = Client::Browsers.command("persons.py", Path::new(""));
    command.arg(room.folder().join("profile")).arg(format!("http://{listen}/console"));
    let mut browser = Dialog::start(command)?;
    ensure!(browser.result().await? == "ready", "another page");
    for (step, wanted) in [
        ("log_in bob", json!({"who": "Bob"})),
        ("create_app refused", json!(403)),
        ("log_out", json!(401)),
        ("log_in ada", json!({"who": "Ada Lovelace"})),
        ("create_app made", json!(201)),
        ("author", json!("Ada Lovelaceadafrom 127.0.0.1")),
        ("propose For all", json!(["Withdraw"])),
        ("log_out", json!(401)),
        ("log_in carl", json!({"who": "Carl"})),
        ("approve For all", json!("For all")),
        ("log_out", json!(401)),
        ("log_in eve", json!({"code": "no_role"})),
    ] {
        let told: Value = browser.run(step).await?;
        ensure!(told == wanted, "{step}: {told}");
    }
    browser.ends().await?;
    let _it_has_stopped_itself = stop.send(());
    task.await?;
    provider.ends().await
}

#[test]
fn persons_log_in_and_out_at_an_identity_provider_and_do_what_their_roles_allow() {
    let name =
        "console_persons::persons_log_in_and_out_at_an_identity_provider_and_do_what_their_roles_allow";
    browse(name, "chromium", &[Client::Browsers, Client::OidcProvider], log_in);
}
