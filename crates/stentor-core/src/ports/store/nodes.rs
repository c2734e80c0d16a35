//! The port for the nodes that share one store: membership, events and shared quotas.

use std::time::Duration;

use async_trait::async_trait;

use super::{AppStore, StoreError};
use crate::chunk::{Ticket, TrafficClass};
use crate::device::ProviderKind;
use crate::id::{AppId, ChunkId, DeviceId, MessageId, next_number};
use crate::outcome::Reason;
use crate::ports::settled::SettledChunk;
use crate::quota::{Level, Quota};
use crate::time::Timestamp;

/// A server that requests to use the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoiningNode {
    /// The id of its data directory: earlier starts from that directory are dead.
    pub node: u64,
    /// A hash of the secrets that all nodes of an installation must share.
    pub secrets_hash: [u8; 32],
    /// True if it fires schedules.
    pub fires: bool,
    /// The host name of its machine.
    pub host: String,
    /// The names of its roles.
    pub roles: Vec<&'static str>,
    /// The version of its program.
    pub version: &'static str,
}

/// A server among those that use the store, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// The id of its data directory.
    pub node: u64,
    /// The id of its start.
    pub instance: u64,
    /// True if it is the calling node.
    pub is_own: bool,
    /// True if it fires schedules for the installation: the longest present of the nodes with that role.
    pub is_first: bool,
    /// The host name of its machine; empty if its program is too old to report it.
    pub host: String,
    /// The names of its roles; empty if its program is too old to report them.
    pub roles: Vec<String>,
    /// The version of its program; empty if the program is too old to report it.
    pub version: String,
    /// The schema version of its program.
    pub schema_version: u64,
    /// The time since its last heartbeat, by the store's clock; zero if that clock went back.
    pub silent_for: Duration,
    /// The lanes parked at it, by app and push service.
    pub parked: Vec<ParkedLane>,
}

/// A lane that is parked at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedLane {
    /// The app of the credential.
    pub app: AppId,
    /// The push service.
    pub provider: ProviderKind,
    /// End of the pause; `None` until the credential changes or a probe passes.
    pub until: Option<Timestamp>,
    /// The reason.
    pub reason: Reason,
    /// A sentence about the reason, for the operator.
    pub detail: String,
}

/// The membership of a server among those that use the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The id of this start, larger than all earlier ones.
    pub instance: u64,
    /// The suffix of its ids, so that no two nodes generate the same one; `None` if it is the only node.
    pub id_place: Option<u8>,
    /// The last event before it joined.
    pub last_event: u64,
    /// A reading of the store's clock during the call, which all nodes follow; `None` if it is the only node.
    pub shown: Option<Timestamp>,
}

/// The result of a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// True if the node still counts as alive; otherwise its leases have been released, and it must join again.
    pub is_known: bool,
    /// True if the node performs the duties of a single node: of the nodes that fire schedules it has been present longest.
    pub is_first: bool,
    /// Chunks that dead nodes had leased, queued again.
    pub released: Vec<Ticket>,
    /// A reading of the store's clock during the call, which all nodes follow; `None` if it is the only node.
    pub shown: Option<Timestamp>,
}

/// An event at one node of which others must be notified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// Apps, keys or accounts were removed.
    Keys,
    /// A credential was put or removed.
    Credential(AppId, ProviderKind),
    /// A webhook was put or removed.
    Webhooks,
    /// Known chunks were queued again.
    Queued,
    /// A chunk was settled for which devices of the gateway may be waiting.
    Settled(ChunkId),
    /// A campaign was paused, resumed or canceled.
    Acted(AppId, MessageId),
    /// A device of the gateway was removed, or its token or keys changed; `None` means all devices of the app.
    CutOff(AppId, Option<DeviceId>),
    /// A device sent an upstream message.
    Upstream(AppId),
    /// A device of the gateway connected to a server at an instant; the last value is a mark of that server's process.
    Connected(AppId, DeviceId, Timestamp, u8),
    /// A push service must not be called until an instant, for a reason.
    Parked(AppId, ProviderKind, Timestamp, Reason),
}

