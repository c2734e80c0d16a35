//! The target of a message.

use serde::{Deserialize, Serialize};

use crate::chunk::TrafficClass;
use crate::device::{Platform, ProviderKind, PushToken};
use crate::error::Invalid;
use crate::id::DeviceId;
use crate::limits::TARGET_DEVICES_MAX_COUNT;
use crate::name::{ExternalId, GroupName, TopicName};
use crate::topic::Condition;

/// A push token with its platform and provider; it need not belong to a registered device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTarget {
    /// OS family.
    pub platform: Platform,
    /// Adapter that reaches it.
    pub provider: ProviderKind,
    /// The address.
    pub token: PushToken,
}

/// The target of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// One device.
    Device(DeviceId),
    /// Some devices, named one by one.
    Devices(Vec<DeviceId>),
    /// One address.
    Token(TokenTarget),
    /// All devices of a person.
    User(ExternalId),
    /// All devices of a group and of its users.
    Group(GroupName),
    /// All devices subscribed.
    Topic(TopicName),
    /// All devices with topics that satisfy the condition.
    Condition(Condition),
    /// All devices of the app.
    Everyone,
}

impl Target {
    /// Returns true if the audience is small and known at once, so that no producer is needed.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        matches!(self, Self::Device(_) | Self::Devices(_) | Self::Token(_) | Self::User(_))
    }

    /// Returns the queue class: direct targets must not wait behind campaigns.
    #[must_use]
    pub const fn class(&self) -> TrafficClass {
        if self.is_direct() { TrafficClass::Urgent } else { TrafficClass::Bulk }
    }

    /// Checks counts and sorts named devices.
    pub fn checked(self) -> Result<Self, Invalid> {
        let Self::Devices(mut devices) = self else { return Ok(self) };
        if devices.is_empty() || devices.len() > TARGET_DEVICES_MAX_COUNT {
            let problem =
                format!("must name 1 to {TARGET_DEVICES_MAX_COUNT} devices; use a topic or group for more");
            return Err(Invalid::new("target.devices", problem));
        }
        devices.sort_unstable();
        devices.dedup();
        Ok(Self::Devices(devices))
    }
}

/// The stored form of a target; version 1 of the record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetRecord {
    Device(DeviceId),
    Devices(Vec<DeviceId>),
    Token { platform: Platform, provider: ProviderKind, token: String },
    User(ExternalId),
    Group(GroupName),
    Topic(TopicName),
    Condition(Condition),
    Everyone,
}

impl Serialize for Target {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let record = match self.clone() {
            Self::Device(id) => TargetRecord::Device(id),
            Self::Devices(ids) => TargetRecord::Devices(ids),
            Self::Token(TokenTarget { platform, provider, token }) => {
                TargetRecord::Token { platform, provider, token: token.expose().to_owned() }
            }
            Self::User(id) => TargetRecord::User(id),
            Self::Group(name) => TargetRecord::Group(name),
            Self::Topic(name) => TargetRecord::Topic(name),
            Self::Condition(condition) => TargetRecord::Condition(condition),
            Self::Everyone => TargetRecord::Everyone,
        };
        record.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrap = serde::de::Error::custom;
        let target = match TargetRecord::deserialize(from)? {
            TargetRecord::Device(id) => Self::Device(id),
            TargetRecord::Devices(ids) => Self::Devices(ids),
            TargetRecord::Token { platform, provider, token } => {
                let token = PushToken::new(token).map_err(wrap)?;
                Self::Token(TokenTarget { platform, provider, token })
            }
            TargetRecord::User(id) => Self::User(id),
            TargetRecord::Group(name) => Self::Group(name),
            TargetRecord::Topic(name) => Self::Topic(name),
            TargetRecord::Condition(condition) => Self::Condition(condition),
            TargetRecord::Everyone => Self::Everyone,
        };
        target.checked().map_err(wrap)
    }
}
