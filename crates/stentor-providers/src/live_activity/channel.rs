//! Channels of Live Activities: one request reaches all phones that have subscribed.

use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::message::Message;
use stentor_core::name::ChannelId;
use stentor_core::ports::provider::CredentialError;

use super::payload;
use crate::apns::credential::ApnsCredential;
use crate::apns::descriptor::CHANNEL_CREDENTIAL;
use crate::apns::payload::Push;
use crate::apns::{Apns, PushForm};
use crate::descriptor::{Descriptor, TokenSpelling};
use crate::preview::{RequestPreview, url_at};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::LiveActivityChannel,
    title: "channels of Live Activities at the Apple Push Notification service",
    label: "Live Activities' channels",
    platforms: &[],
    overrides: None,
    can_be_token: is_channel,
    token_form: "the id of a channel, as Apple gives it",
    token_spelling: TokenSpelling::Exact,
    credential: CHANNEL_CREDENTIAL,
    check: payload::check_broadcast,
    payload_bytes: |message| payload::to_channels(message, "").body.len(),
    preview: Some(preview),
    open: |secret, setup| Ok(Arc::new(Apns::open(secret, setup, &BROADCASTS)?)),
    ..crate::apns::DESCRIPTOR
};

const BROADCASTS: PushForm = PushForm {
    kind: ProviderKind::LiveActivityChannel,
    push: payload::to_channels,
    can_be_token: is_channel,
    is_broadcast: true,
};

fn is_channel(text: &str) -> bool {
    ChannelId::new(text.to_owned()).is_ok()
}

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = ApnsCredential::parse(secret)?;
    let Push { headers, body } = payload::to_channels(message, &credential.bundle_id);
    let url = url_at(&credential.endpoint, &format!("/4/broadcasts/apps/{}", credential.bundle_id));
    Ok(RequestPreview::new(url, &headers, &body))
}
