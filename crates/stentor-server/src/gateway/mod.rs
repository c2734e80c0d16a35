//! The gateway over HTTP: devices register themselves, receive messages, confirm them and send upstream messages.
//!
//! A device authenticates with its token and secret; it holds no key of the app. A registration takes a key with the scope `join` or more.

mod autopush;
mod device_login;
mod devices;
mod listeners;
mod mcs;
mod message_view;
mod push_routes;
mod receipt;
mod registrar;
mod stream;
mod upstream;
mod web_push;

use std::sync::Arc;

use axum::extract::FromRef;
use axum::routing::{get, post, put};
use stentor_gateway::Gateway;

use crate::config::GatewayConfig;
use crate::face::Api;
use crate::face::http::refusal::WriteRefusal;
use crate::face::http::{EntryRule, LimitedRouter, Routes};
pub(crate) use listeners::GatewayListeners;
pub(crate) use push_routes::OwnNames;
use push_routes::{PushParts, PushRoutes};
use registrar::KeyRegistrar;

/// The state of the gateway's routes; clones share it.
#[derive(Clone)]
pub(crate) struct GatewayApi {
    pub(crate) api: Api,
    pub(crate) gateway: Gateway,
}

impl FromRef<GatewayApi> for Api {
    fn from_ref(own: &GatewayApi) -> Self {
        own.api.clone()
    }
}

/// Builds all routes of the gateway.
pub(crate) fn router(api: &Api, gateway: &Gateway, config: &GatewayConfig, own: OwnNames) -> LimitedRouter {
    let state = GatewayApi { api: api.clone(), gateway: gateway.clone() };
    let public_url = config.public_url().map(str::to_owned);
    let push = PushParts { api: api.clone(), gateway: gateway.clone(), public_url, own };
    let registrar = Arc::new(KeyRegistrar::new(api.clone(), gateway));
    let programs = mcs::router(api, gateway, registrar, config.check_ins());
    device_routes(api, &state).merge(push_router(push)).merge(programs)
}

/// Builds the routes of Web Push and of autopush's WebSocket.
fn push_router(parts: PushParts) -> LimitedRouter {
    let write: WriteRefusal = push_routes::write;
    let (api, routes) = (parts.api.clone(), PushRoutes::new(parts));
    web_push::routes()
        .limited(&api, routes.clone(), EntryRule::Keyed, write)
        .merge(autopush::routes().limited(&api, routes, EntryRule::Open, write))
}

/// Builds the routes that devices use with a token and a secret.
fn device_routes(api: &Api, state: &GatewayApi) -> LimitedRouter {
    let write: WriteRefusal = crate::face::write_refusal;
    let short = Routes::new()
        .route("/gateway/v1/devices", post(devices::register))
        .route("/gateway/v1/device", get(devices::show).delete(devices::withdraw))
        .route("/gateway/v1/device/token", post(devices::rotate))
        .route("/gateway/v1/device/keys", put(devices::put_keys).delete(devices::remove_keys))
        .route("/gateway/v1/device/topics/{topic}", put(devices::subscribe).delete(devices::unsubscribe))
        .route("/gateway/v1/receipts", post(stream::confirm))
        .route("/gateway/v1/upstream", post(upstream::send));
    // A device chooses how long these wait for messages; no request timeout applies.
    let long = Routes::new()
        .route("/gateway/v1/messages", get(stream::poll))
        .route("/gateway/v1/events", get(stream::events));
    let limited = |routes: Routes<GatewayApi>, rule| routes.limited(api, state.clone(), rule, write);
    limited(short, EntryRule::Keyed).merge(limited(long, EntryRule::Lasting))
}
