//! What the fronts share that name push tokens: whom each token belongs to, and one message for each.

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

/// Messages that are on their way to the disk at once for one request: enough for a commit that holds many, and each is
/// a whole message in memory.
const AT_ONCE: usize = 64;
const FACTS: Facts = <SendMessage as Operation>::FACTS;

/// Who sends, and what makes a repeat of the request harmless.
#[derive(Clone, Copy)]
pub(super) struct Sender<'a> {
    /// What serves the operations.
    pub(super) api: &'a Api,
    /// Who asks.
    pub(super) caller: Caller,
    /// The key of the request and a hash of its body.
    pub(super) repeat: Option<(&'a IdempotencyKey, [u8; 32])>,
    /// The sender's name for the message, where it wants to know that a device has confirmed it.
    pub(super) receipt: Option<&'a str>,
}

/// What is known of a token.
pub(super) enum TokenStanding {
    /// No push token at all.
    Invalid,
    /// Nobody has registered it, and no message has named it.
    Unknown(PushToken),
    /// The push service of this route said that it is dead.
    Retired(DefaultRoute),
    /// A device holds it.
    Held(Box<Device>),
    /// A device of the gateway held it before; it has another one now.
    Replaced(Box<Device>),
}

/// The platform and the adapter of a token that nobody has registered.
#[derive(Debug, Clone, Copy)]
pub(super) struct DefaultRoute {
    /// OS family.
    pub(super) platform: Platform,
    /// The adapter that it goes through.
    pub(super) provider: ProviderKind,
}

/// How a token of the vendor's own clients is reached that nobody has registered.
pub(super) const DEFAULT_ROUTE: DefaultRoute =
    DefaultRoute { platform: Platform::Android, provider: ProviderKind::Fcm };
/// The id of a message that was only checked, as documented by what the service replied.
const CHECKED_ID: &str = "fake_message_id";

impl DefaultRoute {
    /// Returns the route of a device.
    const fn of(device: &Device) -> Self {
        Self { platform: device.registration.platform, provider: device.registration.provider }
    }
}

impl TokenStanding {
    /// Returns the token that is to be used in place of this one, if another is.
    pub(super) fn canonical(&self) -> Option<String> {
        match self {
            Self::Replaced(device) => Some(device.registration.token.expose().to_owned()),
            Self::Invalid | Self::Unknown(_) | Self::Retired(_) | Self::Held(_) => None,
        }
    }

    /// Returns whether no device has registered with the token: it may be one that a device had before.
    const fn is_unregistered(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Held(device) => !device.listed,
            Self::Invalid | Self::Retired(_) | Self::Replaced(_) => false,
        }
    }

    /// Returns the target that reaches it; `None` for what cannot be reached.
    pub(super) fn target(self, route: DefaultRoute) -> Option<TargetRequest> {
        let (platform, provider, token) = match self {
            Self::Invalid | Self::Retired(_) => return None,
            Self::Unknown(token) => (route.platform, route.provider, token),
            Self::Held(device) | Self::Replaced(device) => {
                let known = device.registration;
                (known.platform, known.provider, known.token)
            }
        };
        let token = token.expose().to_owned();
        Some(TargetRequest::Token(TokenRequest { platform, provider: Some(provider), token }))
    }
}

impl Sender<'_> {
    /// Finds out what is known of each token, in order; `route` is where one goes that nobody has registered.
    pub(super) async fn standings(
        &self,
        tokens: &[String],
        route: DefaultRoute,
    ) -> ServiceResult<Vec<TokenStanding>> {
        let can_be_token = stentor_providers::descriptor(route.provider).can_be_token;
        let read: Vec<_> = tokens.iter().map(|token| PushToken::new(token.as_str()).ok()).collect();
        let fitting: Vec<_> = read.iter().flatten().cloned().collect();
        // Only what can be a token is asked about, and takes one reply of these.
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

    /// Finds the devices that have replaced a token by another one.
    async fn find_successors(
        &self,
        tokens: &[Option<PushToken>],
        standings: &mut [TokenStanding],
    ) -> ServiceResult<()> {
        let mut open: Vec<_> = standings.iter_mut().zip(tokens).collect();
        open.retain(|(standing, token)| standing.is_unregistered() && token.is_some());
        let asked: Vec<_> = open.iter().filter_map(|(_, token)| (*token).clone()).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let found = self.api.service().successors(self.caller, &asked).await?;
        for ((standing, _), device) in open.into_iter().zip(found) {
            if let Some(device) = device {
                *standing = TokenStanding::Replaced(Box::new(device));
            }
        }
        Ok(())
    }

    /// Returns the device of a token, which is registered when it is not known, is retired, or only a message has named it;
    /// `None` for what is no token.
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
        let device = DeviceRequest {
            platform: route.platform,
            provider: Some(route.provider),
            token: token.to_owned(),
            user: None,
            locale: None,
            time_zone: None,
            tags: Vec::new(),
            topics: Vec::new(),
        };
        Ok(Some(Serve::<RegisterDevice>::serve(self.api, self.caller, (), device).await?.id))
    }

    /// Sends one message, the `number`th of its request.
    pub(super) async fn send(&self, number: usize, request: MessageRequest) -> ServiceResult<Sent> {
        let repeat = match self.repeat {
            Some((key, body)) => Some(Repeat::of(numbered(key, number)?, FACTS.name, &body)?),
            None => None,
        };
        let asked = Repeatable { request, repeat };
        Serve::<SendMessage>::serve(self.api, self.caller, (), asked).await
    }

    /// Sends a message to each target, `first` being the number of the first one; what one is refused does not touch the
    /// next. A key that was used for another request refuses them all.
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
            // Results follow the order of the request, whichever message is on disk first.
            stream::iter(targets.into_iter().enumerate()).map(one).buffered(AT_ONCE).collect().await;
        let reused = |problem: &&Problem| problem.code == ErrorCode::IdempotencyKeyReused;
        match sent.iter().flatten().filter_map(|sent| sent.as_ref().err()).find(reused) {
            Some(problem) => Err(problem.clone()),
            None => Ok(sent),
        }
    }
}

/// Returns the key of one message of a request; hashed, because a key may have its full length already.
fn numbered(key: &IdempotencyKey, number: usize) -> ServiceResult<IdempotencyKey> {
    // The number stands behind the hash: each message of a request is a repeat of its own.
    let hash = blake3::hash(key.as_str().as_bytes()).to_hex();
    Ok(IdempotencyKey::new(format!("front:{hash}:{number}"))?)
}

/// Returns whether the server, not the request, is why a message was refused: the request may come again as it is.
pub(super) const fn is_of_server(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RateLimited | ErrorCode::QueueFull | ErrorCode::Unavailable | ErrorCode::Internal
    )
}

/// Returns the id of a message as a text.
pub(super) fn id_text(sent: &Sent) -> String {
    id_of(sent).map_or_else(|| CHECKED_ID.to_owned(), |id| id.to_string())
}

/// Returns the id of a message that was kept.
pub(super) fn id_of(sent: &Sent) -> Option<MessageId> {
    match sent {
        Sent::Kept(kept) => Some(kept.reply.id),
        Sent::Checked(_) => None,
    }
}

/// Returns a collapse key of ours. No length is documented for a foreign one; a long one is as good as its hash. What no
/// push service could be told is left as it is, and refused with the message.
pub(super) fn collapse_key(given: &str) -> String {
    let fits = given.chars().count() <= COLLAPSE_KEY_MAX_CHARS;
    if fits { given.to_owned() } else { blake3::hash(given.as_bytes()).to_hex().to_string() }
}
