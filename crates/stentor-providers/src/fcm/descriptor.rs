//! The descriptor of FCM.

use std::sync::Arc;

use http::header::CONTENT_TYPE;

use stentor_core::device::{Platform, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use super::address::INSTALLATION_ID;
use super::credential::FcmCredential;
use super::payload::{self, BodyTemplate};
use super::{Fcm, QUOTA_PER_MINUTE};
use crate::descriptor::{Descriptor, Overrides, TokenKinds, TokenSpelling};
use crate::preview::{RequestPreview, TOKEN_PLACE, url_at};
use crate::schema::{
    self, Choice, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, Shown,
};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Fcm,
    title: "Firebase Cloud Messaging",
    label: "FCM",
    is_for_trials: false,
    platforms: &[Platform::Android],
    overrides: Some(Overrides {
        field: "android",
        about: "FCM `AndroidConfig` fields that win over the common ones. Beside them `webpush`, `androidV2` (instead of \
            all others, with the message's ttl and collapse key unless it has its own) and `apns` are parts of FCM's message as it takes them.",
        help: "Content for Android devices only (an object as FCM takes it)",
    }),
    quota_per_minute: Some(QUOTA_PER_MINUTE),
    can_be_token: |_| true,
    token_form: "a text",
    token_spelling: TokenSpelling::Exact,
    names_hosts: false,
    tokens_per_request: 1,
    token_kinds: Some(TokenKinds { newer: "fid", form: INSTALLATION_ID, older: "token" }),
    confuses_environments: false,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes,
    preview: Some(preview),
    complete: None,
    hosts: |secret| Ok(FcmCredential::parse(secret)?.hosts()),
    open: |secret, setup| Ok(Arc::new(Fcm::open(secret, setup)?)),
};

const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "FcmCredential",
    about: "An FCM credential.",
    put: "Puts the credential for Firebase Cloud Messaging.",
    fields: &[
        CredentialField::required(
            "service_account",
            CredentialFieldKind::Object(SERVICE_ACCOUNT),
            "The service account's JSON as Google issues it",
        )
        .asked(Input::File { is: "a service account", from: "the Firebase console" }),
        schema::ENDPOINT,
        CredentialField::optional(
            "token_endpoint",
            CredentialFieldKind::Url,
            "Another address of the token endpoint than the service account's `token_uri`",
        )
        .asked(Input::Named(Flag::new("token-endpoint", "URL"))),
        schema::SERVER_NAME,
        schema::CA_PEM,
        schema::quota("600,000"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[Shown {
        name: "project_id",
        path: &["service_account", "project_id"],
        about: "Project at the push service.",
    }],
    example: "service-account.json",
};

/// Fields of the service account; other fields are stored and not read.
const SERVICE_ACCOUNT: &[CredentialField] = &[
    CredentialField::required("type", CredentialFieldKind::Choice(&ACCOUNT_TYPE), "Kind of account"),
    CredentialField::required("project_id", CredentialFieldKind::Text, "Project that the messages belong to"),
    CredentialField::required(
        "client_email",
        CredentialFieldKind::Text,
        "Account that requests access tokens",
    ),
    CredentialField::required("private_key_id", CredentialFieldKind::Text, "Id of the key that signs"),
    CredentialField::required("private_key", CredentialFieldKind::Pem, "Private key that signs"),
    CredentialField::optional("token_uri", CredentialFieldKind::Url, "Address of the token endpoint"),
];

const ACCOUNT_TYPE: Choice =
    Choice { name: "FcmAccountType", words: &["service_account"], about: "Kind of account." };

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = FcmCredential::parse(secret)?;
    let url = url_at(&credential.endpoint, &format!("/v1/projects/{}/messages:send", credential.project_id));
    let body = BodyTemplate::new(message, message.due_at).with_token(TOKEN_PLACE, |parts| parts.concat());
    Ok(RequestPreview::new(url, &[(CONTENT_TYPE, super::JSON)], &body))
}

fn payload_bytes(message: &Message) -> usize {
    BodyTemplate::new(message, message.due_at)
        .with_token("", |parts| parts.iter().map(|part| part.len()).sum())
}
