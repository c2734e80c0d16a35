//! The Apple Push Notification service, over HTTP/2 with provider tokens.

pub mod auth;
mod channels;
pub mod credential;
pub(crate) mod descriptor;
pub mod errors;
pub mod payload;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};
use stentor_core::chunk::TokenList;
use stentor_core::device::ProviderKind;
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::limits::PUSH_TOKEN_MAX_BYTES;
use stentor_core::message::Message;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{
    Batch, Channels, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble,
};
use stentor_http2::{Client, Excerpt, Keep, Line, Replies, Reply, RequestBatch, Requests, Response};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use self::auth::ProviderTokens;
use self::channels::ChannelManager;
use self::credential::ApnsCredential;
pub(crate) use self::descriptor::{CREDENTIAL, DESCRIPTOR};
use self::payload::Push;
use crate::outbound::HostRoute;
use crate::subset::Subset;
use crate::{Attempt, Setup, replies, trouble};

const APNS_ID: HeaderName = HeaderName::from_static("apns-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("apns-request-id");
const CHANNEL_ID: HeaderName = HeaderName::from_static("apns-channel-id");
/// Tokens have had 64 digits for long.
const TOKEN_MIN_DIGITS: usize = 64;
/// Apple documents no length, and those of live activities have more than twice as many digits. This bound is no rule of Apple's: it is the
/// room that the store has for any token.
const TOKEN_MAX_DIGITS: usize = PUSH_TOKEN_MAX_BYTES;
/// Characters of a UUID with its hyphens.
const UUID_CHARS: usize = Hyphenated::LENGTH;

/// The parts of an error response that are kept.
const KEEP: Keep = Keep::Excerpts(Excerpt { headers: replies::HEADERS, body: errors::excerpt });

/// One of the kinds of pushes that APNs takes.
pub struct PushForm {
    /// The kind of devices that get them.
    pub(crate) kind: ProviderKind,
    /// Writes the part that all devices share, for a bundle id.
    pub(crate) push: fn(&Message, &str) -> Push,
    /// Returns true if a text has the form of a token.
    pub(crate) can_be_token: fn(&str) -> bool,
    /// True if the tokens are channels.
    pub(crate) is_broadcast: bool,
}

/// Pushes to apps.
pub const TO_APPS: PushForm = PushForm {
    kind: ProviderKind::Apns,
    push: Push::new,
    can_be_token: is_device_token,
    is_broadcast: false,
};

/// APNs through one signing key, for one bundle id and one kind of pushes.
pub struct Apns {
    form: &'static PushForm,
    bundle_id: String,
    /// The path of each broadcast.
    broadcasts: Option<PathAndQuery>,
    channels: Option<ChannelManager>,
    client: Client,
    tokens: Arc<ProviderTokens>,
    clock: Arc<dyn Clock>,
    route: HostRoute,
    /// The endpoint.
    host: String,
}

impl Apns {
    /// Parses a credential: key, key id, team id, bundle id.
    pub fn open(secret: &str, setup: &Setup, form: &'static PushForm) -> Result<Self, CredentialError> {
        let mut credential = ApnsCredential::parse(secret)?;
        credential.endpoint.addresses = Arc::new(setup.outbound.clone());
        let halts = |response: &Response| replies::halts(response, errors::outcome);
        let client = Client::that_halts(&credential.endpoint, setup.limits.clone(), halts)
            .map_err(|fault| crate::credential::invalid("endpoint", &fault.to_string()))?;
        let tokens = Arc::new(ProviderTokens::new(&credential)?);
        let channels = || ChannelManager::new(&credential, Arc::clone(&tokens), setup);
        Ok(Self {
            form,
            // A bundle id has characters of a path only.
            broadcasts: form.is_broadcast.then(|| broadcasts(&credential.bundle_id)).flatten(),
            channels: form.is_broadcast.then(channels).transpose()?,
            bundle_id: credential.bundle_id,
            client,
            tokens,
            clock: Arc::clone(&setup.clock),
            route: HostRoute::new(&credential.endpoint, &setup.outbound),
            host: trouble::place(&credential.endpoint),
        })
    }

    fn read(&self, response: &Response, attempt: Attempt) -> Outcome {
        let wait = replies::wait(response, self.clock.now());
        errors::outcome(response.status, response.body(), wait, attempt)
    }

    /// Resends, with a new provider token, the requests refused because the old one had expired. `sent` is `None` once the requests were
    /// dropped because nearly all had been answered; then nothing is sent again.
    async fn send_expired_again(
        &self,
        bearer: &HeaderValue,
        sent: Option<RequestBatch>,
        replies: &mut Replies,
        cut: impl Future<Output = ()>,
    ) {
        let expired: Vec<usize> =
            replies.others().filter(|(_, reply)| is_expired(reply)).map(|(at, _)| at).collect();
        let Some(mut again) = sent.filter(|_| !expired.is_empty()) else { return };
        let Some(renewed) = self.tokens.replace(bearer, self.clock.now()) else { return };
        again.constant.retain(|(name, _)| name != AUTHORIZATION);
        again.constant.push((AUTHORIZATION, renewed));
        again.requests = Arc::new(Subset { of: again.requests, places: expired.clone() });
        replies.renew(&expired, self.client.send_until(again, cut).await);
    }
}

fn is_expired(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(response) if errors::is_expired(response.status, response.body()))
}

/// One message to many tokens.
struct ApnsPushes {
    form: &'static PushForm,
    message: MessageId,
    body: Bytes,
    devices: Vec<DeviceId>,
    tokens: TokenList,
}

