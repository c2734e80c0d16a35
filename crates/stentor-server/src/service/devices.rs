//! Devices: registration, change, history.

use serde::{Deserialize, Deserializer};
use stentor_core::app::Scope::{Register, Send};
use stentor_core::device::{Device, DevicePatch, Platform, ProviderKind, PushToken, Registration};
use stentor_core::error::Invalid;
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::limits;
use stentor_core::name::{ExternalId, Locale, Tag, TimeZoneName, TopicName};
use stentor_core::ports::store::{AttemptRecord, DeviceFilter, Page, Registered};
use utoipa::ToSchema;

use super::calendar::known_zone;
use super::{Caller, Counters, ErrorCode, Problem, Service, ServiceResult};

/// One device as an app tells it.
#[derive(Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeviceRegistration)]
pub struct DeviceRequest {
    /// OS family.
    #[schema(value_type = String)]
    pub platform: Platform,
    /// Adapter that reaches it; the platform's usual one when absent.
    #[schema(value_type = Option<String>)]
    #[serde(default)]
    pub provider: Option<ProviderKind>,
    /// Its address at the push service: 1 to 4,096 bytes of visible ASCII.
    #[schema(min_length = 1, max_length = 4096)]
    pub token: String,
    /// Whose device it is, by the app's own id.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub user: Option<String>,
    /// BCP 47 language tag.
    #[serde(default)]
    #[schema(example = "de-CH", max_length = 35)]
    pub locale: Option<String>,
    /// IANA time zone name.
    #[serde(default)]
    #[schema(example = "Europe/Rome", max_length = 64)]
    pub time_zone: Option<String>,
    /// Marks; those given replace those kept.
    #[serde(default)]
    #[schema(max_items = 32)]
    pub tags: Vec<String>,
    /// Topics to subscribe to; others are kept.
    #[serde(default)]
    #[schema(max_items = 2000)]
    pub topics: Vec<String>,
}

impl DeviceRequest {
    /// Checks every field.
    pub fn checked(self) -> Result<Registration, Invalid> {
        let provider = match self.provider.or(stentor_providers::usual_provider(self.platform)) {
            Some(provider) => provider,
            None => return Err(Invalid::new("provider", format!("must be given for {}", self.platform))),
        };
        let topics: Result<_, _> = self.topics.into_iter().map(TopicName::new).collect();
        Registration {
            platform: self.platform,
            provider,
            token: PushToken::new(self.token)?,
            user: self.user.map(ExternalId::new).transpose()?,
            locale: self.locale.map(Locale::new).transpose()?,
            time_zone: self.time_zone.map(zone).transpose()?,
            tags: tags(self.tags)?,
            topics: topics.map_err(|invalid: Invalid| Invalid::new("topics", invalid.problem))?,
        }
        .checked()
    }
}

/// What to change about a device: an absent field stays, `null` clears it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceChange {
    /// New address; also revives a retired device.
    #[serde(default)]
    pub token: Option<String>,
    /// New owner.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub user: Option<Option<String>>,
    /// New language.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub locale: Option<Option<String>>,
    /// New time zone.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub time_zone: Option<Option<String>>,
    /// All marks.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
}

impl DeviceChange {
    /// Checks every field.
    pub fn checked(self) -> Result<DevicePatch, Invalid> {
        Ok(DevicePatch {
            token: self.token.map(PushToken::new).transpose()?,
            user: self.user.map(|user| user.map(ExternalId::new).transpose()).transpose()?,
            locale: self.locale.map(|locale| locale.map(Locale::new).transpose()).transpose()?,
            time_zone: self.time_zone.map(|name| name.map(zone).transpose()).transpose()?,
            tags: self.tags.map(tags).transpose()?,
        })
    }
}

impl Service {
    /// Registers one device.
    pub async fn register(&self, caller: Caller, request: DeviceRequest) -> ServiceResult<Registered> {
        caller.require(Register)?;
        let registration = request.checked()?;
        let replies = self.store.register(caller.app(), &[registration], self.now()).await?;
        let reply = replies.first().copied().ok_or_else(|| Problem::not_found("device"))?;
        self.count_devices(created_and_updated(&[reply]));
        Ok(reply)
    }

