//! Requests over HTTP/1.1, for push services that speak nothing newer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};
use stentor_core::outbound::Refused;
use stentor_core::ports::provider::CredentialError;
use stentor_core::time::Timestamp;
use stentor_http2::{Limits, Roots};

use super::answer::Answer;
use super::{HostDialect, HostRequests, HostResponse};
use crate::credential::unusable;
use crate::{Outbound, retry_after};

/// Concurrent requests to one host.
const REQUESTS_MAX_COUNT: usize = 32;
/// Bytes of an error body that are read.
const BODY_MAX_BYTES: usize = 1_024;

/// Requests to one host.
pub(super) struct Http1Call<'a> {
    pub(super) origin: &'a Url,
    pub(super) headers: HeaderMap,
    pub(super) requests: &'a dyn HostRequests,
    pub(super) now: Timestamp,
}

/// The client, shared by all hosts.
pub(super) struct Http1 {
    http: Client,
    outbound: Outbound,
}

impl Http1 {
    pub(super) fn new(roots: &Roots, limits: &Limits, outbound: &Outbound) -> Result<Self, CredentialError> {
        let mut builder = Client::builder()
            .timeout(Duration::from_millis(limits.request_timeout_ms))
            .connect_timeout(Duration::from_millis(limits.connect_timeout_ms))
            .redirect(Policy::none())
            .http1_only()
            .no_proxy()
            .dns_resolver(Arc::new(outbound.clone()));
        if let Roots::Pem(pem) = roots {
            let roots = Certificate::from_pem_bundle(pem)
                .map_err(|_| unusable("ca_pem", "must be certificates in PEM"))?;
            builder = builder.tls_certs_only(roots);
        }
        let http = builder.build().map_err(|cause| unusable("ca_pem", &cause.to_string()))?;
        Ok(Self { http, outbound: outbound.clone() })
    }

    /// Sends the requests at these places to one host; answer i belongs to place i. After `cut`, requests that were not answered
    /// are unanswered.
    pub(super) async fn send<D: HostDialect>(
        &self,
        dialect: &D,
        call: Http1Call<'_>,
        places: &[usize],
        cut: impl Future<Output = ()>,
    ) -> Vec<Answer> {
        let Http1Call { origin, headers, requests, now } = call;
        // The resolver is not asked for a literal address.
        if self.outbound.check_host(origin.host_str().unwrap_or_default()).is_err() {
            return vec![Answer::AddressRefused; places.len()];
        }
        let mut answers = vec![Answer::Unanswered; places.len()];
        let mut rest = places.iter().enumerate();
        let mut sending = FuturesUnordered::new();
        let mut cut = Box::pin(cut);
        loop {
            while sending.len() < REQUESTS_MAX_COUNT
                && let Some((at, place)) = rest.next()
            {
                match requests.request(*place) {
                    Some((path, body)) => {
                        let one = self.one(dialect, origin, (path, body), headers.clone(), now);
                        sending.push(one.map(move |answer| (at, answer)));
                    }
                    None => answers[at] = Answer::Unwritten,
                }
            }
            match select(sending.next(), &mut cut).await {
                Either::Left((Some((at, answer)), _)) => answers[at] = answer,
                _ => return answers,
            }
        }
    }

    async fn one<D: HostDialect>(
        &self,
        dialect: &D,
        origin: &Url,
        (path, body): (&str, Vec<u8>),
        headers: HeaderMap,
        now: Timestamp,
    ) -> Answer {
        let Ok(url) = origin.join(path) else { return Answer::Unwritten };
        match self.http.post(url).headers(headers).body(body).send().await {
            Ok(response) => read(dialect, response, now).await,
            Err(error) => unsent(&error),
        }
    }
}

/// Collects headers for the client.
pub(super) fn header_map(headers: &[(HeaderName, HeaderValue)]) -> HeaderMap {
    headers.iter().cloned().collect()
}

async fn read<D: HostDialect>(dialect: &D, mut response: reqwest::Response, now: Timestamp) -> Answer {
    let status = response.status().as_u16();
    let wait =
        response.headers().get(RETRY_AFTER).and_then(|value| retry_after::parse(value.as_bytes(), now));
    let mut body = Vec::new();
    // A body that cannot be read changes nothing: the status is the answer.
    while body.len() < BODY_MAX_BYTES
        && let Ok(Some(piece)) = response.chunk().await
    {
        body.extend_from_slice(&piece[..piece.len().min(BODY_MAX_BYTES - body.len())]);
    }
    dialect.read(&HostResponse::Http1 { status, headers: response.headers(), body: &body }, wait)
}

fn unsent(error: &reqwest::Error) -> Answer {
    let mut source = error.source();
    while let Some(inner) = source {
        if inner.downcast_ref::<Refused>().is_some() {
            return Answer::AddressRefused;
        }
        source = inner.source();
    }
    if error.is_connect() { Answer::Unreached } else { Answer::Unanswered }
}
