//! The gateway in this process, with one app; its devices and its app server connect to it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use reqwest::Method;
use serde_json::json;
use stentor_lab::subject::protocol::Prepare;
use tempfile::TempDir;

use super::gateway_api::{
    API_PORT, APP, CCS_PORT, GatewayCaller, HeaderField, JOIN_KEY, MCS_PORT, SEND_KEY, SEND_PORT,
};
use super::provider_delay::ProviderDelay;
use crate::faces::served::{ROOT_KEY, anywhere, data_dir, serve_with};
use stentor_stage::client::segment;
use stentor_stage::text::cell;

/// The gateway, as long as this process lives.
pub(super) struct GatewayHalf {
    // Keeps the directory of the server's files.
    _directory: TempDir,
}

impl GatewayHalf {
    /// Starts the gateway and creates the app; returns the facts that the other halves need.
    pub(super) async fn start(prepare: &Prepare) -> anyhow::Result<(Self, BTreeMap<String, String>)> {
        let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
        let bind = prepare.bind.unwrap_or_else(anywhere);
        let settings = settings(prepare, &bind.ip().to_string());
        let api = serve_with(directory.path(), bind, &settings).await?;
        let mut facts = open_app(&GatewayCaller::at(api, &prepare.factors)?).await?;
        let port_in = |file: &str| port(&data_dir(directory.path()).join(file));
        let (mcs, ccs) = (port_in("mcs.addr")?, port_in("ccs.addr")?);
        let mut of_app_server = [ccs, api.port()];
        if let Some(delay) = ProviderDelay::of(&prepare.factors)? {
            for port in &mut of_app_server {
                *port = delay.in_front_of(bind.ip(), *port).await?;
            }
        }
        let [ccs, send] = of_app_server;
        let ports = [(API_PORT, api.port()), (MCS_PORT, mcs), (CCS_PORT, ccs), (SEND_PORT, send)];
        facts.extend(ports.map(|(name, port)| (name.to_owned(), port.to_string())));
        Ok((Self { _directory: directory }, facts))
    }
}

/// Writes the rest of the table of the API, and that of the gateway.
fn settings(prepare: &Prepare, address: &str) -> String {
    let file = |name: &str| prepare.factors.get(name);
    let tls = file("tls_certificate").zip(file("tls_key"));
    let tls =
        tls.map(|(certificate, key)| format!("tls_cert_file = {certificate:?}\ntls_key_file = {key:?}\n"));
    format!(
        "{}[gateway]\nmcs_listen = \"{address}:0\"\nccs_listen = \"{address}:0\"\n",
        tls.unwrap_or_default()
    )
}

fn port(file: &Path) -> anyhow::Result<u16> {
    let address = std::fs::read_to_string(file).context("the server has not written its address")?;
    let (_, port) = address.trim().rsplit_once(':').context("an address without a port")?;
    Ok(port.parse()?)
}

async fn open_app(api: &GatewayCaller) -> anyhow::Result<BTreeMap<String, String>> {
    let root = format!("Bearer {ROOT_KEY}");
    let authorization = HeaderField { name: "authorization", value: &root };
    let made = api.json(Method::POST, "/v1/apps", authorization, &json!({"name": "study"})).await?;
    let app = cell(&made["id"]);
    let path = format!("/v1/apps/{}", segment(&app));
    let open = json!({"open_registration": true});
    api.json(Method::PUT, &format!("{path}/credentials/gateway"), authorization, &open).await?;
    let mut facts = BTreeMap::from([(APP.to_owned(), app)]);
    for (name, scope) in [(JOIN_KEY, "join"), (SEND_KEY, "send")] {
        let key = json!({"name": scope, "scopes": [scope]});
        let made = api.json(Method::POST, &format!("{path}/keys"), authorization, &key).await?;
        facts.insert(name.to_owned(), cell(&made["secret"]));
    }
    Ok(facts)
}
