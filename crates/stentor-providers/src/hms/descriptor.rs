//! The descriptor of Huawei Push Kit.

use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::message::Message;
use stentor_core::ports::provider::CredentialError;

use super::credential::{HmsCredential, PROJECT_ID_MAX_CHARS};
use super::payload;
use super::{Hms, JSON};
use crate::descriptor::{Descriptor, Overrides, TokenSpelling};
use crate::multicast::TOKENS_MAX_COUNT;
use crate::preview::{RequestPreview, url_at};
use crate::schema::{
    self, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, Shown, TextForm,
};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Hms,
    title: "Huawei Push Kit",
    label: "HMS",
    is_for_trials: false,
    // Its devices are Android devices, whose usual push service is another.
    platforms: &[],
    overrides: Some(Overrides {
        field: "huawei",
        about: "Push Kit's `AndroidConfig` fields that win over the common ones at Huawei.",
        help: "Content for devices of Huawei Push Kit only (an object as Push Kit's `android` takes it)",
    }),
    // A project's quota is not documented.
    quota_per_minute: None,
    can_be_token: |_| true,
    token_form: "a text",
    token_spelling: TokenSpelling::Exact,
    names_hosts: false,
    tokens_per_request: TOKENS_MAX_COUNT,
    token_kinds: None,
    // It calls all tokens invalid if they belong to another project.
    confuses_environments: true,
    credential: CREDENTIAL,
    check: payload::check,
    payload_bytes: |message| payload::template(message, message.due_at).bytes(),
    preview: Some(preview),
    complete: None,
    hosts: |secret| Ok(HmsCredential::parse(secret)?.hosts()),
    open: |secret, setup| Ok(Arc::new(Hms::open(secret, setup)?)),
};

fn preview(secret: &str, message: &Message) -> Result<RequestPreview, CredentialError> {
    let credential = HmsCredential::parse(secret)?;
    let url = url_at(&credential.endpoint, &format!("/v2/{}/messages:send", credential.project_id));
    Ok(payload::template(message, message.due_at).preview(url, JSON))
}

const CREDENTIAL: CredentialSchema = CredentialSchema {
    name: "HmsCredential",
    about: "A credential for Huawei Push Kit.",
    put: "Puts the credential for Huawei Push Kit.",
    fields: &[
        CredentialField::required(
            "client_secret",
            CredentialFieldKind::Form(&schema::ONE_LINE),
            "The secret of the project's OAuth 2.0 client",
        )
        .asked(Input::File { is: "a client secret", from: "AppGallery Connect" }),
        CredentialField::required(
            "client_id",
            CredentialFieldKind::Form(&schema::ONE_LINE),
            "The id of the project's OAuth 2.0 client",
        )
        .asked(Input::Named(Flag::new("client-id", "CLIENT_ID"))),
        CredentialField::required(
            "project_id",
            CredentialFieldKind::Form(&PROJECT_ID),
            "The project that the messages belong to",
        )
        .asked(Input::Named(Flag::new("project-id", "PROJECT_ID"))),
        schema::ENDPOINT,
        CredentialField::optional(
            "token_endpoint",
            CredentialFieldKind::Url,
            "Another address of the token endpoint than the vendor's",
        )
        .asked(Input::Named(Flag::new("token-endpoint", "URL"))),
        schema::SERVER_NAME,
        schema::CA_PEM,
        schema::quota("none"),
        schema::MAX_CONNECTIONS,
    ],
    shown: &[
        Shown { name: "project_id", path: &["project_id"], about: "Project at the push service." },
        Shown { name: "client_id", path: &["client_id"], about: "Client at the token endpoint." },
    ],
    example: "client-secret.txt --client-id 104288077 --project-id 736430079244623146",
};

const PROJECT_ID: TextForm = TextForm {
    name: "HmsProjectId",
    pattern: "^[A-Za-z0-9_-]+$",
    max_chars: Some(PROJECT_ID_MAX_CHARS),
    example: Some("736430079244623146"),
    about: None,
};