/// Something that a node passes on to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeNotice {
    /// An event.
    Event(NodeEvent),
    /// The lanes that are parked at a node, in place of earlier ones; they are kept as long as the node is present.
    Parked {
        /// The start of the node.
        instance: u64,
        /// The lanes.
        lanes: Vec<ParkedLane>,
    },
}

/// The events since a node's last query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvents {
    /// The last event; the next query continues after it.
    pub last_event: u64,
    /// Events of other nodes, in order.
    pub events: Vec<NodeEvent>,
    /// True if there are more events for the next query.
    pub has_more: bool,
    /// True if some earlier events were already pruned: any state may have changed.
    pub is_gapped: bool,
    /// The last chunk that was created.
    pub last_chunk: ChunkId,
    /// True if any audience is still being expanded.
    pub has_producers: bool,
}

/// A node's claim on a credential's quota, which all nodes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaClaim {
    /// The app of the credential.
    pub app: AppId,
    /// The push service.
    pub provider: ProviderKind,
    /// The quota of the credential.
    pub quota: Quota,
    /// The class of the messages.
    pub class: TrafficClass,
    /// The smallest useful number of tokens.
    pub least: u64,
    /// The number of tokens that it can use until its next claim.
    pub most: u64,
}

/// The nodes that use one store. An engine for a single server stores none of it.
#[async_trait]
pub trait NodeStore: AppStore {
    /// Admits a server. Fails with Conflict if its secrets differ from those of the present nodes.
    async fn join(&self, joining: JoiningNode, now: Timestamp) -> Result<Membership, StoreError> {
        let _alone = joining;
        let instance = next_number(self.last_id().await?, now, None);
        Ok(Membership { instance, id_place: None, last_event: 0, shown: None })
    }

    /// Records a heartbeat. If `judges` is set, nodes without a new heartbeat for that time count as dead from then on, and their leases
    /// are released like those of a crashed process. This process measures the time since it first saw their last heartbeat.
    async fn beat(
        &self,
        instance: u64,
        judges: Option<Duration>,
        now: Timestamp,
    ) -> Result<Heartbeat, StoreError> {
        let _nobody_else = (instance, judges, now);
        Ok(Heartbeat { is_known: true, is_first: true, ..Heartbeat::default() })
    }

    /// Removes a node that shuts down; its remaining leases are released.
    async fn leave(&self, instance: u64, now: Timestamp) -> Result<(), StoreError> {
        let _nobody_else = (instance, now);
        Ok(())
    }

    /// Returns events of other nodes after a given event.
    async fn events_after(&self, after: u64) -> Result<NodeEvents, StoreError> {
        let last_chunk = ChunkId::from_raw(0);
        Ok(NodeEvents {
            last_event: after,
            events: Vec::new(),
            has_more: false,
            is_gapped: false,
            last_chunk,
            has_producers: false,
        })
    }

    /// Waits until another node may have published an event since the last query. It may return without a reason. On an engine without
    /// notifications it never returns, and the caller must poll from time to time.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Takes tokens from quotas by the store's own clock, all in one transaction; reply i is the number granted to claim i.
    async fn draw(&self, claims: Vec<QuotaClaim>) -> Result<Vec<u64>, StoreError> {
        Ok(claims.iter().map(|claim| claim.most).collect())
    }

    /// Returns the level of a shared quota at its last draw; `None` if no node has drawn from it yet, or if there can be no other node.
    async fn quota_level(&self, app: AppId, provider: ProviderKind) -> Result<Option<Level>, StoreError> {
        let _not_shared = (app, provider);
        Ok(None)
    }

    /// Lists the present nodes, the longest present first; empty if there can be no other node.
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        Ok(Vec::new())
    }

    /// Reads those of the chunks settled by other nodes that still exist and for which devices of the gateway may be waiting.
    async fn settled_chunks(&self, chunks: &[ChunkId]) -> Result<Vec<SettledChunk>, StoreError> {
        let _nobody_else = chunks;
        Ok(Vec::new())
    }

    /// Passes something on to the other nodes.
    async fn publish(&self, notice: NodeNotice) -> Result<(), StoreError> {
        let _nobody_else = notice;
        Ok(())
    }
}
