//! The descriptor of Web Push.

use std::sync::Arc;

use stentor_core::device::{Platform, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use super::credential::{WebPushCredential, complete};
use super::subscription::canonical;
use super::{WebPush, payload};
use crate::descriptor::{Descriptor, Overrides, TokenSpelling};
use crate::preview::{RequestPreview, TOKEN_PLACE};
use crate::schema::{
    self, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, Shown, TextForm,
};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::WebPush,
    title: "Web Push",
    label: "Web Push",
    is_for_trials: false,
    platforms: &[Platform::Web],
    overrides: Some(Overrides {
        field: "web_push",
        about: "Content for subscriptions of Web Push: `headers` (`ttl`, `urgency`, `topic`) and `payload`, JSON, win over the \
            common ones; `raw`, bytes in base64, is sent instead of all.",
        help: "Content for browsers and UnifiedPush only (an object with `headers`, and `payload` or `raw`)",
    }),
    quota_per_minute: None,
    can_be_token: |text| canonical(text).is_some(),
    token_form: "a subscription: the JSON of `PushSubscription`, or `https://…#p256dh=…&auth=…`",
    token_spelling: TokenSpelling::Canonical(canonical),
    names_hosts: true,
    tokens_per_request: 1,
    token_kinds: None,
    confuses_environments: false,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes: |message| payload::text(&message.spec.content, None).len(),
    preview: Some(preview),
    complete: Some(complete),
    // Each subscription names its own host.
    hosts: |_| Ok(Vec::new()),
    open: |secret, setup| Ok(Arc::new(WebPush::open(secret, setup)?)),
};

/// Shows the text before it is sealed.
fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = WebPushCredential::parse(secret)?;
    let text = payload::text(&message.spec.content, credential.navigate.as_deref());
    let headers = payload::headers(message, message.due_at);
    Ok(RequestPreview::new(TOKEN_PLACE.to_owned(), &headers, &text))
}

const SUBJECT: TextForm = TextForm {
    name: "VapidSubject",
    pattern: "^(mailto:[a-z0-9.]+@|https://)[a-z0-9]+(\\.[a-z0-9]+)*\\.[a-z]{2,8}$",
    max_chars: None,
    example: Some("mailto:ops@app.example"),
    about: Some("An address at a public host; other addresses that a URL may have are taken as well."),
};

const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "WebPushCredential",
    about: "The key by which push services know the sender of Web Push (VAPID, RFC 8292).",
    put: "Puts the key for Web Push. Without `private_key` the server makes one, or keeps the one it has.",
    fields: &[
        CredentialField::required(
            "subject",
            CredentialFieldKind::Form(&SUBJECT),
            "Address of the sender for the operators of push services: `mailto:` or `https:`",
        )
        .asked(Input::Named(Flag::new("subject", "URL"))),
        CredentialField::optional(
            "private_key",
            CredentialFieldKind::Text,
            "Private key of P-256 to import: 32 bytes in base64url, or PEM",
        )
        .asked(Input::NamedFile(Flag::new("private-key", "FILE"))),
        CredentialField::optional(
            "previous_private_key",
            CredentialFieldKind::Text,
            "Key before it, with which older subscriptions were made; the server keeps it when the key changes",
        )
        .asked(Input::NamedFile(Flag::new("previous-private-key", "FILE"))),
        CredentialField::optional(
            "rotate",
            CredentialFieldKind::Flag,
            "Makes a new key; subscriptions made with the former one stay valid",
        )
        .asked(Input::Named(Flag::new("rotate", "YES"))),
        CredentialField::optional(
            "navigate",
            CredentialFieldKind::Url,
            "Address that a notification opens if its message names none; browsers then show it without a service worker",
        )
        .asked(Input::Named(Flag::new("navigate", "URL"))),
        schema::CA_PEM,
        schema::quota("none"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[
        Shown {
            name: "public_key",
            path: &["public_key"],
            about: "Key that the app's pages subscribe with, as `applicationServerKey`.",
        },
        Shown { name: "previous_public_key", path: &["previous_public_key"], about: "Key before it." },
        Shown { name: "subject", path: &["subject"], about: "Address of the sender." },
    ],
    example: "--subject mailto:ops@app.example",
};
