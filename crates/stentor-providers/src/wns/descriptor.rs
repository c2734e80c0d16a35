//! The descriptor of WNS.

use std::sync::Arc;

use stentor_core::device::{Platform, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use super::channel::canonical;
use super::credential::WnsCredential;
use super::{Wns, payload};
use crate::descriptor::{Descriptor, Overrides, TokenSpelling};
use crate::preview::{RequestPreview, TOKEN_PLACE};
use crate::schema::{
    self, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, Shown, TextForm,
};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Wns,
    title: "the Windows Push Notification Services",
    label: "WNS",
    is_for_trials: false,
    platforms: &[Platform::Windows],
    overrides: Some(Overrides {
        field: "wns",
        about: "Content for Windows: `type` (`toast`, `tile`, `badge`, `raw`), `payload`, the text that is sent, and `headers` (`X-WNS-…`).",
        help: "Content for Windows devices only (an object with `type`, `payload` and `headers`)",
    }),
    quota_per_minute: None,
    can_be_token: |text| canonical(text).is_some(),
    token_form: "a channel URI of notify.windows.com",
    token_spelling: TokenSpelling::Canonical(canonical),
    names_hosts: true,
    tokens_per_request: 1,
    token_kinds: None,
    confuses_environments: false,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes: |message| payload::body(&message.spec.content).len(),
    preview: Some(preview),
    complete: None,
    hosts: |secret| Ok(WnsCredential::parse(secret)?.hosts()),
    open: |secret, setup| Ok(Arc::new(Wns::open(secret, setup)?)),
};

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    WnsCredential::parse(secret)?;
    let (headers, body) = (payload::headers(message, message.due_at), payload::body(&message.spec.content));
    Ok(RequestPreview::new(TOKEN_PLACE.to_owned(), &headers, &body))
}

const ENTRA_ID: TextForm = TextForm {
    name: "EntraId",
    pattern: "^[A-Za-z0-9.-]+$",
    max_chars: None,
    example: Some("72f988bf-86f1-41af-91ab-2d7cd011db47"),
    about: Some("An id, or the name of a directory's domain."),
};

const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "WnsCredential",
    about: "An app registration in Microsoft Entra ID.",
    put: "Puts the credential for the Windows Push Notification Services.",
    fields: &[
        CredentialField::required(
            "tenant_id",
            CredentialFieldKind::Form(&ENTRA_ID),
            "Directory (tenant) id of the app registration",
        )
        .asked(Input::Named(Flag::new("tenant-id", "ID"))),
        CredentialField::required(
            "client_id",
            CredentialFieldKind::Form(&ENTRA_ID),
            "Application (client) id of the app registration",
        )
        .asked(Input::Named(Flag::new("client-id", "ID"))),
        CredentialField::required(
            "client_secret",
            CredentialFieldKind::Text,
            "Client secret of the app registration",
        )
        .asked(Input::NamedFile(Flag::new("client-secret", "FILE"))),
        CredentialField::optional(
            "token_endpoint",
            CredentialFieldKind::Url,
            "Another address of the token endpoint, such as an emulator's",
        )
        .asked(Input::Named(Flag::new("token-endpoint", "URL"))),
        schema::CA_PEM,
        schema::quota("none"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[
        Shown { name: "tenant_id", path: &["tenant_id"], about: "Tenant of the app registration." },
        Shown { name: "client_id", path: &["client_id"], about: "Client at the token endpoint." },
    ],
    example: "--tenant-id 72f988bf-86f1-41af-91ab-2d7cd011db47 --client-id 00001111-aaaa-2222-bbbb-3333cccc4444 --client-secret secret.txt",
};
