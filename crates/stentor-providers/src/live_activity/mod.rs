//! Live Activities of Apple's devices: updates and ends of running activities, each by its own token, starts, and channels.
//!
//! An activity's token is a device of its own. It rotates and expires without any effect on the phone.

pub mod channel;
pub mod fields;
pub mod payload;

use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use crate::apns::credential::ApnsCredential;
use crate::apns::payload::Push;
use crate::apns::{Apns, PushForm, is_device_token};
use crate::descriptor::{Descriptor, Overrides};
use crate::preview::{RequestPreview, TOKEN_PLACE, url_at};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::LiveActivity,
    title: "Live Activities at the Apple Push Notification service",
    label: "Live Activities",
    overrides: Some(Overrides {
        field: "live_activity",
        about: "An update, end or start of Live Activities; a message that has it reaches nothing else. `event`, `activity`, \
            `content_state`, `stale_date`, `dismissal_date`, `relevance_score`, `sound`; for a start `attributes_type`, `attributes`, \
            `input_push_token`, `input_push_channel`; for channels `stored`.",
        help: "An update, end or start of Live Activities (an object with `event`, `activity`, `content_state`, …)",
    }),
    credential: crate::apns::CREDENTIAL,
    open: |secret, setup| Ok(Arc::new(Apns::open(secret, setup, &UPDATES)?)),
    ..OF_TOKENS
};

/// The descriptor of starts.
pub(crate) const STARTS: Descriptor = Descriptor {
    kind: ProviderKind::LiveActivityStart,
    title: "starts of Live Activities at the Apple Push Notification service",
    label: "Live Activities' starts",
    open: |secret, setup| Ok(Arc::new(Apns::open(secret, setup, &STARTS_FORM)?)),
    ..OF_TOKENS
};

/// What updates, ends and starts have in common.
const OF_TOKENS: Descriptor = Descriptor {
    // Devices are registered for Live Activities by name.
    platforms: &[],
    overrides: None,
    token_form: "64 to 4,096 hexadecimal digits",
    check: payload::check,
    payload_bytes: |message| payload::to_tokens(message, "").body.len(),
    preview: Some(preview),
    ..crate::apns::DESCRIPTOR
};

const UPDATES: PushForm = PushForm {
    kind: ProviderKind::LiveActivity,
    push: payload::to_tokens,
    can_be_token: is_device_token,
    is_broadcast: false,
};

const STARTS_FORM: PushForm = PushForm { kind: ProviderKind::LiveActivityStart, ..UPDATES };

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = ApnsCredential::parse(secret)?;
    let Push { headers, body } = payload::to_tokens(message, &credential.bundle_id);
    let url = url_at(&credential.endpoint, &format!("/3/device/{TOKEN_PLACE}"));
    Ok(RequestPreview::new(url, &headers, &body))
}