impl Requests for ApnsPushes {
    fn count(&self) -> usize {
        self.tokens.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        let (Some(token), Some(device)) = (self.tokens.get(index), self.devices.get(index)) else { return };
        let mut id = [0; UUID_CHARS];
        let id = apns_id(self.message, *device).encode_lower(&mut id).as_bytes();
        if self.form.is_broadcast {
            line.header(&CHANNEL_ID, token.as_bytes());
            line.header(&REQUEST_ID, id);
        } else {
            line.path(&[b"/3/device/", token.as_bytes()]);
            line.header(&APNS_ID, id);
        }
        line.body(&[&self.body]);
    }
}

/// Selects the tokens of valid form, and returns their positions; `None` if all are valid.
fn well_formed(pushes: ApnsPushes) -> (Arc<dyn Requests>, Option<Vec<usize>>) {
    let valid = |at: &usize| pushes.tokens.get(*at).is_some_and(pushes.form.can_be_token);
    let all = 0..pushes.devices.len();
    if pushes.tokens.len() == all.len() && all.clone().all(|at| valid(&at)) {
        return (Arc::new(pushes), None);
    }
    let places: Vec<usize> = all.filter(valid).collect();
    (Arc::new(Subset { of: Arc::new(pushes), places: places.clone() }), Some(places))
}

/// Returns the outcome for a token of invalid form.
const fn malformed() -> Outcome {
    Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device }
}

/// Puts the results of the well-formed tokens at their positions, and `other` at all others of `count`.
fn spread<T: Clone>(sent: Vec<T>, other: T, places: Option<&[usize]>, count: usize) -> Vec<T> {
    let Some(places) = places else { return sent };
    let mut all = vec![other; count];
    places.iter().zip(sent).for_each(|(at, one)| all[*at] = one);
    all
}

fn broadcasts(bundle_id: &str) -> Option<PathAndQuery> {
    PathAndQuery::try_from(format!("/4/broadcasts/apps/{bundle_id}")).ok()
}

pub(crate) fn is_device_token(token: &str) -> bool {
    (TOKEN_MIN_DIGITS..=TOKEN_MAX_DIGITS).contains(&token.len())
        && token.len().is_multiple_of(2)
        // Checking all bytes without an early exit compiles to a few wide instructions.
        && token.bytes().fold(true, |all, byte| all & byte.is_ascii_hexdigit())
}

/// Returns the delivery's number as a UUID: the same at every attempt, so that Apple can detect a repeat.
fn apns_id(message: MessageId, device: DeviceId) -> Hyphenated {
    Uuid::from_u128(Batch::delivery_bits(message, device)).hyphenated()
}

#[async_trait]
impl Provider for Apns {
    fn kind(&self) -> ProviderKind {
        self.form.kind
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.send_until(batch, Box::new(drop), Box::pin(std::future::pending())).await
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
        let cut = cut.shared();
        let count = batch.devices.len();
        let Some(bearer) = self.tokens.get(self.clock.now()) else {
            let refused =
                Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential };
            return vec![refused; count];
        };
        let push = (self.form.push)(&batch.message, &self.bundle_id);
        let (attempt, repeated) = (Attempt::of(&batch), batch.repeated);
        let start_within = replies::start_within(&batch);
        let message = batch.message.id;
        let (form, devices, tokens) = (self.form, batch.devices, batch.tokens);
        let pushes = ApnsPushes { form, message, body: push.body, devices, tokens };
        let (requests, places) = well_formed(pushes);
        let mut constant = push.headers;
        constant.push((AUTHORIZATION, bearer.clone()));
        let call = RequestBatch {
            constant,
            path: self.broadcasts.clone(),
            requests,
            start_within,
            keep: KEEP,
            repeated,
        };
        let sending = self.client.start(call.clone());
        // Passed to `early` only if no token was too old, because requests refused for that are sent again.
        let again = match sending.most(cut.clone()).await {
            Some(part) if !part.replies.others().any(|(_, reply)| is_expired(reply)) => {
                // The remaining requests must not hold the memory of all.
                drop(call);
                let answered = replies::early(part, |_, response| self.read(response, attempt));
                early(spread(answered, Some(malformed()), places.as_deref(), count));
                None
            }
            _ => Some(call),
        };
        let mut replies = sending.all(cut.clone()).await;
        self.send_expired_again(&bearer, again, &mut replies, cut).await;
        let words = |response: &Response| Some(replies::printable(&errors::parse(response.body()).reason));
        replies::report(self.kind(), &self.host, &replies, words);
        let sent = replies::outcomes(replies, |_, response| self.read(response, attempt));
        // Repeated attempts are mostly refused again, and are no evidence about the push service.
        if !repeated {
            replies::obey(&self.client, &sent);
        }
        spread(sent, malformed(), places.as_deref(), count)
    }

    async fn warm(&self) -> Option<Reason> {
        if let Some(reason) = self.route.closed().await {
            return Some(reason);
        }
        self.client.warm();
        // Signed in advance, so that the first message does not wait for it.
        let _ = self.tokens.get(self.clock.now());
        None
    }

    async fn check(&self) -> Result<(), ProviderTrouble> {
        trouble::check(&self.host, &self.client).await
    }

    fn trouble(&self) -> Option<ProviderTrouble> {
        self.client.trouble().map(|fault| trouble::of_fault(&self.host, &fault))
    }

    fn stats(&self) -> ProviderStats {
        replies::stats(&self.client)
    }

    fn channels(&self) -> Option<&dyn Channels> {
        self.channels.as_ref().map(|channels| channels as &dyn Channels)
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
