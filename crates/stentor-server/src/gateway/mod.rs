//! The gateway's addresses over HTTP: what devices and the senders of Web Push speak.

mod autopush;
mod push_routes;
mod receipt;
mod web_push;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::face::http::middleware;
use crate::face::http::refusal::WriteRefusal;
pub(crate) use push_routes::PushParts;
use push_routes::PushRoutes;

/// Builds the routes of Web Push and of autopush's WebSocket.
pub(crate) fn router(parts: PushParts) -> Router {
    let write: WriteRefusal = push_routes::write;
    let (api, routes) = (parts.api.clone(), PushRoutes::new(parts));
    web_push::router()
        .merge(autopush::router())
        .with_state(routes)
        .layer(from_fn_with_state(api, middleware::inner))
        .layer(from_fn_with_state(write, middleware::outer))
}
