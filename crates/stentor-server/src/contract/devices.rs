//! Devices and their history.

use serde::{Deserialize, Deserializer, Serialize};
use stentor_core::delivery::ShownState;
use stentor_core::device::{
    DEVICE_TEXTS_COUNT, Device, DeviceKeys, DevicePatch, DeviceState, Platform, ProviderKind,
    with_device_texts,
};
use stentor_core::device_texts;
use stentor_core::error::Invalid;
use stentor_core::id::{ChunkId, DeviceId, MessageId};
use stentor_core::name::{ExternalId, Tag};
use stentor_core::ports::store::AttemptRecord;
use utoipa::{IntoParams, ToSchema};

use super::Instant;

/// Characters of a push token that are shown.
const TOKEN_HINT_LETTERS: usize = 4;
/// Minimum length of a token of which a part may be shown.
const TOKEN_HINT_MIN_BYTES: usize = 16;

/// Declares the records with the facts of a device.
macro_rules! declare_records {
    ($(#[doc = $about:literal] $name:ident: $type:ty, $new:literal, $help:literal;)*) => {
        /// A device to register.
        #[derive(Clone, PartialEq, Eq, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        #[schema(as = DeviceRegistration)]
        pub struct DeviceRequest {
            /// Operating system family.
            #[schema(value_type = String)]
            pub platform: Platform,
            /// Adapter for the device; the platform's usual one when absent.
            #[schema(value_type = Option<String>)]
            #[serde(default)]
            pub provider: Option<ProviderKind>,
            /// Address of the device at the push service: 1 to 4,096 bytes of visible ASCII.
            pub token: String,
            /// Former address of the device, which `token` replaces: the device that has it keeps its id. If another device has `token`, both become one.
            #[serde(default)]
            pub former_token: Option<String>,
            /// The app's own id of the user that the device belongs to.
            #[serde(default)]
            pub user: Option<String>,
            $(#[doc = $about] #[serde(default)] pub $name: Option<String>,)*
            /// Tags, which replace the stored ones.
            #[serde(default)]
            pub tags: Vec<String>,
            /// Topics to subscribe to; existing subscriptions stay.
            #[serde(default)]
            pub topics: Vec<String>,
        }

        /// Changes to a device: an absent field stays as it is, `null` clears it.
        #[derive(Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct DeviceChange {
            /// New push token; also reactivates a retired device.
            #[serde(default)]
            pub token: Option<String>,
            /// New user.
            #[serde(default, deserialize_with = "given")]
            #[schema(value_type = Option<String>)]
            pub user: Option<Option<String>>,
            $(
                #[doc = $new]
                #[serde(default, deserialize_with = "given")]
                #[schema(value_type = Option<String>)]
                pub $name: Option<Option<String>>,
            )*
            /// Complete new list of tags.
            #[serde(default)]
            pub tags: Option<Vec<String>>,
        }

        /// A device; only a hint of its token is shown.
        #[derive(Serialize, ToSchema)]
        #[schema(as = Device)]
        pub struct DeviceView {
            #[schema(value_type = String)]
            pub(crate) id: DeviceId,
            #[schema(value_type = String)]
            pub(crate) platform: Platform,
            #[schema(value_type = String)]
            pub(crate) provider: ProviderKind,
            /// Last characters of the push token.
            pub(crate) token_hint: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) user: Option<String>,
            $(#[serde(skip_serializing_if = "Option::is_none")] pub(crate) $name: Option<String>,)*
            pub(crate) tags: Vec<String>,
            pub(crate) registered_at: Instant,
            /// Last registration of the current token.
            pub(crate) token_since: Instant,
            /// `active`, `retired` (its token is dead) or `unlisted` (known only because a message named its token).
            pub(crate) state: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) retired: Option<Retired>,
            /// Keys that a device of the gateway has registered, with which messages for it are encrypted.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) keys: Option<DeviceKeysView>,
        }

        impl DeviceRequest {
            /// Creates a request without optional fields.
            #[must_use]
            pub fn new(platform: Platform, token: String) -> Self {
                let (provider, former_token, user) = (None, None, None);
                let (tags, topics) = (Vec::new(), Vec::new());
                Self { platform, provider, token, former_token, user, $($name: None,)* tags, topics }
            }

            /// Sets the optional texts.
            pub(crate) fn set_texts(&mut self, texts: [Option<String>; DEVICE_TEXTS_COUNT]) {
                [$(self.$name),*] = texts;
            }

            /// Takes the optional texts out.
            pub(crate) fn take_texts(&mut self) -> [Option<String>; DEVICE_TEXTS_COUNT] {
                [$(self.$name.take()),*]
            }
        }

        impl DeviceChange {
            /// Checks the optional texts.
            pub(crate) fn texts(&mut self) -> Result<DevicePatch, Invalid> {
                let none = DevicePatch::default();
                $(let $name = self.$name.take().map(|new| new.map(<$type>::new).transpose()).transpose()?;)*
                Ok(DevicePatch { $($name,)* ..none })
            }
        }

        impl From<Device> for DeviceView {
            fn from(device: Device) -> Self {
                let (state, facts) = (device.state().as_str(), device.facts);
                let retired = device.retired.map(|end| Retired { at: end.at.into(), reason: end.reason.as_str() });
                Self {
                    id: device.id,
                    platform: device.platform,
                    provider: device.provider,
                    token_hint: token_hint(device.token.expose()),
                    user: facts.user.map(String::from),
                    $($name: facts.$name.map(String::from),)*
                    tags: facts.tags.into_iter().map(String::from).collect(),
                    registered_at: device.registered_at.into(),
                    token_since: device.token_since.into(),
                    state,
                    retired,
                    keys: device.keys.map(DeviceKeysView::from),
                }
            }
        }
    };
}
device_texts!(declare_records);

