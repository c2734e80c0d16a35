//! Discovery without a key: a document with the server's faces, their addresses and descriptions. It is also served signed, so that a
//! client with the stored public key recognises the server.

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

/// Path of the document (RFC 8615).
pub const DOCUMENT: &str = "/.well-known/stentor";
/// Path of the signed document (RFC 7515).
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
    // Written once, so that requests without a key cause no work and take no memory.
    static WRITTEN: LazyLock<HashMap<&str, (&str, Bytes)>> = LazyLock::new(|| {
        let written = |one: &FaceDescription| (one.name, (one.media_type, Bytes::from((one.write)())));
        DESCRIPTIONS.iter().map(written).collect()
    });
    let found = WRITTEN.get(name.as_str()).ok_or_else(|| Refusal(middleware::no_such_address()))?;
    let (media_type, text) = found.clone();
    Ok((Extension(StaticReply), [(header::CONTENT_TYPE, media_type)], text).into_response())
}

/// Writes the document. One server always writes the same text, so that the plain and the signed form agree.
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

/// Returns the entry of a face, with its path or, beside the API's address, its port; `None` if the face is not open.
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
