//! `stentor serve`: the server.

use crate::failure::CommandFailure;
use crate::output::{Output, note};
use crate::process;
use clap::Args;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use stentor_server::app;
use stentor_server::config::{Config, ConfigError};
use stentor_server::dns_sd::Announcement;
use stentor_server::pipeline::{NodeRole, NodeRoles};
use tokio::signal::unix::{SignalKind, signal};

/// Run the server; it needs no configuration to start
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor serve
  stentor serve --config stentor.toml
  stentor serve --data-dir /var/lib/stentor --listen 0.0.0.0:8686
  stentor serve --socket-listen 127.0.0.1:8687     # the raw socket too
  stentor serve --announce                         # so that stentor discover finds it
  stentor serve --role consumer,producer           # one of several servers of a PostgreSQL database
  stentor serve --allow-network loopback           # for emulators on this machine

SIGTERM and SIGINT finish the requests in flight and stop the server. SIGHUP reloads the credentials and the certificate.")]
pub(crate) struct ServeArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE", env = "STENTOR_CONFIG")]
    config: Option<PathBuf>,
    /// The data directory
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The address to listen on; port 0 selects a free port and writes it to listen.addr in the data directory
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The address of the raw socket, which is off by default; port 0 selects a free port and writes it to socket.addr in the data
    /// directory
    #[arg(long, value_name = "ADDRESS")]
    socket_listen: Option<SocketAddr>,
    /// The roles of this server if several share a PostgreSQL database: api, scheduler, producer, consumer, gateway; all by default
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',')]
    roles: Vec<NodeRole>,
    /// Allow credentials to use addresses in this network: one like 10.1.0.0/16, `loopback` or `private`; adds to
    /// outbound.allowed_networks, and may be repeated
    #[arg(long, value_name = "NETWORK")]
    allow_network: Vec<String>,
    /// Announce the server by DNS-SD (_stentor._tcp) on the networks it listens on, so that `stentor discover` finds it
    #[arg(long)]
    announce: bool,
    #[arg(long, hide = true)]
    end_with_parent: bool,
}

impl ServeArgs {
    /// Serves until the process receives a signal to end.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        if self.end_with_parent {
            process::end_with_parent();
        }
        let ended = process::asked_to_end()?;
        let reload = reloads()?;
        let config = self.settings()?;
        process::use_small_pages();
        let files = process::raise_file_limit();
        if files < process::FEW_FILES {
            note(&format!(
                "stentor: only {files} files may be open: raise the limit (ulimit -n, LimitNOFILE)"
            ));
        }
        super::config::start_log(&config)?;
        #[cfg(feature = "otlp")]
        let _exported_at_the_end = crate::spans::start(&config.trace)?;
        #[cfg(not(feature = "otlp"))]
        if !config.trace.endpoint.is_empty() {
            return Err(CommandFailure::usage(
                "trace.endpoint: this program was built without the feature otlp",
            )
            .into());
        }
        let data_dir = config.data_dir.clone();
        let server = stentor_node::build(config).await;
        let server =
            server.map_err(|error| CommandFailure::not_done(format!("the server cannot start: {error}")))?;
        let mut facts = facts(server.local_addr(), server.is_encrypted(), &data_dir);
        if let Some(socket) = server.socket_addr() {
            facts["socket"] = json!(socket);
        }
        let _announcement = self.announce.then(|| announced(&server)).flatten();
        if let Err(error) = output.result(&facts, || describe(&facts)) {
            // A full disk behind standard output must not prevent serving.
            note(&format!("stentor: standard output cannot be written: {error}"));
        }
        server
            .run(ended, reload)
            .await
            .map_err(|error| CommandFailure::not_done(format!("the server ended: {error}")).into())
    }

    fn settings(&self) -> anyhow::Result<Config> {
        let mut config = super::config::load(self.config.as_deref())?;
        if let Some(data_dir) = &self.data_dir {
            config.data_dir.clone_from(data_dir);
        }
        if let Some(listen) = self.listen {
            config.api.listen = listen;
        }
        if self.socket_listen.is_some() {
            config.api.socket_listen = self.socket_listen;
        }
        if !self.roles.is_empty() {
            config.roles = NodeRoles::of(self.roles.clone());
            config.check_roles().map_err(|problem| CommandFailure::usage(format!("--role: {problem}")))?;
        }
        for network in &self.allow_network {
            let wrong = |error: ConfigError| CommandFailure::usage(format!("--allow-network: {error}"));
            config.outbound.allow(network).map_err(wrong)?;
        }
        Ok(config)
    }
}

/// Announces the server; a failure does not prevent serving.
fn announced(server: &app::BuiltServer) -> Option<Announcement> {
    let announcement = server.announce();
    announcement.inspect_err(|error| note(&format!("stentor: the server is not announced: {error}"))).ok()
}

fn reloads() -> anyhow::Result<tokio::sync::mpsc::Receiver<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            // A pending reload will include this one's changes.
            let _ = sender.try_send(());
        }
    });
    Ok(receiver)
}

fn facts(address: SocketAddr, is_encrypted: bool, data_dir: &Path) -> Value {
    let scheme = if is_encrypted { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    json!({
        "docs": format!("{url}/docs"),
        "url": url,
        "data_dir": data_dir,
        "root_key_file": data_dir.join("root.key"),
    })
}

fn describe(facts: &Value) -> String {
    let text = |field: &str| facts[field].as_str().unwrap_or_default();
    let socket = facts["socket"].as_str().map(|socket| format!(", its raw socket on {socket}"));
    format!(
        "Stentor listens on {}{}, explains itself at {}, and keeps its root key in {}",
        text("url"),
        socket.unwrap_or_default(),
        text("docs"),
        text("root_key_file")
    )
}
