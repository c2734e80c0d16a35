//! The descriptor of APNs.

use std::sync::Arc;

use stentor_core::device::{Platform, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use super::credential::{ApnsCredential, BUNDLE_ID_MAX_BYTES};
use super::payload::{self, Push};
use super::{Apns, TO_APPS, is_device_token};
use crate::descriptor::{Descriptor, Overrides, TokenSpelling};
use crate::preview::{RequestPreview, TOKEN_PLACE, url_at};
use crate::schema::{
    self, Choice, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, Shown, TextForm,
};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Apns,
    title: "the Apple Push Notification service",
    label: "APNs",
    is_for_trials: false,
    platforms: &[Platform::Apple],
    overrides: Some(Overrides {
        field: "apns",
        about: "`{\"headers\": {…}, \"payload\": {…}}` that win over the common ones at APNs.",
        help: "Content for Apple devices only (an object with `headers` and `payload`)",
    }),
    quota_per_minute: None,
    can_be_token: is_device_token,
    token_form: "64 to 4,096 hexadecimal digits",
    // Hexadecimal digits, which apps write in either case.
    token_spelling: TokenSpelling::IgnoresCase,
    names_hosts: false,
    tokens_per_request: 1,
    token_kinds: None,
    // It reports `BadDeviceToken` for every token of the other environment.
    confuses_environments: true,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes: |message| Push::new(message, "").body.len(),
    preview: Some(preview),
    complete: None,
    hosts: |secret| Ok(ApnsCredential::parse(secret)?.hosts()),
    open: |secret, setup| Ok(Arc::new(Apns::open(secret, setup, &TO_APPS)?)),
};

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = ApnsCredential::parse(secret)?;
    let Push { headers, body } = Push::new(message, &credential.bundle_id);
    let url = url_at(&credential.endpoint, &format!("/3/device/{TOKEN_PLACE}"));
    Ok(RequestPreview::new(url, &headers, &body))
}

pub(crate) const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "ApnsCredential",
    about: "An APNs credential.",
    put: "Puts the credential for the Apple Push Notification service.",
    fields: &[
        KEY,
        KEY_ID,
        TEAM_ID,
        BUNDLE,
        ENVIRONMENT,
        schema::ENDPOINT,
        schema::SERVER_NAME,
        schema::CA_PEM,
        schema::quota("none"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[
        Shown { name: "team_id", path: &["team_id"], about: "APNs team." },
        Shown { name: "key_id", path: &["key_id"], about: "APNs key." },
        Shown { name: "bundle_id", path: &["bundle_id"], about: "APNs topic." },
    ],
    example: "AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ --bundle-id com.example.app",
};

/// The same, with the address at which channels are managed.
pub(crate) const CHANNEL_CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "ApnsChannelCredential",
    about: "An APNs credential for broadcast channels.",
    put: "Puts the credential for broadcast channels at the Apple Push Notification service.",
    fields: &[
        KEY,
        KEY_ID,
        TEAM_ID,
        BUNDLE,
        ENVIRONMENT,
        schema::ENDPOINT,
        CredentialField::optional(
            "management_endpoint",
            CredentialFieldKind::Endpoint,
            "Another address for the management of channels; needed if `endpoint` is given",
        )
        .asked(Input::Named(Flag::new("management-endpoint", "URL"))),
        schema::SERVER_NAME,
        schema::CA_PEM,
        schema::quota("none"),
        schema::MAX_CONNECTIONS,
    ],
    ..CREDENTIAL
};

const KEY: CredentialField =
    CredentialField::required("key_p8", CredentialFieldKind::Pem, "The .p8 key as Apple issues it")
        .asked(Input::File { is: "a key", from: "Apple" });
const KEY_ID: CredentialField =
    CredentialField::required("key_id", CredentialFieldKind::Form(&APPLE_ID), "The id of the signing key")
        .asked(Input::NamedOrInFileName(Flag::new("key-id", "KEY_ID"), "AuthKey_"));
const TEAM_ID: CredentialField =
    CredentialField::required("team_id", CredentialFieldKind::Form(&APPLE_ID), "The team that owns the key")
        .asked(Input::Named(Flag::new("team-id", "TEAM_ID")));
const BUNDLE: CredentialField =
    CredentialField::required("bundle_id", CredentialFieldKind::Form(&BUNDLE_ID), "The app's bundle id")
        .asked(Input::Named(Flag::new("bundle-id", "BUNDLE_ID")));
const ENVIRONMENT: CredentialField = CredentialField {
    when_absent: Some("production"),
    ..CredentialField::optional(
        "environment",
        CredentialFieldKind::Choice(&ENVIRONMENTS),
        "Apple's environment that the tokens belong to",
    )
    .asked(Input::Named(Flag::new("environment", "ENVIRONMENT")))
};

const APPLE_ID: TextForm = TextForm {
    name: "AppleId",
    pattern: "^[A-Za-z0-9]{10}$",
    max_chars: None,
    example: None,
    about: Some("Ten letters and digits, as Apple gives them."),
};

const BUNDLE_ID: TextForm = TextForm {
    name: "BundleId",
    pattern: "^[A-Za-z0-9._-]+$",
    max_chars: Some(BUNDLE_ID_MAX_BYTES),
    example: Some("com.example.app"),
    about: None,
};

const ENVIRONMENTS: Choice = Choice {
    name: "ApnsEnvironment",
    words: &["production", "sandbox"],
    about: "Which of Apple's services.",
};
