//! The stored record of a message request, in every version so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Content, MessageSpec, Notification};
use crate::provider::ProviderKind;

/// The newest version: overrides by provider.
const VERSION: u32 = 2;

/// Encodes a record with the lowest version that can hold it: without overrides an earlier server can read it too.
pub(super) fn encode(spec: &MessageSpec) -> serde_json::Result<String> {
    let v = if spec.content.overrides.is_empty() { 1 } else { VERSION };
    serde_json::to_string(&EncodedSpec { v, spec })
}

/// Decodes a record of any version so far. Returns `None` if the text is not a record.
pub(super) fn decode(text: &str) -> Option<MessageSpec> {
    let record: DecodedSpec = serde_json::from_str(text).ok()?;
    (1..=VERSION).contains(&record.v).then_some(record.spec)
}

#[derive(Serialize)]
struct EncodedSpec<'a> {
    v: u32,
    spec: &'a MessageSpec,
}

#[derive(Deserialize)]
struct DecodedSpec {
    v: u32,
    spec: MessageSpec,
}

/// Content as any version wrote it: version 1 knew two push services, each by a field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentRecord {
    #[serde(default)]
    notification: Option<Notification>,
    #[serde(default)]
    data: BTreeMap<String, String>,
    #[serde(default)]
    overrides: BTreeMap<ProviderKind, Map<String, Value>>,
    #[serde(default)]
    android: Option<Map<String, Value>>,
    #[serde(default)]
    apns: Option<Map<String, Value>>,
}

impl From<ContentRecord> for Content {
    fn from(record: ContentRecord) -> Self {
        let ContentRecord { notification, data, mut overrides, android, apns } = record;
        let older = [(ProviderKind::Fcm, android), (ProviderKind::Apns, apns)];
        overrides.extend(older.into_iter().filter_map(|(kind, fields)| Some((kind, fields?))));
        Self { notification, data, overrides }
    }
}
