//! Google Cloud Messaging, its legacy HTTP protocol (`/gcm/send`, later `/fcm/send`): for emulators, and for servers that kept it.

pub mod auth;
pub mod credential;
mod descriptor;
pub mod errors;
pub mod payload;

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::uri::PathAndQuery;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{
    Batch, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble,
};
use stentor_http2::{Client, Keep, Replies, RequestBatch, Response};

use self::credential::GcmCredential;
pub(crate) use self::descriptor::DESCRIPTOR;
use crate::multicast::{self, Multicast, TokenMean};
use crate::outbound::HostRoute;
use crate::{Setup, replies, trouble};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A server of GCM's legacy protocol, through one API key.
pub struct Gcm {
    path: PathAndQuery,
    key: HeaderValue,
    client: Client,
    clock: Arc<dyn Clock>,
    route: HostRoute,
    /// The endpoint.
    host: String,
    mean: TokenMean,
}

impl Gcm {
    /// Parses a credential: an API key and a server.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let mut credential = GcmCredential::parse(secret)?;
        credential.endpoint.addresses = Arc::new(setup.outbound.clone());
        let halts = |response: &Response| {
            replies::halts(response, |status, body, wait, _| errors::outcome(status, body, wait))
        };
        let client = Client::that_halts(&credential.endpoint, multicast::limits(&setup.limits), halts)
            .map_err(|fault| crate::credential::invalid("endpoint", &fault.to_string()))?;
        Ok(Self {
            path: PathAndQuery::from_static(credential.path),
            key: auth::header(&credential)?,
            client,
            clock: Arc::clone(&setup.clock),
            route: HostRoute::new(&credential.endpoint, &setup.outbound),
            host: trouble::place(&credential.endpoint),
            mean: TokenMean::default(),
        })
    }

    fn outcomes(&self, sent: &Multicast, replies: Replies, count: usize) -> Vec<Outcome> {
        let wait = |response: &Response| replies::wait(response, self.clock.now());
        let read = |response: &Response, tokens: &[&str]| {
            errors::outcomes(response.status, response.body(), wait(response), tokens.len())
        };
        let whole = |response: &Response| errors::outcome(response.status, response.body(), wait(response));
        sent.outcomes(replies, count, read, whole)
    }
}

#[async_trait]
impl Provider for Gcm {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Gcm
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.send_until(batch, Box::new(drop), Box::pin(std::future::pending())).await
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
        drop(early);
        let count = batch.devices.len();
        let (repeated, start_within) = (batch.repeated, replies::start_within(&batch));
        self.mean.note(batch.tokens.len());
        let body = payload::template(&batch.message, batch.now);
        let sent = Arc::new(Multicast::new(body, batch.tokens));
        let call = RequestBatch {
            constant: vec![(AUTHORIZATION, self.key.clone()), (CONTENT_TYPE, JSON)],
            path: Some(self.path.clone()),
            requests: sent.clone(),
            start_within,
            // A success has a result for each token in its body.
            keep: Keep::All,
            repeated,
        };
        let replies = self.client.send_until(call, cut).await;
        replies::report(self.kind(), &self.host, &replies, |response| errors::words(response.body()));
        let outcomes = self.outcomes(&sent, replies, count);
        // Repeated attempts are mostly refused again, and are no evidence about the push service.
        if !repeated {
            replies::obey(&self.client, &outcomes);
        }
        outcomes
    }

    async fn warm(&self) -> Option<Reason> {
        if let Some(reason) = self.route.closed().await {
            return Some(reason);
        }
        self.client.warm();
        None
    }

    async fn check(&self) -> Result<(), ProviderTrouble> {
        trouble::check(&self.host, &self.client).await
    }

    fn trouble(&self) -> Option<ProviderTrouble> {
        self.client.trouble().map(|fault| trouble::of_fault(&self.host, &fault))
    }

    fn stats(&self) -> ProviderStats {
        self.mean.deliveries(replies::stats(&self.client))
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
