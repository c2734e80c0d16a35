//! The status of the server as defined by the contract.

use super::ServerStatus;
use crate::config::{Config, Explained};
use crate::contract::nodes::{NodeList, NodeView, ParkedLaneView};
use crate::contract::settings::{SettingList, SettingView};
use crate::contract::status::{LaneStatus, LimitStatus, Parked, ProviderStatus, RecoveryStatus, StatusView};
use crate::contract::table::{ListNodes, ListSettings, ShowStatus};
use crate::contract::{Identity, Instant, Serve, ServiceResult};
use crate::node::host_name;
use crate::pipeline::NodeRole;
use crate::pipeline::stats::DispatchStats;

impl Serve<ShowStatus> for ServerStatus {
    async fn serve(&self, identity: Identity, (): (), (): ()) -> ServiceResult<StatusView> {
        identity.allow::<ShowStatus>()?;
        let (queue, stats) = (self.depths().await.unwrap_or_default(), self.pipeline.stats());
        let figures = self.store_figures().await;
        Ok(StatusView {
            instance: format!("{:x}", self.pipeline.instance()),
            uptime_seconds: self.uptime().as_secs(),
            providers: stats.providers.into_iter().map(ProviderStatus::from).collect(),
            queue: queue.into_iter().map(LaneStatus::from).collect(),
            producers: stats.producers,
            unsettled_deliveries: stats.unsettled_deliveries,
            recovery: RecoveryStatus { chunks: stats.recovery.chunks, deliveries: stats.recovery.deliveries },
            damaged_chunks: figures.map(|figures| figures.quarantined_chunks),
            damaged_rows: figures.map(|figures| figures.damaged_rows),
            limits: LimitStatus::from(&self.config),
        })
    }
}

impl Serve<ListNodes> for ServerStatus {
    async fn serve(&self, identity: Identity, (): (), (): ()) -> ServiceResult<NodeList> {
        identity.allow::<ListNodes>()?;
        let nodes: Vec<_> = self.store.nodes().await?.into_iter().map(NodeView::from).collect();
        Ok(NodeList { nodes: if nodes.is_empty() { vec![self.alone()] } else { nodes } })
    }
}

impl Serve<ListSettings> for ServerStatus {
    async fn serve(&self, identity: Identity, (): (), (): ()) -> ServiceResult<SettingList> {
        identity.allow::<ListSettings>()?;
        Ok(SettingList { settings: self.config.explained.iter().map(SettingView::from).collect() })
    }
}

impl ServerStatus {
    /// Returns this server as the only node.
    fn alone(&self) -> NodeView {
        let roles = &self.config.roles;
        let parked = self.pipeline.parked_lanes(usize::MAX);
        NodeView {
            instance: format!("{:x}", self.pipeline.instance()),
            host: host_name(),
            answers: true,
            fires: roles.has(NodeRole::Scheduler),
            roles: roles.names().into_iter().map(str::to_owned).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version: None,
            silent_ms: 0,
            parked: parked.into_iter().map(ParkedLaneView::from).collect(),
        }
    }
}

impl From<&Explained> for SettingView {
    fn from(one: &Explained) -> Self {
        Self {
            key: one.key.clone(),
            value: one.value.clone(),
            origin: one.origin.clone(),
            default: one.default.clone(),
            about: one.about.clone(),
        }
    }
}

impl From<DispatchStats> for ProviderStatus {
    fn from(dispatcher: DispatchStats) -> Self {
        let parked = dispatcher.parked.into_iter().map(|lane| Parked {
            app: lane.app,
            reason: lane.reason.as_str(),
            until: lane.until.map(Instant),
            detail: lane.detail,
        });
        Self {
            provider: dispatcher.provider,
            consumers: dispatcher.consumers,
            inflight: dispatcher.wire.inflight,
            inflight_limit: dispatcher.wire.inflight_limit,
            latency_floor_ms: dispatcher.wire.latency_floor.as_millis() as u64,
            connections: dispatcher.wire.connections,
            unsettled: dispatcher.unsettled_deliveries,
            unsettled_limit: dispatcher.window_deliveries,
            attempts: dispatcher.attempts,
            parked: parked.collect(),
        }
    }
}

impl From<&Config> for LimitStatus {
    fn from(config: &Config) -> Self {
        Self {
            max_unsettled_deliveries: config.pipeline.max_unsettled_deliveries,
            consumers_max: config.pipeline.consumers_max,
            chunk_max_devices: config.pipeline.chunk_max_devices,
            requests_max_count: config.api.requests_max_count,
            connections_max_count: config.api.connections_max_count,
            body_max_bytes: config.api.body_max_bytes,
            large_body_max_bytes: config.api.large_body_max_bytes,
            bodies_max_bytes: config.api.bodies_max_bytes,
            imports_max_count: config.api.imports_max_count,
            app_share_percent: config.api.app_share_percent,
        }
    }
}
