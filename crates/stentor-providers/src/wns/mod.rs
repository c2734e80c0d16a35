//! Windows Push Notification Services.

mod channel;
pub mod credential;
mod descriptor;
mod errors;
mod payload;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderValue;
use stentor_core::chunk::TokenList;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, Reason};
use stentor_core::ports::provider::{
    Batch, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble, ServiceStanding,
};
use stentor_http2::{Keep, Line, Requests};

use self::credential::{WnsCredential, WnsGrant};
pub(crate) use self::descriptor::DESCRIPTOR;
use crate::hosts::{Answer, HostBatch, HostDialect, HostRequests, HostResponse, HostSender};
use crate::oauth::{AccessTokens, Denied, TokenEndpoint};
use crate::{Setup, replies};

/// WNS through one app registration.
pub struct Wns(HostSender<WnsDialect>);

/// The protocol between this sender and WNS.
struct WnsDialect(Arc<AccessTokens>);

impl Wns {
    /// Parses a credential.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let credential = WnsCredential::parse(secret)?;
        let roots = credential.roots();
        let grant = WnsGrant { client_id: credential.client_id, client_secret: credential.client_secret };
        let endpoint = TokenEndpoint {
            url: &credential.token_url,
            field: credential.token_field,
            ca_pem: credential.ca_pem.as_deref(),
        };
        let tokens = AccessTokens::new(grant, &endpoint, setup)?;
        HostSender::new(WnsDialect(Arc::new(tokens)), roots, setup).map(Self)
    }
}

/// One message to many channels.
struct WnsRequests {
    tokens: TokenList,
    body: Vec<u8>,
}

impl HostRequests for WnsRequests {
    fn origin(&self, index: usize) -> Option<&str> {
        channel::split(self.tokens.get(index)?).map(|(origin, _)| origin)
    }

    fn request(&self, index: usize) -> Option<(&str, Vec<u8>)> {
        let (_, path) = channel::split(self.tokens.get(index)?)?;
        Some((path, self.body.clone()))
    }
}

impl Requests for WnsRequests {
    fn count(&self) -> usize {
        self.tokens.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        // A request that is not written is reported as malformed.
        if let Some((_, path)) = self.tokens.get(index).and_then(channel::split) {
            line.path(&[path.as_bytes()]);
            line.body(&[&self.body]);
        }
    }
}

impl HostDialect for WnsDialect {
    // The fate of a notification is in a header of the 200.
    const KEEP: Keep = Keep::All;

    fn has_other_header(&self) -> bool {
        true
    }

    async fn authorization(
        &self,
        _origin: &str,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, Answer> {
        match refused {
            Some(refused) => Ok(self.0.replace(refused).await),
            None => self.0.get().await.map(Some).map_err(|denied| match denied {
                Denied::Refused(_) => Answer::Refused,
                Denied::AddressRefused(_) | Denied::Unavailable { .. } => Answer::Unreached,
            }),
        }
    }

    fn read(&self, response: &HostResponse<'_>, retry_after: Option<Duration>) -> Answer {
        errors::answer(response, retry_after)
    }
}

#[async_trait]
impl Provider for Wns {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Wns
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.send_until(batch, Box::new(drop), Box::pin(std::future::pending())).await
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
        let count = batch.devices.len();
        // Without an access token nothing is sent, and the reason concerns every host.
        if let Err(denied) = self.0.dialect().0.get().await {
            return vec![denied.outcome(); count];
        }
        let start_within = replies::start_within(&batch);
        let headers = payload::headers(&batch.message, batch.now);
        let body = payload::body(&batch.message.spec.content);
        let requests = Arc::new(WnsRequests { tokens: batch.tokens, body });
        let batch = HostBatch { headers, requests, start_within, repeated: batch.repeated, now: batch.now };
        self.0.send_until(batch, count, early, cut).await
    }

    async fn warm(&self) -> Option<Reason> {
        self.0.dialect().0.warm().await
    }

    async fn check(&self) -> Result<(), ProviderTrouble> {
        let tokens = &self.0.dialect().0;
        tokens.get().await.map(drop).map_err(|denied| tokens.describe(&denied))
    }

    fn trouble(&self) -> Option<ProviderTrouble> {
        self.0.dialect().0.trouble().or_else(|| self.0.trouble())
    }

    fn stats(&self) -> ProviderStats {
        self.0.stats()
    }

    fn services(&self) -> Vec<ServiceStanding> {
        self.0.services()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
