//! The routes of a node, and the serving of them on all of its ports.

use std::sync::Arc;

use stentor_gateway::Gateway;
use stentor_gateway::ccs::CcsServer;
use tokio_util::sync::CancellationToken;

use super::listening::OpenListeners;
use crate::config::GatewayConfig;
use crate::face::Api;
use crate::face::http::LimitedRouter;
use crate::face::router;
use crate::front;
use crate::gateway::{self, OwnNames};
use crate::listen::Http;
use crate::pipeline::{NodeRole, NodeRoles};

/// Everything that a node serves; its roles decide which of it.
pub(super) struct NodeRoutes {
    pub(super) api: Api,
    pub(super) gateway: Gateway,
    pub(super) gateway_config: GatewayConfig,
    pub(super) roles: NodeRoles,
    pub(super) own: OwnNames,
}

impl NodeRoutes {
    /// Returns the routes of a node with these roles.
    pub(super) fn router(&self) -> LimitedRouter {
        let Self { api, gateway, gateway_config, roles, own } = self;
        let router = match roles.has(NodeRole::Api) {
            true => front::router(api).merge(router::router(api)),
            false => router::bare_router(api),
        };
        match roles.has(NodeRole::Gateway) {
            true => router.merge(gateway::router(api, gateway, gateway_config, own.clone())),
            false => router,
        }
    }

    /// Serves all faces until `stop`.
    pub(super) async fn serve(self, listeners: OpenListeners, stop: CancellationToken) {
        let OpenListeners { api: listener, socket, devices, .. } = listeners;
        let broker = Arc::clone(self.api.service().upstream_broker());
        let app_servers = CcsServer::new(self.gateway.clone(), broker, front::app_servers(&self.api));
        let over_http = listener.serve(Http::new(self.router()), stop.clone().cancelled_owned());
        let over_socket = async {
            if let Some(socket) = socket {
                socket.serve(router::socket(&self.api), stop.clone().cancelled_owned()).await;
            }
        };
        tokio::join!(over_http, over_socket, devices.serve(&self.gateway, app_servers, stop.clone()));
    }
}
