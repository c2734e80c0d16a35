//! The WebSocket for devices: `/gateway/v1/autopush/{app}`, or without an app if the device's key names it.

use std::future::{pending, ready};

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{SinkExt as _, StreamExt as _};
use stentor_core::id::AppId;
use stentor_gateway::autopush::{
    AutopushFrame, AutopushServing, AutopushTimeouts, FRAME_MAX_BYTES, SUBPROTOCOL, serve,
};
use stentor_gateway::web_push::PushRefusal;
use tokio_util::sync::CancellationToken;

use super::push_routes::{PushRoutes, refused};
use super::web_push::PUSH_PATH;
use crate::face::http::Routes;
use crate::listen::RequestConnection;

/// Size of the read and the write buffer; an idle connection keeps no more.
const BUFFER_BYTES: usize = 1_024;
/// Most bytes buffered for a slow device: at most one message, in JSON.
const WRITE_MAX_BYTES: usize = 256 * 1_024;

/// Builds the routes.
pub(super) fn routes() -> Routes<PushRoutes> {
    Routes::new()
        .route("/gateway/v1/autopush", get(by_key))
        .route("/gateway/v1/autopush/", get(by_key))
        .route("/gateway/v1/autopush/{app}", get(by_name))
}

async fn by_key(State(routes): State<PushRoutes>, request: Request) -> Response {
    connect(&routes, None, request).await
}

async fn by_name(State(routes): State<PushRoutes>, Path(app): Path<String>, request: Request) -> Response {
    match app.parse() {
        Ok(app) => connect(&routes, Some(app), request).await,
        Err(_) => refused(&PushRefusal::NoSuchUrl),
    }
}

async fn connect(routes: &PushRoutes, app: Option<AppId>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let (base, connection) = (routes.base(&parts), parts.extensions.get::<RequestConnection>().cloned());
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(refusal) => return refusal.into_response(),
    };
    let (Some(base), Some(connection)) = (base, connection) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let serving = AutopushServing {
        gateway: routes.parts.gateway.clone(),
        apps: routes.apps.clone(),
        registrations: routes.registrations.clone(),
        endpoint_base: format!("{base}{PUSH_PATH}"),
        app,
        timeouts: AutopushTimeouts::default(),
    };
    upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(FRAME_MAX_BYTES)
        .max_frame_size(FRAME_MAX_BYTES)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(WRITE_MAX_BYTES)
        .on_upgrade(move |socket| run(serving, socket, connection))
}

/// Serves a connection. It keeps its place to the end once its agent has a channel; before that, a new connection may replace it.
async fn run(serving: AutopushServing, socket: WebSocket, connection: RequestConnection) {
    let frames =
        socket.map(|read| read.map(frame_of)).with(|frame| ready(Ok::<_, axum::Error>(message_of(frame))));
    let admitted = CancellationToken::new();
    let keeping = async {
        admitted.cancelled().await;
        let _place = connection.begin();
        pending().await
    };
    tokio::select! {
        () = serve(serving, Box::pin(frames), connection.stop_token(), admitted.clone()) => {}
        () = connection.replaced() => {}
        () = keeping => {}
    }
}

fn frame_of(message: Message) -> AutopushFrame {
    match message {
        Message::Text(text) => AutopushFrame::Text(text.as_str().to_owned()),
        Message::Binary(_) => AutopushFrame::Binary,
        Message::Ping(_) => AutopushFrame::Ping,
        Message::Pong(_) => AutopushFrame::Pong,
        Message::Close(frame) => AutopushFrame::Close(frame.map_or(1_005, |frame| frame.code)),
    }
}

fn message_of(frame: AutopushFrame) -> Message {
    match frame {
        AutopushFrame::Text(text) => Message::Text(text.into()),
        AutopushFrame::Binary => Message::Binary(bytes::Bytes::new()),
        AutopushFrame::Ping => Message::Ping(bytes::Bytes::new()),
        AutopushFrame::Pong => Message::Pong(bytes::Bytes::new()),
        AutopushFrame::Close(code) => Message::Close(Some(CloseFrame { code, reason: "".into() })),
    }
}
