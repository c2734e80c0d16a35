//! The fronts: APIs of others, so that their clients work against this server unchanged. A front translates into the
//! operations of the contract, and keeps its foreign words in its folder.

mod ccs;
mod fcm_v1;
mod gcm_http;
mod gorush;
mod iid;
mod nulls;
mod refused;
mod sending;

use std::sync::Arc;

use stentor_gateway::ccs::CcsPort;

use crate::face::Api;
use crate::face::http::LimitedRouter;

/// Builds the router of all fronts.
pub(crate) fn router(api: &Api) -> LimitedRouter {
    gorush::router(api).merge(gcm_http::router(api)).merge(fcm_v1::router(api)).merge(iid::router(api))
}

/// Returns the port for app servers that connect by CCS.
pub(crate) fn app_servers(api: &Api) -> Arc<dyn CcsPort> {
    Arc::new(ccs::OpenAppServers::new(api.clone()))
}
