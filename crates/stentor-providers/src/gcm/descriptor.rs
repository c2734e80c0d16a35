//! The descriptor of GCM.

use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use super::credential::{GcmCredential, PATHS};
use super::payload;
use super::{Gcm, JSON};
use crate::descriptor::{Descriptor, Overrides, TokenSpelling};
use crate::multicast::TOKENS_MAX_COUNT;
use crate::preview::{RequestPreview, url_at};
use crate::schema::{self, Choice, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Gcm,
    title: "Google Cloud Messaging, the legacy HTTP protocol",
    label: "GCM",
    is_for_trials: false,
    // Its devices are Android devices, whose usual push service is its successor.
    platforms: &[],
    overrides: Some(Overrides {
        field: "gcm",
        about: "Fields of GCM's message beside its tokens that win over the common ones at servers of the legacy protocol.",
        help: "Content for devices of GCM's legacy protocol only (an object as GCM takes it)",
    }),
    quota_per_minute: None,
    can_be_token: |_| true,
    token_form: "a text",
    token_spelling: TokenSpelling::Exact,
    names_hosts: false,
    tokens_per_request: TOKENS_MAX_COUNT,
    token_kinds: None,
    confuses_environments: false,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes: |message| payload::template(message, message.due_at).bytes(),
    preview: Some(preview),
    complete: None,
    hosts: |secret| Ok(GcmCredential::parse(secret)?.hosts()),
    open: |secret, setup| Ok(Arc::new(Gcm::open(secret, setup)?)),
};

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = GcmCredential::parse(secret)?;
    let url = url_at(&credential.endpoint, credential.path);
    Ok(payload::template(message, message.due_at).preview(url, JSON))
}

const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "GcmCredential",
    about: "A credential for a server of GCM's legacy HTTP protocol.",
    put: "Puts the credential for a server of GCM's legacy HTTP protocol.",
    fields: &[
        CredentialField::required(
            "api_key",
            CredentialFieldKind::Form(&schema::ONE_LINE),
            "The API key of the app server",
        )
        .asked(Input::File { is: "an API key", from: "the server's operator" }),
        CredentialField::required(
            "endpoint",
            CredentialFieldKind::Endpoint,
            "The address of the server, which must speak HTTP/2: the vendor's own has been shut down",
        )
        .asked(Input::Named(Flag::new("endpoint", "URL"))),
        CredentialField {
            when_absent: Some(PATHS[0]),
            ..CredentialField::optional("path", CredentialFieldKind::Choice(&PATH), "Path for messages")
                .asked(Input::Named(Flag::new("path", "PATH")))
        },
        schema::SERVER_NAME,
        schema::CA_PEM,
        schema::quota("none"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[],
    example: "api-key.txt --endpoint https://gcm.example.com",
};

const PATH: Choice =
    Choice { name: "GcmPath", words: PATHS, about: "Path of either generation of the service." };
