//! `stentor discover`: finds servers and shows their self-descriptions.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use reqwest::{Certificate, Client, Response};
use serde_json::{Value, json};
use stentor_server::dns_sd::{AnnouncedAddress, search};
use stentor_server::face::discovery::SIGNED;
use stentor_server::keys::SignedDocument;

use crate::failure::{CommandFailure, Exit};
use crate::output::{Output, note, table};

const DOCUMENT_MAX_BYTES: usize = 64 * 1024;
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
const SEARCH_MAX_SECONDS: u64 = 600;

/// Find servers on the local network, or show the self-description of one; no key is needed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor discover                                  # servers started with --announce
  stentor discover --url http://127.0.0.1:8686      # one server whose address is known
  stentor discover --fingerprint kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k
  stentor discover --ca ca.pem                      # servers with certificates of an authority of your own

Each service document is read in its signed form and its signature is checked. A document with a wrong signature is reported
and left out. The signature proves that the server is the same as before, not who runs it: keep the fingerprint.")]
pub(crate) struct DiscoverArgs {
    /// Query this server instead of the network
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Duration of the search, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=SEARCH_MAX_SECONDS))]
    timeout: u64,
    /// Only the server with this thumbprint of its key
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Option<String>,
    /// A PEM file with the authorities that are trusted for servers with TLS, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl DiscoverArgs {
    /// Finds servers; fails if there is none.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let http = self.http()?;
        let mut servers = Vec::new();
        for (url, expected) in self.candidates().await? {
            match look_at(&http, &url, expected.as_deref()).await {
                Ok(server) => servers.push(server),
                Err(error) => note(&format!("stentor: {url} is left out: {error:#}")),
            }
        }
        if servers.is_empty() {
            return Err(CommandFailure::new(Exit::NotFound, "no server was found".to_owned()).into());
        }
        output.result(&json!({ "servers": servers }), || shown(&servers))
    }

    fn http(&self) -> anyhow::Result<Client> {
        let http = Client::builder().timeout(ANSWER_LIMIT).no_proxy();
        let http = http.redirect(reqwest::redirect::Policy::none());
        let Some(file) = &self.ca else { return Ok(http.build()?) };
        let unusable = || format!("{} cannot be used as --ca", file.display());
        let authorities = Certificate::from_pem_bundle(&std::fs::read(file).with_context(unusable)?);
        let authorities = authorities.with_context(unusable)?;
        ensure!(!authorities.is_empty(), "{}: there is no certificate in it", unusable());
        Ok(http.tls_certs_only(authorities).build()?)
    }

    /// Lists addresses, each with the expected fingerprint of its document.
    async fn candidates(&self) -> anyhow::Result<Vec<(String, Option<String>)>> {
        if let Some(url) = &self.url {
            return Ok(vec![(url.trim_end_matches('/').to_owned(), self.fingerprint.clone())]);
        }
        let span = Duration::from_secs(self.timeout);
        let found = tokio::task::spawn_blocking(move || search(span)).await??;
        let wanted = |one: &AnnouncedAddress| {
            self.fingerprint.as_ref().is_none_or(|fingerprint| *fingerprint == one.fingerprint)
        };
        let wanted = found.into_iter().filter(wanted);
        Ok(wanted.map(|one| (one.url(), Some(one.fingerprint))).collect())
    }
}

/// Reads and checks the document of a server.
async fn look_at(http: &Client, url: &str, expected: Option<&str>) -> anyhow::Result<Value> {
    let response = http.get(format!("{url}{SIGNED}")).send().await?.error_for_status()?;
    let signed = SignedDocument::read(&text_of(response).await?)?;
    if let Some(expected) = expected {
        ensure!(signed.fingerprint == expected, "it is signed by another key ({})", signed.fingerprint);
    }
    let faces: Vec<_> = signed.document["faces"].as_array().into_iter().flatten().collect();
    let faces = faces.into_iter().filter_map(|face| face_at(url, face)).collect::<Vec<_>>();
    Ok(json!({
        "url": url,
        "fingerprint": signed.fingerprint,
        "version": signed.document["version"],
        "faces": faces,
    }))
}

async fn text_of(mut response: Response) -> anyhow::Result<String> {
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await? {
        text.extend_from_slice(&piece);
        if text.len() > DOCUMENT_MAX_BYTES {
            bail!("the document is longer than {DOCUMENT_MAX_BYTES} bytes");
        }
    }
    String::from_utf8(text).context("the document is no text")
}

/// Returns a face with its complete address: a path is relative to the URL, a port to its host.
fn face_at(url: &str, face: &Value) -> Option<Value> {
    let address = match face["port"].as_u64() {
        Some(port) => {
            let url = reqwest::Url::parse(url).ok()?;
            format!("{}:{port}", url.host_str()?)
        }
        None => format!("{url}{}", face["address"].as_str()?),
    };
    let described = face["description"].as_str().map(|path| format!("{url}{path}"));
    Some(json!({"name": face["name"].as_str()?, "address": address, "description": described}))
}

fn shown(servers: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |server: &Value| {
        let head = format!(
            "{}  Stentor {}  key {}",
            text(&server["url"]),
            text(&server["version"]),
            text(&server["fingerprint"])
        );
        let faces = server["faces"].as_array().into_iter().flatten();
        let rows = faces.map(|face| ["name", "address", "description"].map(|field| text(&face[field])));
        format!("{head}\n{}", table(["face", "address", "description"], rows))
    };
    servers.iter().map(one).collect::<Vec<_>>().join("\n\n")
}
