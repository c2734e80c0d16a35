//! What the rest of the house knows of FCM.

use std::sync::Arc;

use stentor_core::device::{Platform, ProviderKind};
use stentor_core::limits::PUSH_TOKEN_MAX_BYTES;
use stentor_core::message::Message;

use super::credential::FcmCredential;
use super::payload::{self, Body};
use super::{Fcm, QUOTA_PER_MINUTE};
use crate::descriptor::{Descriptor, Overrides};
use crate::schema::{self, Choice, CredentialSchema, Field, FieldKind, Flag, Input, Shown};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Fcm,
    title: "Firebase Cloud Messaging",
    label: "FCM",
    is_for_trials: false,
    platforms: &[Platform::Android],
    overrides: Some(Overrides {
        field: "android",
        about: "FCM `AndroidConfig` fields that win over the common ones.",
        help: "What only Android devices get (an object as FCM takes it)",
    }),
    quota_per_minute: Some(QUOTA_PER_MINUTE),
    // No bound is documented.
    token_max_bytes: PUSH_TOKEN_MAX_BYTES,
    confuses_environments: false,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes,
    hosts: |secret| Ok(FcmCredential::parse(secret)?.hosts()),
    open: |secret, setup| Ok(Arc::new(Fcm::open(secret, setup)?)),
};

const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "FcmCredential",
    about: "An FCM credential.",
    put: "Puts the credential for Firebase Cloud Messaging.",
    fields: &[
        Field::required(
            "service_account",
            FieldKind::Object(SERVICE_ACCOUNT),
            "The service account's JSON as Google issues it",
        )
        .asked(Input::File { is: "a service account", from: "the Firebase console" }),
        schema::ENDPOINT,
        Field::optional(
            "token_endpoint",
            FieldKind::Url,
            "Another address of the token endpoint than the service account's `token_uri`",
        )
        .asked(Input::Named(Flag::new("token-endpoint", "URL"))),
        schema::SERVER_NAME,
        schema::CA_PEM,
        schema::quota("600,000"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[Shown { name: "project_id", path: &["service_account", "project_id"], about: "FCM project." }],
    example: "service-account.json",
};

/// What else stands in it is kept and not read.
const SERVICE_ACCOUNT: &[Field] = &[
    Field::required("type", FieldKind::Choice(&ACCOUNT_TYPE), "Which kind of account"),
    Field::required("project_id", FieldKind::Text, "Project that the messages belong to"),
    Field::required("client_email", FieldKind::Text, "Who asks for access tokens"),
    Field::required("private_key_id", FieldKind::Text, "Which of its keys signs"),
    Field::required("private_key", FieldKind::Pem, "That key"),
    Field::optional("token_uri", FieldKind::Url, "Where access tokens come from"),
];

const ACCOUNT_TYPE: Choice =
    Choice { name: "FcmAccountType", words: &["service_account"], about: "Which kind of account." };

fn payload_bytes(message: &Message) -> usize {
    Body::new(message, message.due_at).with_token("", |parts| parts.iter().map(|part| part.len()).sum())
}
