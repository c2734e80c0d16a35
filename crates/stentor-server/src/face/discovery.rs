//! What the server says of itself, without a key: its faces, where they are, and their descriptions; signed as well, so that
//! a client which has kept the public key knows the server again.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Value, json};

use super::http::held_reply::StaticReply;
use super::http::middleware;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{EntryRule, LimitedRouter, Routes};
use super::{Api, DESCRIPTIONS, FACES, Face, FaceDescription};

/// Where the document is (RFC 8615).
pub const DOCUMENT: &str = "/.well-known/stentor";
/// Where its signed form is (RFC 7515).
pub const SIGNED: &str = "/.well-known/stentor.jws";
const DESCRIPTION: &str = "/.well-known/stentor/{description}";

/// Builds the routes.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = super::rest::write_refusal;
    Routes::new()
        .route(DOCUMENT, get(document))
        .route(SIGNED, get(signed))
        .route(DESCRIPTION, get(description))
        .limited(api, api.clone(), EntryRule::Open, write)
}

async fn document(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text_of(&api))
}

async fn signed(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/jose")], api.service_key().sign(text_of(&api).as_bytes()))
}

async fn description(Path(name): Path<String>) -> Result<Response, Refusal> {
    // Written once: whoever asks without a key makes the server write nothing, and keep nothing.
    static WRITTEN: LazyLock<HashMap<&str, (&str, Bytes)>> = LazyLock::new(|| {
        let written = |one: &FaceDescription| (one.name, (one.media_type, Bytes::from((one.write)())));
        DESCRIPTIONS.iter().map(written).collect()
    });
    let found = WRITTEN.get(name.as_str()).ok_or_else(|| Refusal(middleware::no_such_address()))?;
    let (media_type, text) = found.clone();
    Ok((Extension(StaticReply), [(header::CONTENT_TYPE, media_type)], text).into_response())
}

/// Writes the document; the same server writes the same text, so that both forms say the same.
fn text_of(api: &Api) -> String {
    let document = json!({
        "service": "stentor",
        "version": env!("CARGO_PKG_VERSION"),
        "faces": FACES.iter().filter_map(|face| shown(face, api)).collect::<Vec<_>>(),
        "keys": [api.service_key().jwk()],
        "signed": SIGNED,
    });
    format!("{document:#}\n")
}

/// Shows where a face is: its path, or its port beside the API's; nothing of one that is not open.
fn shown(face: &Face, api: &Api) -> Option<Value> {
    let at = |name: &str| DESCRIPTION.replace("{description}", name);
    let described = at(face.description);
    let mut shown = match face.path {
        Some(path) => json!({"name": face.name, "address": path, "description": described}),
        None => json!({"name": face.name, "port": api.socket_port()?, "description": described}),
    };
    if !face.others.is_empty() {
        shown["others"] = face.others.iter().map(|name| at(name)).collect();
    }
    Some(shown)
}
