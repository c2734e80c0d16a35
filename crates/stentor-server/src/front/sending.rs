//! Sending to push tokens, shared by the fronts: the state of each token, and one message for each.

use futures_util::stream::{self, StreamExt as _};
use stentor_core::device::{Device, Platform, ProviderKind, PushToken};
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::limits::COLLAPSE_KEY_MAX_CHARS;
use stentor_core::name::IdempotencyKey;

use crate::contract::devices::DeviceRequest;
use crate::contract::messages::{MessageRequest, Sent, TargetRequest, TokenRequest};
use crate::contract::table::{RegisterDevice, SendMessage};
use crate::contract::{
    Caller, ErrorCode, Facts, Operation, Problem, Repeat, Repeatable, Serve, ServiceResult,
};
use crate::face::Api;

/// Most messages of one request that are written concurrently: enough for a commit that holds many, and each is a whole message in memory.
const AT_ONCE: usize = 64;
const FACTS: Facts = <SendMessage as Operation>::FACTS;

/// The sender of a request, and the means to make its repetition harmless.
#[derive(Clone, Copy)]
pub(super) struct Sender<'a> {
    /// The API with the operations.
    pub(super) api: &'a Api,
    /// The caller.
    pub(super) caller: Caller,
    /// The idempotency key of the request, and a hash of its body.
    pub(super) repeat: Option<(&'a IdempotencyKey, [u8; 32])>,
    /// The sender's name for the message, if a delivery receipt is requested.
    pub(super) receipt: Option<&'a str>,
}

/// The state of a token.
pub(super) enum TokenStanding {
    /// Not a push token.
    Invalid,
    /// No device has registered it, and no message has named it.
    Unknown(PushToken),
    /// The push service of this route has reported it as unregistered.
    Retired(DefaultRoute),
    /// A device holds it.
    Held(Box<Device>),
    /// A device of the gateway held it before, and holds another one now.
    Replaced(Box<Device>),
}

/// The platform and the adapter of an unregistered token.
#[derive(Debug, Clone, Copy)]
pub(super) struct DefaultRoute {
    /// Operating system family.
    pub(super) platform: Platform,
    /// The adapter.
    pub(super) provider: ProviderKind,
}

/// The route of an unregistered token of the vendor's own clients.
pub(super) const DEFAULT_ROUTE: DefaultRoute =
    DefaultRoute { platform: Platform::Android, provider: ProviderKind::Fcm };
/// The id of a validated but unsent message, as in the service's documented replies.
const CHECKED_ID: &str = "fake_message_id";

impl DefaultRoute {
    /// Returns the route of a device.
    const fn of(device: &Device) -> Self {
        Self { platform: device.platform, provider: device.provider }
    }
}

impl TokenStanding {
    /// Returns the token to use instead of this one, if there is another.
    pub(super) fn canonical(&self) -> Option<String> {
        match self {
            Self::Replaced(device) => Some(device.token.expose().to_owned()),
            Self::Invalid | Self::Unknown(_) | Self::Retired(_) | Self::Held(_) => None,
        }
    }

    /// Returns true if no device has registered the token; it may still be a former token of a device.
    const fn is_unregistered(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Held(device) => !device.listed,
            Self::Invalid | Self::Retired(_) | Self::Replaced(_) => false,
        }
    }

    /// Returns the target for the token; `None` if it cannot be reached.
    pub(super) fn target(self, route: DefaultRoute) -> Option<TargetRequest> {
        let (platform, provider, token) = match self {
            Self::Invalid | Self::Retired(_) => return None,
            Self::Unknown(token) => (route.platform, route.provider, token),
            Self::Held(device) | Self::Replaced(device) => (device.platform, device.provider, device.token),
        };
        let token = token.expose().to_owned();
        Some(TargetRequest::Token(TokenRequest { platform, provider: Some(provider), token }))
    }
}