/// The fields of a change that can be cleared.
pub(crate) const CLEARABLE: [&str; 2 + DEVICE_TEXTS_COUNT] = with_device_texts(&["user"], &["tags"]);

/// Result of a registration.
#[derive(Serialize, ToSchema)]
#[schema(as = Registered)]
pub struct RegisteredView {
    #[schema(value_type = String)]
    pub(crate) id: DeviceId,
    /// False if the token, or the one that it replaces, was already registered.
    pub(crate) created: bool,
}

/// Time and reason of a device's removal from every audience.
#[derive(Serialize, ToSchema)]
pub struct Retired {
    pub(crate) at: Instant,
    /// Reason given by the push service.
    pub(crate) reason: &'static str,
}

/// Encryption keys of a Web Push subscription (RFC 8291), in base64url. Any key that may read devices may read them.
#[derive(Serialize, ToSchema)]
#[schema(as = DeviceKeys)]
pub struct DeviceKeysView {
    /// Public key of the device: a point on P-256.
    pub(crate) p256dh: String,
    /// Secret shared between the device and its senders.
    pub(crate) auth: String,
}

/// A page of the devices.
#[derive(Serialize, ToSchema)]
pub struct DeviceList {
    pub(crate) devices: Vec<DeviceView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Topics of a device.
#[derive(Serialize, ToSchema)]
pub struct DeviceTopics {
    pub(crate) topics: Vec<String>,
}

/// One attempt to reach a device.
#[derive(Serialize, ToSchema)]
#[schema(as = Attempt)]
pub struct AttemptView {
    #[schema(value_type = String)]
    pub(crate) message: MessageId,
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    #[schema(value_type = String)]
    pub(crate) chunk: ChunkId,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u16,
    /// `queued`, `sending`, `accepted`, `delivered` (accepted, and confirmed by the device), `rejected`, `expired`, `collapsed`, `canceled` or `failed`.
    pub(crate) state: &'static str,
    /// Reason for the state.
    pub(crate) reason: &'static str,
    /// True if an earlier attempt may have reached the device without an answer.
    pub(crate) ambiguous: bool,
    /// Time at which the attempt was settled or leased, or is due.
    pub(crate) at: Instant,
}

/// Attempts, newest message first.
#[derive(Serialize, ToSchema)]
pub struct History {
    pub(crate) deliveries: Vec<AttemptView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// All attempts of one message at one device.
#[derive(Serialize, ToSchema)]
pub struct Deliveries {
    pub(crate) deliveries: Vec<AttemptView>,
}

/// Filter and page of a list of devices.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceQuery {
    /// Start after this cursor: `next` of the previous page.
    pub(crate) after: Option<String>,
    /// Maximum number of devices, 1 to 1,000; 100 when absent.
    pub(crate) limit: Option<usize>,
    /// Only devices of this provider.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub(crate) provider: Option<ProviderKind>,
    /// Only devices of this user.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub(crate) user: Option<ExternalId>,
    /// Only devices with this tag.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub(crate) tag: Option<Tag>,
    /// Only devices in this state: `active`, `retired` (the token is dead) or `unlisted`; all but unlisted ones when absent.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub(crate) state: Option<DeviceState>,
    /// Only devices with this kind of address, at a `provider` that replaces one kind by another: in the words of its own requests, such as `token`.
    pub(crate) address: Option<String>,
}

/// Filter and page of a list of deliveries.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryQuery {
    /// Start after this cursor: `next` of the previous page.
    pub(crate) after: Option<String>,
    /// Maximum number of deliveries, 1 to 1,000; 100 when absent. A page may be shorter although another one follows.
    pub(crate) limit: Option<usize>,
    /// Only deliveries in this state, in the words of the list; `accepted` includes delivered ones.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub(crate) state: Option<ShownState>,
}

/// A message to one device, with its last attempt.
#[derive(Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    #[schema(value_type = String)]
    pub(crate) device: DeviceId,
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    #[schema(value_type = String)]
    pub(crate) chunk: ChunkId,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u16,
    /// State, in the same words as for an attempt.
    pub(crate) state: &'static str,
    /// Reason for the state.
    pub(crate) reason: &'static str,
    /// True if an earlier attempt may have reached the device without an answer.
    pub(crate) ambiguous: bool,
    /// Time at which the delivery was settled or leased, or is due.
    pub(crate) at: Instant,
}

/// A page of the deliveries of a message.
#[derive(Serialize, ToSchema)]
pub struct DeliveryList {
    pub(crate) deliveries: Vec<DeliveryView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl From<DeviceKeys> for DeviceKeysView {
    fn from(DeviceKeys { p256dh, auth }: DeviceKeys) -> Self {
        Self { p256dh, auth }
    }
}

impl From<AttemptRecord> for AttemptView {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            message: attempt.message,
            provider: attempt.provider,
            chunk: attempt.chunk,
            attempt: attempt.attempt,
            state: ShownState::of(attempt.record).as_str(),
            reason: attempt.record.reason().as_str(),
            ambiguous: attempt.record.is_ambiguous(),
            at: attempt.at.into(),
        }
    }
}

fn token_hint(token: &str) -> String {
    match token.len() {
        TOKEN_HINT_MIN_BYTES.. => format!("…{}", &token[token.len() - TOKEN_HINT_LETTERS..]),
        _ => "…".to_owned(),
    }
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}
