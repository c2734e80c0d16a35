//! Huawei Push Kit of HMS Core, the REST API by projects (`/v2/{project}/messages:send`).

pub mod auth;
pub mod credential;
mod descriptor;
pub mod errors;
pub mod payload;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::uri::PathAndQuery;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{
    Batch, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble,
};
use stentor_http2::{Client, Keep, Replies, Reply, RequestBatch, Requests, Response};

use self::auth::ClientGrant;
use self::credential::HmsCredential;
pub(crate) use self::descriptor::DESCRIPTOR;
use crate::multicast::{self, Multicast, TokenMean};
use crate::oauth::{AccessTokens, TokenEndpoint};
use crate::outbound::HostRoute;
use crate::subset::Subset;
use crate::{Setup, replies, trouble};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");

/// Push Kit through one OAuth 2.0 client, for one project.
pub struct Hms {
    path: PathAndQuery,
    client: Client,
    tokens: Arc<AccessTokens>,
    clock: Arc<dyn Clock>,
    route: HostRoute,
    /// The endpoint.
    host: String,
    mean: TokenMean,
}

impl Hms {
    /// Parses a credential: a client and its secret, and a project.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let mut credential = HmsCredential::parse(secret)?;
        credential.endpoint.addresses = Arc::new(setup.outbound.clone());
        let path = PathAndQuery::try_from(format!("/v2/{}/messages:send", credential.project_id))
            .map_err(|_| crate::credential::invalid("project_id", "cannot be part of a URL"))?;
        let halts = |response: &Response| {
            replies::halts(response, |status, body, wait, _| errors::outcome(status, body, wait))
        };
        let client = Client::that_halts(&credential.endpoint, multicast::limits(&setup.limits), halts)
            .map_err(|fault| crate::credential::invalid("endpoint", &fault.to_string()))?;
        let at = TokenEndpoint {
            url: &credential.token_url,
            field: "token_endpoint",
            ca_pem: credential.ca_pem.as_deref(),
        };
        let tokens = Arc::new(AccessTokens::new(ClientGrant::new(&credential), &at, setup)?);
        Ok(Self {
            path,
            client,
            tokens,
            clock: Arc::clone(&setup.clock),
            route: HostRoute::new(&credential.endpoint, &setup.outbound),
            host: trouble::place(&credential.endpoint),
            mean: TokenMean::default(),
        })
    }

    fn batch(&self, bearer: &HeaderValue, requests: Arc<dyn Requests>) -> RequestBatch {
        RequestBatch {
            constant: vec![(AUTHORIZATION, bearer.clone()), (CONTENT_TYPE, JSON)],
            path: Some(self.path.clone()),
            requests,
            start_within: None,
            // A success may be a partial one: its body says so.
            keep: Keep::All,
            repeated: false,
        }
    }

    /// Resends, with a new access token, the requests refused for an invalid one; such requests were not processed.
    async fn send_refused_again(
        &self,
        bearer: &HeaderValue,
        of: &Arc<Multicast>,
        replies: &mut Replies,
        cut: impl Future<Output = ()>,
    ) {
        let refused: Vec<usize> =
            replies.others().filter(|(_, reply)| lacks_token(reply)).map(|(at, _)| at).collect();
        if refused.is_empty() {
            return;
        }
        let Some(renewed) = self.tokens.replace(bearer).await else { return };
        let of: Arc<dyn Requests> = Arc::<Multicast>::clone(of);
        let again = Subset { of, places: refused.clone() };
        let again = self.client.send_until(self.batch(&renewed, Arc::new(again)), cut).await;
        replies.renew(&refused, again);
    }

    fn outcomes(&self, sent: &Multicast, replies: Replies, count: usize) -> Vec<Outcome> {
        let wait = |response: &Response| replies::wait(response, self.clock.now());
        let read = |response: &Response, tokens: &[&str]| {
            errors::outcomes(response.status, response.body(), wait(response), tokens)
        };
        let whole = |response: &Response| errors::outcome(response.status, response.body(), wait(response));
        sent.outcomes(replies, count, read, whole)
    }
}

fn lacks_token(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(response) if errors::lacks_access_token(response.status, response.body()))
}

#[async_trait]
impl Provider for Hms {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Hms
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.send_until(batch, Box::new(drop), Box::pin(std::future::pending())).await
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
        drop(early);
        let cut = cut.shared();
        let count = batch.devices.len();
        let bearer = tokio::select! {
            bearer = self.tokens.get() => bearer,
            // Without an access token nothing can have been sent.
            () = cut.clone() => return vec![replies::UNSENT; count],
        };
        let bearer = match bearer {
            Ok(bearer) => bearer,
            Err(denied) => return vec![denied.outcome(); count],
        };
        let (repeated, start_within) = (batch.repeated, replies::start_within(&batch));
        self.mean.note(batch.tokens.len());
        let body = payload::template(&batch.message, batch.now);
        let sent = Arc::new(Multicast::new(body, batch.tokens));
        let call = RequestBatch { start_within, repeated, ..self.batch(&bearer, sent.clone()) };
        let mut replies = self.client.send_until(call, cut.clone()).await;
        self.send_refused_again(&bearer, &sent, &mut replies, cut).await;
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
        self.tokens.warm().await
    }

    async fn check(&self) -> Result<(), ProviderTrouble> {
        self.tokens.get().await.map_err(|denied| self.tokens.describe(&denied))?;
        trouble::check(&self.host, &self.client).await
    }

    fn trouble(&self) -> Option<ProviderTrouble> {
        let of_client = || self.client.trouble().map(|fault| trouble::of_fault(&self.host, &fault));
        self.tokens.trouble().or_else(of_client)
    }

    fn stats(&self) -> ProviderStats {
        self.mean.deliveries(replies::stats(&self.client))
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
