//! The caller of a service: a process of its own for each fork, so that no fork inherits connections or caches of another.

use anyhow::Context;
use clap::Args;
use http::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Method, Url, redirect};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::line;

/// Maximum size of an order, of a body, and of an answer.
const ORDER_MAX_BYTES: u64 = 16 << 20;
const BODY_MAX_BYTES: usize = 1 << 20;
const ANSWER_MAX_BYTES: u64 = 256 << 20;

/// The requests to a service.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Requests to a URL")]
pub(super) struct RequestOptions {
    /// Measured requests of each fork, one after the other
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) requests: u32,
    /// Requests of each fork between the first one and the measured ones
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(super) warmup: u32,
    /// Open a connection for each request
    #[arg(long)]
    pub(super) fresh: bool,
    /// Method of the requests
    #[arg(long, default_value = "GET", value_name = "METHOD")]
    pub(super) method: Method,
    /// Header of the requests; may be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub(super) header: Vec<(HeaderName, HeaderValue)>,
    /// Body of the requests, or @FILE with it; at most 1 MiB
    #[arg(long, value_name = "TEXT")]
    pub(super) body: Option<String>,
    /// The certificate authority of the service, in PEM, beside those of the system
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
}

/// The order to a caller, on its standard input: command lines can be read by other users.
#[derive(Serialize, Deserialize)]
pub(super) struct CallerOrder {
    pub(super) url: String,
    /// The address to connect to instead of the URL's.
    pub(super) connect: Option<SocketAddr>,
    pub(super) requests: u32,
    pub(super) warmup: u32,
    pub(super) fresh: bool,
    pub(super) method: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) authority: Option<Vec<u8>>,
    pub(super) patience_seconds: u64,
}

/// The times of a caller's requests.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallerReport {
    pub(super) first_ns: u64,
    /// The measured ones, in their order.
    pub(super) times_ns: Vec<u64>,
    /// The first failure, after which it stopped.
    pub(super) failure: Option<String>,
}

/// Send requests to one URL, as standard input orders
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab measure-caller < order.json

stentor lab measure starts it for each fork of a URL, and writes the order.")]
pub(crate) struct MeasureCallerArgs {}

impl RequestOptions {
    /// Makes the order to a caller of this URL.
    pub(super) fn order(
        &self,
        url: &Url,
        connect: Option<SocketAddr>,
        patience: Duration,
    ) -> anyhow::Result<CallerOrder> {
        let text = |value: &HeaderValue| value.to_str().map(str::to_owned).context("a header is no text");
        let headers = self.header.iter().map(|(name, value)| Ok((name.to_string(), text(value)?)));
        let read = |file: &PathBuf| {
            std::fs::read(file).map_err(|error| unreadable(&file.display().to_string(), &error))
        };
        Ok(CallerOrder {
            url: url.to_string(),
            connect,
            requests: self.requests,
            warmup: self.warmup,
            fresh: self.fresh,
            method: self.method.to_string(),
            headers: headers.collect::<anyhow::Result<_>>()?,
            body: self.body_bytes()?,
            authority: self.ca.as_ref().map(read).transpose()?,
            patience_seconds: patience.as_secs(),
        })
    }

    fn body_bytes(&self) -> Result<Vec<u8>, CommandFailure> {
        let body = match self.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => Vec::new(),
            Some((_, Some(file))) => std::fs::read(file).map_err(|error| unreadable(file, &error))?,
            Some((text, None)) => text.as_bytes().to_vec(),
        };
        if body.len() > BODY_MAX_BYTES {
            return Err(CommandFailure::usage(format!(
                "the body has {} bytes, at most {BODY_MAX_BYTES}",
                body.len()
            )));
        }
        Ok(body)
    }

    /// Returns the options for a repetition, without what may be secret.
    pub(super) fn words(&self) -> String {
        let fresh = if self.fresh { " --fresh" } else { "" };
        let secret = match (self.header.is_empty(), &self.body) {
            (true, None) => "",
            _ => " # and its --header and --body",
        };
        let (requests, warmup, method) = (self.requests, self.warmup, &self.method);
        format!(" --requests {requests} --warmup {warmup} --method {method}{fresh}{secret}")
    }
}

impl MeasureCallerArgs {
    /// Follows the order.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let mut text = String::new();
        std::io::stdin().take(ORDER_MAX_BYTES).read_to_string(&mut text)?;
        let order: CallerOrder = serde_json::from_str(&text).context("the order cannot be read")?;
        let report = order.follow().await?;
        line(&serde_json::to_string(&report)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl CallerOrder {
    async fn follow(&self) -> anyhow::Result<CallerReport> {
        let (client, url) = self.client()?;
        let method: Method = self.method.parse()?;
        let mut report = CallerReport { first_ns: 0, times_ns: Vec::new(), failure: None };
        for number in 0..=self.warmup + self.requests {
            let request = client.request(method.clone(), url.clone()).body(self.body.clone());
            let started = Instant::now();
            match answered(request).await {
                Ok(()) if number == 0 => report.first_ns = nanoseconds(started),
                Ok(()) if number <= self.warmup => {}
                Ok(()) => report.times_ns.push(nanoseconds(started)),
                Err(failure) => {
                    report.failure = Some(failure);
                    break;
                }
            }
        }
        Ok(report)
    }

    /// Makes the client, and the URL by which it reaches the service.
    fn client(&self) -> anyhow::Result<(Client, Url)> {
        let mut url = Url::parse(&self.url)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        }
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(Duration::from_secs(self.patience_seconds));
        if self.fresh {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            builder = builder.pool_max_idle_per_host(0);
        }
        if let Some(address) = self.connect {
            let host = url.host_str().context("the URL has no host")?.to_owned();
            if url.domain().is_some() {
                builder = builder.resolve(&host, address);
                url.set_port(Some(address.port())).ok().context("the URL takes no port")?;
            } else {
                headers.entry(HOST).or_insert(HeaderValue::try_from(authority(&url))?);
                url.set_ip_host(address.ip())
                    .and_then(|()| url.set_port(Some(address.port())))
                    .ok()
                    .context("the URL takes no address")?;
            }
        }
        if let Some(authority) = &self.authority {
            builder = builder.add_root_certificate(Certificate::from_pem(authority)?);
        }
        Ok((builder.default_headers(headers).build()?, url))
    }
}

/// Sends a request and reads its whole answer; a failure is a sentence.
async fn answered(request: reqwest::RequestBuilder) -> Result<(), String> {
    let failed = |error: reqwest::Error| format!("{:#}", anyhow::Error::from(error));
    let mut answer = request.send().await.map_err(failed)?;
    let mut bytes = 0;
    while let Some(part) = answer.chunk().await.map_err(failed)? {
        bytes += part.len() as u64;
        if bytes > ANSWER_MAX_BYTES {
            return Err(format!("the answer is longer than {ANSWER_MAX_BYTES} bytes"));
        }
    }
    let status = answer.status();
    if status.is_client_error() || status.is_server_error() {
        return Err(format!("it answered {status}"));
    }
    Ok(())
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn nanoseconds(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn unreadable(file: &str, error: &std::io::Error) -> CommandFailure {
    CommandFailure::usage(format!("{file} cannot be read: {error}"))
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("NAME: VALUE is wanted")?;
    let name = HeaderName::try_from(name.trim()).map_err(|error| error.to_string())?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok((name, value))
}
