//! The management of broadcast channels, on a host of its own.
//!
//! Source: Apple, "Sending channel management requests to APNs".

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use stentor_core::channel::ChannelStorage;
use stentor_core::name::ChannelId;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{ChannelRefusal, Channels, CredentialError};

use super::auth::ProviderTokens;
use super::credential::ApnsCredential;
use super::errors;
use crate::outbound::Outbound;
use crate::{Setup, replies, vendor_http};

/// Largest reply: an app has at most 10,000 channels.
const REPLY_MAX_BYTES: usize = 4 * 1_024 * 1_024;
const CHANNEL_ID: &str = "apns-channel-id";

/// The channels of one app.
pub(super) struct ChannelManager {
    http: reqwest::Client,
    /// The addresses of one channel and of all; `None` if the endpoint is not known.
    places: Option<[Url; 2]>,
    tokens: Arc<ProviderTokens>,
    outbound: Outbound,
    clock: Arc<dyn Clock>,
}

/// A reply that is no error.
struct ManagementReply {
    channel: Option<String>,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct AllChannels {
    channels: Vec<String>,
}

impl ChannelManager {
    /// Prepares for requests; connects to nothing yet.
    pub(super) fn new(
        credential: &ApnsCredential,
        tokens: Arc<ProviderTokens>,
        setup: &Setup,
    ) -> Result<Self, CredentialError> {
        let roots = match &credential.endpoint.roots {
            stentor_http2::Roots::Pem(pem) => Some(&**pem),
            _ => None,
        };
        let place = |name: &str| {
            let path = format!("/1/apps/{}/{name}", credential.bundle_id);
            credential.management.as_ref().and_then(|url| url.join(&path).ok())
        };
        Ok(Self {
            http: vendor_http::client(roots, &setup.outbound)?,
            places: place("channels").zip(place("all-channels")).map(<[Url; 2]>::from),
            tokens,
            outbound: setup.outbound.clone(),
            clock: Arc::clone(&setup.clock),
        })
    }

    async fn call(
        &self,
        method: Method,
        of_all: bool,
        channel: Option<&ChannelId>,
        body: Option<Value>,
    ) -> Result<ManagementReply, ChannelRefusal> {
        let refused = |why: &str| ChannelRefusal::Refused(why.to_owned());
        let [one, all] = self
            .places
            .as_ref()
            .ok_or_else(|| refused("its credential has an `endpoint`, and no `management_endpoint`"))?;
        let url = if of_all { all } else { one };
        // A literal address is not looked up.
        let checked = self.outbound.check_host(url.host_str().unwrap_or_default());
        checked.map_err(|why| refused(&format!("{why}")))?;
        let bearer = self.tokens.get(self.clock.now()).ok_or_else(|| refused("the key signs nothing"))?;
        let mut request = self.http.request(method, url.clone()).header(AUTHORIZATION, bearer);
        if let Some(channel) = channel {
            request = request.header(CHANNEL_ID, channel.as_str());
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let down = |cause: reqwest::Error| {
            ChannelRefusal::Unavailable(replies::printable(&cause.without_url().to_string()))
        };
        let response = request.send().await.map_err(down)?;
        let status = response.status();
        let channel =
            response.headers().get(CHANNEL_ID).and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
        let body = vendor_http::read(response, REPLY_MAX_BYTES).await.map_err(down)?;
        if status.is_success() { Ok(ManagementReply { channel, body }) } else { Err(refusal(status, &body)) }
    }
}

#[async_trait]
impl Channels for ChannelManager {
    async fn create(&self, storage: ChannelStorage) -> Result<ChannelId, ChannelRefusal> {
        let policy = match storage {
            ChannelStorage::None => 0,
            ChannelStorage::Latest => 1,
        };
        let body = json!({"message-storage-policy": policy, "push-type": "LiveActivity"});
        let reply = self.call(Method::POST, false, None, Some(body)).await?;
        let channel = reply.channel.and_then(|id| ChannelId::new(id).ok());
        channel.ok_or_else(|| ChannelRefusal::Unavailable("it names no channel".to_owned()))
    }

    async fn list(&self) -> Result<Vec<ChannelId>, ChannelRefusal> {
        let reply = self.call(Method::GET, true, None, None).await?;
        let all: AllChannels = serde_json::from_slice(&reply.body)
            .map_err(|_| ChannelRefusal::Unavailable("it answers with no list".to_owned()))?;
        Ok(all.channels.into_iter().filter_map(|id| ChannelId::new(id).ok()).collect())
    }

    async fn remove(&self, channel: &ChannelId) -> Result<(), ChannelRefusal> {
        self.call(Method::DELETE, false, Some(channel), None).await.map(drop)
    }
}

/// Decides what an error means.
fn refusal(status: StatusCode, body: &[u8]) -> ChannelRefusal {
    let reason = replies::printable(&errors::parse(body).reason);
    let words = if reason.is_empty() { format!("HTTP {}", status.as_u16()) } else { reason };
    match words.as_str() {
        "ChannelNotRegistered" | "BadChannelId" => ChannelRefusal::Unknown,
        "CannotCreateChannelConfig" => ChannelRefusal::LimitReached(words),
        _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            ChannelRefusal::Unavailable(words)
        }
        _ => ChannelRefusal::Refused(words),
    }
}
