//! Options shared by emulators and sinks.

use crate::failure::CommandFailure;
use crate::output::Output;
use crate::process;
use anyhow::Context;
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use stentor_emulators::TlsConfig;
use stentor_stage::files::publish;

/// TLS options: encryption and the certificate authority.
#[derive(Debug, Args)]
pub(super) struct TlsOptions {
    /// The directory of the certificate authority; clients trust its ca.pem
    #[arg(long, value_name = "DIR", conflicts_with = "plaintext")]
    ca_dir: Option<PathBuf>,
    /// Listen without TLS
    #[arg(long)]
    plaintext: bool,
}

impl TlsOptions {
    /// Returns the configured value, changed by the options.
    pub(super) fn apply(&self, configured: TlsConfig) -> TlsConfig {
        match &self.ca_dir {
            _ if self.plaintext => TlsConfig::Plaintext,
            Some(directory) => TlsConfig::Authority { directory: Some(directory.clone()) },
            None => configured,
        }
    }
}

/// Options for the start of the process and its announcement.
#[derive(Debug, Args)]
pub(super) struct StartOptions {
    /// All settings as a JSON file; options on the command line override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the addresses to this file as JSON once everything is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// End when the standard input ends, as it does when the process that has started this one is gone
    #[arg(long)]
    end_with_input: bool,
    #[arg(long, hide = true)]
    end_with_parent: bool,
}

impl StartOptions {
    /// Prepares the process; returns a future that completes when the process is to end.
    pub(super) fn prepare(&self) -> anyhow::Result<impl Future<Output = ()> + use<>> {
        if self.end_with_parent {
            process::end_with_parent();
        }
        process::use_small_pages();
        process::raise_file_limit();
        let asked = process::asked_to_end()?;
        let input_ended = self.end_with_input.then(process::input_ended);
        Ok(async move {
            match input_ended {
                Some(input_ended) => tokio::select! { () = asked => {}, () = input_ended => {} },
                None => asked.await,
            }
        })
    }

    /// Returns the settings of the file, or the default ones.
    pub(super) fn configured<T: DeserializeOwned + Default>(&self) -> anyhow::Result<T> {
        self.config
            .as_deref()
            .map_or_else(|| Ok(T::default()), |path| parse(&read(path)?, &path.display().to_string()))
    }

    /// Writes the emulator's addresses to the terminal, and to the ready file if there is one.
    pub(super) fn announce(&self, facts: &Value, output: Output) -> anyhow::Result<()> {
        if let Some(path) = &self.ready_file {
            publish(path, &facts.to_string())?;
        }
        output.result(facts, || describe(facts))
    }
}

/// Returns the addresses of a service and the certificate for its clients.
pub(super) fn facts(service: &str, address: SocketAddr, has_tls: bool, tls: &TlsOptions) -> Value {
    let scheme = match (service, has_tls) {
        // TLS from the first byte, for which XMPP has no scheme of its own.
        ("ccs", true) => "tls",
        ("ccs", false) => "tcp",
        (_, true) => "https",
        (_, false) => "http",
    };
    json!({
        "service": service,
        "url": format!("{scheme}://{address}"),
        "address": address,
        "ca_file": tls.ca_dir.as_ref().map(|directory| directory.join("ca.pem")),
    })
}

fn describe(facts: &Value) -> String {
    let text = |field: &str| facts[field].as_str();
    let (service, url) = (text("service").unwrap_or_default(), text("url").unwrap_or_default());
    let kind = text("kind").unwrap_or("emulator");
    let mut lines = vec![format!("The {service} {kind} listens on {url}")];
    match (text("ca_file"), url.starts_with("https") || url.starts_with("tls")) {
        (Some(ca), _) => {
            lines.push(format!("  clients trust      {ca}"));
            if matches!(service, "fcm" | "apns" | "gcm" | "hms") {
                lines.push(format!(
                    "  point Stentor here stentor app credential set --provider {service} … --endpoint {url} --ca {ca}"
                ));
            }
        }
        (None, true) => {
            lines.push("  clients must trust its certificate: give --ca-dir to get a ca.pem".to_owned())
        }
        (None, false) => lines.push("  without TLS".to_owned()),
    }
    if let Some(path) = token_path(service) {
        lines.push(format!("  token endpoint     {url}{path}"));
    }
    if service == "gcm" {
        lines.push(format!("  app servers send to {url}/gcm/send or {url}/fcm/send"));
    }
    if service == "web-push" {
        lines.push(format!("  endpoints          {url}/push/…, from the control port's /device/register"));
    }
    if service == "wns" {
        lines.push(format!("  token endpoint     {url}/TENANT/oauth2/v2.0/token"));
    }
    if let Some(management) = text("management") {
        lines.push(format!("  channels           {management}/1/apps/BUNDLE/channels"));
    }
    if let Some(mcs) = facts["devices"]["mcs"].as_str() {
        let fact = |field: &str| facts["devices"][field].as_str().unwrap_or_default();
        lines.push(format!("  devices register   {}, as project and sender {}", fact("url"), fact("app")));
        lines.push(format!(
            "  devices connect    {mcs} (MCS without TLS); their API key, if they want one: {}",
            fact("key")
        ));
    }
    if let Some(file) = facts["credential"]["file"].as_str() {
        lines.push(format!("  credential         {file}"));
    }
    if let Some(control) = text("control") {
        lines.push(format!(
            "  control            {control}/counts  {control}/policy  {control}/device/register"
        ));
    }
    lines.join("\n")
}

/// Returns the path of a service's token endpoint, if it has one.
fn token_path(service: &str) -> Option<&'static str> {
    match service {
        "fcm" => Some("/token"),
        "hms" => Some("/oauth2/v3/token"),
        _ => None,
    }
}

/// Reads a file of settings.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    // Some editors put a byte order mark before the text.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Parses settings; `name` is their origin, for errors.
pub(super) fn parse<T: DeserializeOwned>(text: &str, name: &str) -> anyhow::Result<T> {
    serde_json::from_str(text)
        .map_err(|error| CommandFailure::usage(format!("{name} cannot be understood: {error}")).into())
}
