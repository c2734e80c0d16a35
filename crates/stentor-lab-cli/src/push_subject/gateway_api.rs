//! A client of the gateway's HTTP side for its halves, and the facts that they need about the gateway.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, ensure};
use reqwest::{Body, Certificate, Client, Method};
use serde_json::Value;
use stentor_lab::subject::setup::TLS_NAME;

/// Names of the facts about a gateway that its other halves receive as factors.
pub(super) const API_PORT: &str = "gateway_api_port";
pub(super) const MCS_PORT: &str = "gateway_mcs_port";
pub(super) const CCS_PORT: &str = "gateway_ccs_port";
/// Port at which the app server reaches the HTTP side.
pub(super) const SEND_PORT: &str = "gateway_send_port";
/// The app, the key with which devices register, and the key with which the app server sends.
pub(super) const APP: &str = "gateway_app";
pub(super) const JOIN_KEY: &str = "gateway_join_key";
pub(super) const SEND_KEY: &str = "gateway_send_key";

type Factors = BTreeMap<String, String>;

/// Returns a fact from the factors. Fails if it is missing.
pub(super) fn fact<'a>(factors: &'a Factors, name: &str) -> anyhow::Result<&'a str> {
    factors.get(name).map(String::as_str).with_context(|| format!("the factor {name} is missing"))
}

/// Returns the address of one of the gateway's ports.
pub(super) fn port_at(factors: &Factors, name: &str, address: IpAddr) -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::new(address, fact(factors, name)?.parse()?))
}

/// The header that authorizes a request.
#[derive(Clone, Copy)]
pub(super) struct HeaderField<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

/// A client of the gateway's HTTP side.
pub(super) struct GatewayCaller {
    http: Client,
    url: String,
}

impl GatewayCaller {
    /// Prepares a client, with TLS if the cell requires it.
    pub(super) fn at(address: SocketAddr, factors: &Factors) -> anyhow::Result<Self> {
        let mut builder = Client::builder().no_proxy();
        let mut url = format!("http://{address}");
        if let Some(path) = factors.get("tls_certificate") {
            let pem = std::fs::read(path).with_context(|| path.clone())?;
            builder = builder.add_root_certificate(Certificate::from_pem(&pem)?).resolve(TLS_NAME, address);
            url = format!("https://{TLS_NAME}:{}", address.port());
        }
        Ok(Self { http: builder.build()?, url })
    }

    /// Sends a request with a body of some type and returns the body of the reply. Fails if the status is no success.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        authorization: HeaderField<'_>,
        kind: &str,
        body: impl Into<Body>,
    ) -> anyhow::Result<Vec<u8>> {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = request.header(authorization.name, authorization.value).header("content-type", kind);
        let answer = request.body(body).send().await?;
        let (status, body) = (answer.status(), answer.bytes().await?);
        ensure!(status.is_success(), "{path} answered {status} {}", String::from_utf8_lossy(&body));
        Ok(body.to_vec())
    }

    /// Sends a request in JSON.
    pub(super) async fn json(
        &self,
        method: Method,
        path: &str,
        authorization: HeaderField<'_>,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let answer = self.ask(method, path, authorization, "application/json", body.to_string()).await?;
        if answer.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&answer)?) }
    }
}
