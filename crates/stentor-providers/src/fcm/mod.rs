//! Firebase Cloud Messaging, HTTP v1 (`projects.messages:send`).

pub mod address;
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
use stentor_core::chunk::TokenList;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{
    Batch, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble,
};
use stentor_http2::{Client, Excerpt, Keep, Line, Replies, Reply, RequestBatch, Requests, Response};

use self::address::is_installation_id;
use self::auth::ServiceAccountGrant;
use self::credential::FcmCredential;
pub(crate) use self::descriptor::DESCRIPTOR;
use self::errors::Sent;
use self::payload::BodyTemplate;
use crate::oauth::{AccessTokens, TokenEndpoint};
use crate::outbound::HostRoute;
use crate::subset::Subset;
use crate::{Attempt, Setup, replies, trouble};

/// Messages per minute that a project may send by default, unless Google grants more (Firebase documentation, "Throttling and quotas").
pub const QUOTA_PER_MINUTE: u32 = 600_000;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The parts of an error response that are kept.
const KEEP: Keep = Keep::Excerpts(Excerpt { headers: replies::HEADERS, body: errors::excerpt });

/// FCM through one service account.
pub struct Fcm {
    path: PathAndQuery,
    client: Client,
    tokens: Arc<AccessTokens>,
    clock: Arc<dyn Clock>,
    route: HostRoute,
    /// The endpoint.
    host: String,
}

impl Fcm {
    /// Parses a credential: a service-account JSON, or one wrapped with overrides.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let mut credential = FcmCredential::parse(secret)?;
        credential.endpoint.addresses = Arc::new(setup.outbound.clone());
        let path = format!("/v1/projects/{}/messages:send", credential.project_id);
        let path = PathAndQuery::try_from(path)
            .map_err(|_| crate::credential::invalid("project_id", "cannot be part of a URL"))?;
        let halts = |response: &Response| replies::halts(response, errors::outcome_at_once);
        let client = Client::that_halts(&credential.endpoint, setup.limits.clone(), halts)
            .map_err(|fault| crate::credential::invalid("endpoint", &fault.to_string()))?;
        let at = TokenEndpoint {
            url: &credential.token_uri,
            field: &credential.token_uri_field,
            ca_pem: credential.ca_pem.as_deref(),
        };
        let tokens = AccessTokens::new(ServiceAccountGrant::new(&credential)?, &at, setup)?;
        let (tokens, clock) = (Arc::new(tokens), Arc::clone(&setup.clock));
        let (endpoint, outbound) = (&credential.endpoint, &setup.outbound);
        let (route, host) = (HostRoute::new(endpoint, outbound), trouble::place(endpoint));
        Ok(Self { path, client, tokens, clock, route, host })
    }

    fn batch(&self, bearer: &HeaderValue, requests: Arc<dyn Requests>) -> RequestBatch {
        RequestBatch {
            constant: vec![(AUTHORIZATION, bearer.clone()), (CONTENT_TYPE, JSON)],
            path: Some(self.path.clone()),
            requests,
            start_within: None,
            keep: KEEP,
            repeated: false,
        }
    }

    fn read(&self, response: &Response, sent: &Sent) -> Outcome {
        let wait = replies::wait(response, self.clock.now());
        errors::outcome(response.status, response.body(), wait, sent)
    }

    /// Resends, with a new access token, the requests refused for an invalid one; such requests were not processed. `of` is `None` once the
    /// pushes were dropped because nearly all had been answered; then nothing is sent again.
    async fn send_refused_again(
        &self,
        bearer: &HeaderValue,
        of: Option<Arc<FcmPushes>>,
        replies: &mut Replies,
        cut: impl Future<Output = ()>,
    ) {
        let refused: Vec<usize> =
            replies.others().filter(|(_, reply)| lacks_token(reply)).map(|(at, _)| at).collect();
        let Some(of) = of.filter(|_| !refused.is_empty()) else { return };
        let Some(renewed) = self.tokens.replace(bearer).await else { return };
        let again = Subset { of, places: refused.clone() };
        let again = self.client.send_until(self.batch(&renewed, Arc::new(again)), cut).await;
        replies.renew(&refused, again);
    }
}

/// One message to many devices.
struct FcmPushes {
    body: BodyTemplate,
    tokens: TokenList,
}

impl Requests for FcmPushes {
    fn count(&self) -> usize {
        self.tokens.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        let token = self.tokens.get(index).unwrap_or_default();
        self.body.with_token(token, |parts| line.body(parts));
    }
}

/// Marks the addresses that are installation ids; empty if none is.
fn installations(tokens: &TokenList) -> Vec<bool> {
    let marks: Vec<bool> =
        (0..tokens.len()).map(|at| tokens.get(at).is_some_and(is_installation_id)).collect();
    if marks.contains(&true) { marks } else { Vec::new() }
}

fn lacks_token(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(response) if errors::lacks_access_token(response.status, response.body()))
}

#[async_trait]
impl Provider for Fcm {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Fcm
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.send_until(batch, Box::new(drop), Box::pin(std::future::pending())).await
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
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
        let (attempt, start_within) = (Attempt::of(&batch), replies::start_within(&batch));
        // Kept apart from the addresses, which are dropped before the last answers come.
        let installations = installations(&batch.tokens);
        let now = batch.now;
        let read = |at: usize, response: &Response| {
            let to_installation = installations.get(at).is_some_and(|is_one| *is_one);
            self.read(response, &Sent { attempt, to_installation, now })
        };
        let body = BodyTemplate::new(&batch.message, batch.now);
        let pushes = Arc::new(FcmPushes { body, tokens: batch.tokens });
        let repeated = batch.repeated;
        let call = RequestBatch { start_within, repeated, ..self.batch(&bearer, pushes.clone()) };
        let sending = self.client.start(call);
        let again = match sending.most(cut.clone()).await {
            // Passed to `early` only if no token was refused, because requests refused for that are sent again.
            Some(part) if !part.replies.others().any(|(_, reply)| lacks_token(reply)) => {
                // The remaining requests must not hold the memory of all.
                drop(pushes);
                early(replies::early(part, read));
                None
            }
            _ => Some(pushes),
        };
        let mut replies = sending.all(cut.clone()).await;
        self.send_refused_again(&bearer, again, &mut replies, cut).await;
        replies::report(self.kind(), &self.host, &replies, |response| errors::words(response.body()));
        let mut outcomes = replies::outcomes(replies, read);
        // Repeated attempts are mostly refused again, and are no evidence about the push service.
        if !repeated {
            replies::obey(&self.client, &outcomes);
        }
        // Devices without a push token were not sent to.
        outcomes.resize(count, replies::UNSENT);
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
        replies::stats(&self.client)
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
