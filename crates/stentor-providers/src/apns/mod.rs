//! The Apple Push Notification service, over HTTP/2 with provider tokens.

pub mod auth;
pub mod credential;
pub mod errors;
pub mod payload;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};
use stentor_core::device::ProviderKind;
use stentor_core::id::DeviceId;
use stentor_core::outcome::{Outcome, Reach, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{Batch, CredentialError, Provider, ProviderStats};
use stentor_http2::{Batch as Requests, Client, Reply, Request, Response};

use self::auth::ProviderTokens;
use self::credential::ApnsCredential;
use self::payload::Push;
use crate::{Setup, replies};

const APNS_ID: HeaderName = HeaderName::from_static("apns-id");
/// Apple announces no bound; tokens have been 64 digits for long, and 160 for live activities.
const TOKEN_MIN_DIGITS: usize = 64;
const TOKEN_MAX_DIGITS: usize = 200;

/// APNs through one signing key, for one bundle id.
pub struct Apns {
    bundle_id: String,
    client: Client,
    tokens: ProviderTokens,
    clock: Arc<dyn Clock>,
}

impl Apns {
    /// Reads a credential: key, key id, team id, bundle id.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let credential = ApnsCredential::parse(secret)?;
        let client = Client::new(&credential.endpoint, setup.limits.clone())
            .map_err(|fault| crate::credential::invalid("endpoint", &fault.to_string()))?;
        let tokens = ProviderTokens::new(&credential)?;
        Ok(Self { bundle_id: credential.bundle_id, client, tokens, clock: Arc::clone(&setup.clock) })
    }

    fn read(&self, reply: Reply) -> Outcome {
        replies::outcome(reply, |response| {
            errors::outcome(response.status, &response.body, replies::wait(response, self.clock.now()))
        })
    }

    /// Sends again, with a new provider token, what was refused because the old one had expired.
    async fn send_expired_again(&self, bearer: &HeaderValue, sent: &Requests, replies: &mut [Reply]) {
        let expired: Vec<usize> = (0..replies.len()).filter(|at| is_expired(&replies[*at])).collect();
        if expired.is_empty() {
            return;
        }
        let Some(renewed) = self.tokens.replace(bearer, self.clock.now()) else { return };
        let mut constant = sent.constant.clone();
        constant.retain(|(name, _)| name != AUTHORIZATION);
        constant.push((AUTHORIZATION, renewed));
        let requests = expired.iter().map(|at| sent.requests[*at].clone()).collect();
        let again = self.client.send(Requests { constant, requests, start_within: sent.start_within }).await;
        for (at, reply) in expired.into_iter().zip(again) {
            replies[at] = reply;
        }
    }
}

fn is_expired(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(response) if errors::is_expired(response.status, &response.body))
}

/// Gives the request for one device; `None` when its token cannot be one of Apple's.
fn request(batch: &Batch, at: usize, push: &Push) -> Option<Request> {
    let token = batch.tokens.get(at).filter(|token| is_device_token(token))?;
    let path = PathAndQuery::try_from(format!("/3/device/{token}")).ok()?;
    let id = apns_id(batch, *batch.devices.get(at)?);
    Some(Request { path, headers: vec![(APNS_ID, id)], body: push.body.clone() })
}

fn is_device_token(token: &str) -> bool {
    (TOKEN_MIN_DIGITS..=TOKEN_MAX_DIGITS).contains(&token.len())
        && token.len().is_multiple_of(2)
        && token.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Writes the delivery's number as a UUID: the same at every attempt, so that Apple can tell a repeat.
fn apns_id(batch: &Batch, device: DeviceId) -> HeaderValue {
    let bits = Batch::delivery_bits(batch.message.id, device);
    let part = |shift: u32, digits: u32| (bits >> shift) & ((1 << (digits * 4)) - 1);
    let text = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        part(96, 8),
        part(80, 4),
        part(64, 4),
        part(48, 4),
        part(0, 12)
    );
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[async_trait]
impl Provider for Apns {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Apns
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        let count = batch.devices.len();
        let Some(bearer) = self.tokens.get(self.clock.now()) else {
            let refused = Outcome::Rejected { reason: Reason::CredentialRefused, reach: Reach::Credential };
            return vec![refused; count];
        };
        let push = Push::new(&batch.message, &self.bundle_id);
        let malformed = Outcome::Rejected { reason: Reason::InvalidToken, reach: Reach::Device };
        let mut outcomes = vec![malformed; count];
        let (places, requests): (Vec<usize>, Vec<Request>) =
            (0..count).filter_map(|at| Some((at, request(&batch, at, &push)?))).unzip();
        let mut constant = push.headers;
        constant.push((AUTHORIZATION, bearer.clone()));
        let sent = Requests { constant, requests, start_within: replies::start_within(&batch) };
        let mut replies = self.client.send(sent.clone()).await;
        self.send_expired_again(&bearer, &sent, &mut replies).await;
        let words = |response: &Response| Some(replies::printable(&errors::parse(&response.body).reason));
        replies::report(self.kind(), &replies, words);
        for (at, reply) in places.into_iter().zip(replies) {
            outcomes[at] = self.read(reply);
        }
        if replies::asks_to_slow_down(&outcomes) {
            self.client.slow_down();
        }
        outcomes
    }

    async fn warm(&self) {
        self.client.warm();
        let _ = self.tokens.get(self.clock.now());
    }

    fn stats(&self) -> ProviderStats {
        replies::stats(&self.client)
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