    /// Returns one device.
    pub async fn device(&self, caller: Caller, id: DeviceId) -> ServiceResult<Device> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.device(caller.app(), id).await?)
    }

    /// Lists devices in order of id.
    pub async fn devices(
        &self,
        caller: Caller,
        filter: &DeviceFilter,
        page: Page,
    ) -> ServiceResult<Vec<Device>> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.devices(caller.app(), filter, page).await?)
    }

    /// Replaces what is known of a device; a new token takes the place of the old.
    pub async fn replace_device(
        &self,
        caller: Caller,
        id: DeviceId,
        request: DeviceRequest,
    ) -> ServiceResult<Device> {
        caller.require(Register)?;
        let registration = request.checked()?;
        let present = self.store.device(caller.app(), id).await?.registration;
        if (present.platform, present.provider) != (registration.platform, registration.provider) {
            let problem = format!("stays {} by {}", present.platform, present.provider);
            return Err(Problem::new(ErrorCode::Conflict, problem)
                .at("platform")
                .with_hint("another platform or provider is another device: register it"));
        }
        let patch = DevicePatch {
            token: Some(registration.token),
            user: Some(registration.user),
            locale: Some(registration.locale),
            time_zone: Some(registration.time_zone),
            tags: Some(registration.tags),
        };
        let device = self.store.update_device(caller.app(), id, &patch, self.now()).await?;
        for topic in &registration.topics {
            self.store.subscribe(caller.app(), topic, &[id]).await?;
        }
        Ok(device)
    }

    /// Changes some fields of a device.
    pub async fn change_device(
        &self,
        caller: Caller,
        id: DeviceId,
        change: DeviceChange,
    ) -> ServiceResult<Device> {
        caller.require(Register)?;
        let patch = change.checked()?;
        Ok(self.store.update_device(caller.app(), id, &patch, self.now()).await?)
    }

    /// Removes a device.
    pub async fn remove_device(&self, caller: Caller, id: DeviceId) -> ServiceResult<()> {
        caller.require(Register)?;
        Ok(self.store.remove_device(caller.app(), id).await?)
    }

    /// Returns a device's attempts over all messages, newest message first.
    pub async fn history(
        &self,
        caller: Caller,
        id: DeviceId,
        page: Page,
    ) -> ServiceResult<Vec<AttemptRecord>> {
        caller.require_any(&[Register, Send])?;
        self.store.device(caller.app(), id).await?;
        Ok(self.store.history(caller.app(), id, page).await?)
    }

    /// Returns every attempt of one message at one device.
    pub async fn delivery(
        &self,
        caller: Caller,
        message: MessageId,
        device: DeviceId,
    ) -> ServiceResult<Vec<AttemptRecord>> {
        caller.require_any(&[Register, Send])?;
        let attempts = self.store.delivery(caller.app(), message, device).await?;
        if attempts.is_empty() {
            self.store.message(caller.app(), message).await?;
            return Err(
                Problem::not_found("delivery").with_hint("the device is not in the message's audience")
            );
        }
        Ok(attempts)
    }

    /// Counts devices made, and devices known before.
    pub(super) fn count_devices(&self, (created, updated): (u64, u64)) {
        Counters::add(&self.counters.devices_created, created);
        Counters::add(&self.counters.devices_updated, updated);
    }
}

/// Returns how many devices were made, and how many were known before.
pub(super) fn created_and_updated(replies: &[Registered]) -> (u64, u64) {
    let created = replies.iter().filter(|reply| reply.created).count() as u64;
    (created, replies.len() as u64 - created)
}

fn zone(name: String) -> Result<TimeZoneName, Invalid> {
    let name = TimeZoneName::new(name)?;
    if known_zone(&name) {
        return Ok(name);
    }
    Err(Invalid::new(
        "time_zone",
        "is not in the time zone database; give an IANA name such as `Europe/Rome`",
    ))
}

fn tags(tags: Vec<String>) -> Result<Vec<Tag>, Invalid> {
    if tags.len() > limits::TAGS_PER_DEVICE_MAX_COUNT {
        return Err(Invalid::new("tags", format!("at most {}", limits::TAGS_PER_DEVICE_MAX_COUNT)));
    }
    let mut tags = tags.into_iter().map(Tag::new).collect::<Result<Vec<_>, _>>()?;
    tags.sort();
    tags.dedup();
    Ok(tags)
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}