impl Sender<'_> {
    /// Looks up the state of each token, in order. `route` applies to unregistered tokens.
    pub(super) async fn standings(
        &self,
        tokens: &[String],
        route: DefaultRoute,
    ) -> ServiceResult<Vec<TokenStanding>> {
        let can_be_token = stentor_providers::descriptor(route.provider).can_be_token;
        let read: Vec<_> = tokens.iter().map(|token| PushToken::new(token.as_str()).ok()).collect();
        let fitting: Vec<_> = read.iter().flatten().cloned().collect();
        // Only well-formed tokens are looked up, and each of them consumes one result.
        let mut held = self.api.service().holders(self.caller, &fitting).await?.into_iter();
        let standing = |token: Option<PushToken>| match token {
            None => TokenStanding::Invalid,
            Some(token) => match held.next().flatten() {
                None if !can_be_token(token.expose()) => TokenStanding::Invalid,
                None => TokenStanding::Unknown(token),
                Some(device) if device.retired.is_some() => TokenStanding::Retired(DefaultRoute::of(&device)),
                Some(device) => TokenStanding::Held(Box::new(device)),
            },
        };
        let mut standings: Vec<_> = read.iter().cloned().map(standing).collect();
        self.find_successors(&read, &mut standings).await?;
        Ok(standings)
    }

    /// Looks up the devices that have replaced a token by another one.
    async fn find_successors(
        &self,
        tokens: &[Option<PushToken>],
        standings: &mut [TokenStanding],
    ) -> ServiceResult<()> {
        let mut open: Vec<_> = standings.iter_mut().zip(tokens).collect();
        open.retain(|(standing, token)| standing.is_unregistered() && token.is_some());
        let queried: Vec<_> = open.iter().filter_map(|(_, token)| (*token).clone()).collect();
        if queried.is_empty() {
            return Ok(());
        }
        let found = self.api.service().successors(self.caller, &queried).await?;
        for ((standing, _), device) in open.into_iter().zip(found) {
            if let Some(device) = device {
                *standing = TokenStanding::Replaced(Box::new(device));
            }
        }
        Ok(())
    }

    /// Returns the device of a token. Registers the device if it is unknown, retired, or only named by a message. Returns `None` for an
    /// invalid token.
    pub(super) async fn listed(
        &self,
        token: &str,
        standing: TokenStanding,
    ) -> ServiceResult<Option<DeviceId>> {
        let route = match standing {
            TokenStanding::Invalid => return Ok(None),
            TokenStanding::Replaced(device) => return Ok(Some(device.id)),
            TokenStanding::Held(device) if device.listed => return Ok(Some(device.id)),
            TokenStanding::Held(device) => DefaultRoute::of(&device),
            TokenStanding::Retired(route) => route,
            TokenStanding::Unknown(_) => DEFAULT_ROUTE,
        };
        let bare = DeviceRequest::new(route.platform, token.to_owned());
        let device = DeviceRequest { provider: Some(route.provider), ..bare };
        Ok(Some(Serve::<RegisterDevice>::serve(self.api, self.caller, (), device).await?.id))
    }

    /// Sends one message, the `number`th of its request.
    pub(super) async fn send(&self, number: usize, request: MessageRequest) -> ServiceResult<Sent> {
        let repeat = match self.repeat {
            Some((key, body)) => Some(Repeat::of(numbered(key, number)?, FACTS.name, &body)?),
            None => None,
        };
        let repeatable = Repeatable { request, repeat };
        Serve::<SendMessage>::serve(self.api, self.caller, (), repeatable).await
    }

    /// Sends a message to each target; `first` is the number of the first one. A refusal of one message does not affect the others. An
    /// idempotency key that was used for another request refuses all of them.
    pub(super) async fn send_each(
        &self,
        first: usize,
        targets: Vec<Option<TargetRequest>>,
        draft: &MessageRequest,
    ) -> ServiceResult<Vec<Option<ServiceResult<Sent>>>> {
        let one = |(index, target): (usize, Option<TargetRequest>)| async move {
            let request = MessageRequest { target: target?, ..draft.clone() };
            Some(self.send(first + index, request).await)
        };
        let sent: Vec<_> =
            // Results follow the order of the request, regardless of the order of the commits.
            stream::iter(targets.into_iter().enumerate()).map(one).buffered(AT_ONCE).collect().await;
        let reused = |problem: &&Problem| problem.code == ErrorCode::IdempotencyKeyReused;
        match sent.iter().flatten().filter_map(|sent| sent.as_ref().err()).find(reused) {
            Some(problem) => Err(problem.clone()),
            None => Ok(sent),
        }
    }
}

/// Returns the idempotency key of one message of a request. It is hashed, because the request's key may already have the full length.
fn numbered(key: &IdempotencyKey, number: usize) -> ServiceResult<IdempotencyKey> {
    // The number follows the hash: each message of a request is repeated by itself.
    let hash = blake3::hash(key.as_str().as_bytes()).to_hex();
    Ok(IdempotencyKey::new(format!("front:{hash}:{number}"))?)
}

/// Returns true if a message was refused because of the server, not of the request: the request may be repeated unchanged.
pub(super) const fn is_of_server(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RateLimited | ErrorCode::QueueFull | ErrorCode::Unavailable | ErrorCode::Internal
    )
}

/// Returns the id of a message as text.
pub(super) fn id_text(sent: &Sent) -> String {
    id_of(sent).map_or_else(|| CHECKED_ID.to_owned(), |id| id.to_string())
}

/// Returns the id of a stored message.
pub(super) fn id_of(sent: &Sent) -> Option<MessageId> {
    match sent {
        Sent::Kept(accepted) => Some(accepted.reply.id),
        Sent::Checked(_) => None,
    }
}

/// Returns our collapse key for a foreign one. No length is documented for those, so that a long one is hashed. A key that no push service
/// accepts is left unchanged, and refused with the message.
pub(super) fn collapse_key(given: &str) -> String {
    let fits = given.chars().count() <= COLLAPSE_KEY_MAX_CHARS;
    if fits { given.to_owned() } else { blake3::hash(given.as_bytes()).to_hex().to_string() }
}
