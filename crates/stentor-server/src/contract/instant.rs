//! Instants as the contract writes them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stentor_core::time::Timestamp;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// An instant as RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant(pub Timestamp);

impl std::fmt::Display for Instant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let instant = jiff::Timestamp::from_millisecond(self.0.as_millis());
        let bound = if self.0.as_millis() < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        write!(f, "{:.3}", instant.unwrap_or(bound))
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let instant: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(Timestamp::from_millis(instant.as_millisecond())))
    }
}

impl From<Timestamp> for Instant {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl PartialSchema for Instant {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .examples(["2026-11-21T07:00:00.000Z"])
            .into()
    }
}

impl ToSchema for Instant {}
