//! Reads the typed request of an operation from a record.

use bytes::Bytes;
use futures_util::stream::{StreamExt as _, once};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stentor_core::name::IdempotencyKey;

use super::dispatch::Record;
use crate::contract::accounts::ServiceAccountRequest;
use crate::contract::apps::{AppRequest, KeyRequest};
use crate::contract::audit::AuditQuery;
use crate::contract::bulk::{DeviceBatch, MessageBatch, SubscriptionBatch};
use crate::contract::channels::ChannelRequest;
use crate::contract::credentials::CredentialRequest;
use crate::contract::devices::{DeliveryQuery, DeviceChange, DeviceQuery, DeviceRequest};
use crate::contract::groups::MembersRequest;
use crate::contract::import::{ImportQuery, ImportRequest};
use crate::contract::messages::MessageRequest;
use crate::contract::proposals::ProposalRequest;
use crate::contract::schedules::ScheduleRequest;
use crate::contract::services::{ServiceQuery, ServiceRequest};
use crate::contract::topics::SubscriptionRequest;
use crate::contract::upstream::UpstreamIds;
use crate::contract::webhooks::UpstreamWebhookRequest;
use crate::contract::{After, Before, Conditional, Problem, Repeat, Repeatable, ServiceResult};
use crate::decode::decode_value;

/// A request that can be decoded from a record.
pub(in crate::face) trait FromRecord: Sized {
    /// Decodes the request of the named operation. Unknown fields are rejected. `key` is an idempotency key outside the record.
    fn from_record(
        record: Record,
        key: Option<&IdempotencyKey>,
        operation: &'static str,
    ) -> ServiceResult<Self>;
}

macro_rules! by_decoding {
    ($($request:ty)*) => {$(
        impl FromRecord for $request {
            fn from_record(record: Record, _: Option<&IdempotencyKey>, _: &'static str) -> ServiceResult<Self> {
                decode_value(record)
            }
        }
    )*};
}

by_decoding! {
    After AppRequest ChannelRequest ProposalRequest AuditQuery Before DeliveryQuery DeviceChange DeviceQuery DeviceRequest KeyRequest MembersRequest ServiceQuery ServiceRequest
    SubscriptionRequest DeviceBatch SubscriptionBatch ServiceAccountRequest UpstreamIds UpstreamWebhookRequest
}

/// A request without fields beside its subject.
impl FromRecord for () {
    fn from_record(record: Record, _: Option<&IdempotencyKey>, _: &'static str) -> ServiceResult<Self> {
        match record.keys().next() {
            Some(name) => Err(Problem::field(name.clone(), format!("unknown field `{name}`"))),
            None => Ok(()),
        }
    }
}

macro_rules! repeatable {
    ($($request:ty)*) => {$(
        impl FromRecord for Repeatable<$request> {
            fn from_record(
                record: Record,
                key: Option<&IdempotencyKey>,
                operation: &'static str,
            ) -> ServiceResult<Self> {
                read_repeatable(record, key, operation)
            }
        }
    )*};
}

repeatable! { MessageBatch MessageRequest ScheduleRequest }

/// A precondition is not part of the record, and most faces have none.
impl<T: FromRecord> FromRecord for Conditional<T> {
    fn from_record(
        record: Record,
        key: Option<&IdempotencyKey>,
        operation: &'static str,
    ) -> ServiceResult<Self> {
        Ok(T::from_record(record, key, operation)?.into())
    }
}

impl FromRecord for CredentialRequest {
    fn from_record(
        mut record: Record,
        key: Option<&IdempotencyKey>,
        operation: &'static str,
    ) -> ServiceResult<Self> {
        let credential =
            record.remove("credential").ok_or_else(|| Problem::field("credential", "is missing"))?;
        <()>::from_record(record, key, operation)?;
        Ok(Self { json: credential.to_string().into_bytes() })
    }
}

impl FromRecord for ImportRequest {
    fn from_record(mut record: Record, _: Option<&IdempotencyKey>, _: &'static str) -> ServiceResult<Self> {
        let lines = text_of(&mut record, "lines")?.ok_or_else(|| Problem::field("lines", "is missing"))?;
        let query: ImportQuery = decode_value(record)?;
        Ok(Self { query, lines: once(async move { Ok(Bytes::from(lines)) }).boxed() })
    }
}

/// Decodes a request and its idempotency key, which is in the record or outside it.
fn read_repeatable<T: DeserializeOwned + Serialize>(
    mut record: Record,
    key: Option<&IdempotencyKey>,
    operation: &'static str,
) -> ServiceResult<Repeatable<T>> {
    let inside = text_of(&mut record, "idempotency_key")?.filter(|text| !text.is_empty());
    let key = inside.map(|text| IdempotencyKey::new(&text)).transpose()?.or_else(|| key.cloned());
    let request = decode_value(record)?;
    let repeat = key.map(|key| Repeat::of(key, operation, &request)).transpose()?;
    Ok(Repeatable { request, repeat })
}

/// Removes a text from a record.
pub(super) fn text_of(record: &mut Record, name: &'static str) -> ServiceResult<Option<String>> {
    match record.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::field(name, "must be text")),
    }
}
