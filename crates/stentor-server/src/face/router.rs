//! The routers of all faces together. Everything else of the faces is below this file.

use super::http::refusal::WriteRefusal;
use super::http::{EntryRule, LimitedRouter, Routes};
use super::nowhere::answer_nowhere;
use super::socket::SocketFace;
use super::{Api, console, discovery, grpc, rest, soap, xmlrpc};

/// Builds the router of all faces that use HTTP.
pub(crate) fn router(api: &Api) -> LimitedRouter {
    rest::router(api)
        .merge(xmlrpc::router(api))
        .merge(discovery::router(api))
        .merge(soap::router(api))
        .merge(grpc::router(api))
        .merge(console::router(api))
        .merge(nowhere(api))
}

/// Builds the routes of a node without an API: liveness, readiness, version and metrics.
pub(crate) fn bare_router(api: &Api) -> LimitedRouter {
    rest::health_router(api).merge(nowhere(api))
}

/// Returns the handler for connections of the raw socket.
pub(crate) fn socket(api: &Api) -> SocketFace {
    SocketFace::new(api.clone())
}

/// Answers at addresses that do not exist.
fn nowhere(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = rest::write_refusal;
    Routes::new().fallback(answer_nowhere).limited(api, api.clone(), EntryRule::Open, write)
}
