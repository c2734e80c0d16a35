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

/// A server that wants to use the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoiningNode {
    /// The number of its data directory: what an earlier start from there left is dead.
    pub node: u64,
    /// A hash of what all nodes of an installation must know alike.
    pub secrets_hash: [u8; 32],
    /// Whether it fires schedules.
    pub fires: bool,
    /// The name of the machine that it runs on, as that calls itself.
    pub host: String,
    /// The names of its roles.
    pub roles: Vec<&'static str>,
    /// The version of its program.
    pub version: &'static str,
}

/// A server among those that use the store, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// The number of its data directory.
    pub node: u64,
    /// The number of its start.
    pub instance: u64,
    /// Whether it is the one that asks.
    pub is_own: bool,
    /// Whether it is the one that fires schedules: of those that may, the one that is there longest.
    pub is_first: bool,
    /// The name of its machine; empty where its program is too old to tell.
    pub host: String,
    /// The names of its roles; none where its program is too old to tell.
    pub roles: Vec<String>,
    /// The version of its program; empty where that is too old to tell.
    pub version: String,
    /// The schema that its program knows.
    pub schema_version: u64,
    /// The time since its last sign of life, by the store's clock; zero where that went back.
    pub silent_for: Duration,
    /// The lanes that rest at it, by app and push service.
    pub parked: Vec<ParkedLane>,
}

/// A lane that rests at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedLane {
    /// Whose credential.
    pub app: AppId,
    /// At which push service.
    pub provider: ProviderKind,
    /// Until when; `None` until the credential changes or a probe passes.
    pub until: Option<Timestamp>,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence, for the operator.
    pub detail: String,
}

/// How a server stands among those that use the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The number of this start, larger than all that were given out before.
    pub instance: u64,
    /// What its numbers end in, so that no two nodes give out the same one; `None` where it is alone.
    pub id_place: Option<u8>,
    /// The last event before it came.
    pub last_event: u64,
    /// What the store's own clock showed meanwhile, by which all nodes go; `None` where it is alone.
    pub shown: Option<Timestamp>,
}

/// What a sign of life came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whether the node still counts as alive; otherwise its leases are others' already, and it must join anew.
    pub is_known: bool,
    /// Whether it is the node that does what one alone must do: of those that fire, the one that is there longest.
    pub is_first: bool,
    /// Chunks that dead nodes had leased, queued again.
    pub released: Vec<Ticket>,
    /// What the store's own clock showed meanwhile, by which all nodes go; `None` where it is alone.
    pub shown: Option<Timestamp>,
}

/// What one node did that others must know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// Apps, keys or accounts were removed.
    Keys,
    /// A credential was put or removed.
    Credential(AppId, ProviderKind),
    /// A webhook was put or removed.
    Webhooks,
    /// Chunks are queued again that were known before.
    Queued,
    /// A chunk was settled that devices of the gateway may be waiting for.
    Settled(ChunkId),
    /// A campaign was paused, resumed or canceled.
    Acted(AppId, MessageId),
    /// A device of the gateway was removed, or has another token or other keys; all of the app's when `None`.
    CutOff(AppId, Option<DeviceId>),
    /// A device sent something to its app.
    Upstream(AppId),
    /// A device of the gateway came to a server at an instant; the last word is a mark of that server's process.
    Connected(AppId, DeviceId, Timestamp, u8),
    /// A push service wants to be left alone until an instant, for a reason.
    Parked(AppId, ProviderKind, Timestamp, Reason),
}

/// What is new since a node last looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvents {
    /// The last event, after which the next look goes on.
    pub last_event: u64,
    /// What others did, in order.
    pub events: Vec<NodeEvent>,
    /// Whether they did more, which the next look gives.
    pub has_more: bool,
    /// Whether some before these are forgotten already: everything may be different.
    pub is_gapped: bool,
    /// The last chunk that was made.
    pub last_chunk: ChunkId,
    /// Whether any audience is still expanded.
    pub has_producers: bool,
}

/// What a node asks of a credential's quota, which all nodes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaClaim {
    /// Whose credential.
    pub app: AppId,
    /// At which push service.
    pub provider: ProviderKind,
    /// What the credential allows.
    pub quota: Quota,
    /// For what it asks.
    pub class: TrafficClass,
    /// With less it can do nothing.
    pub least: u64,
    /// What it can use until it asks again.
    pub most: u64,
}

/// The nodes that use one store. An engine that serves one server keeps none of it.
#[async_trait]
pub trait NodeStore: AppStore {
    /// Lets a server in. Refuses (Conflict) one whose secrets are not those of the nodes that are there.
    async fn join(&self, joining: JoiningNode, now: Timestamp) -> Result<Membership, StoreError> {
        let _alone = joining;
        let instance = next_number(self.last_id().await?, now, None);
        Ok(Membership { instance, id_place: None, last_event: 0, shown: None })
    }

    /// Notes that a node lives. Where it `judges`, nodes that gave no new sign of life for so long, as this process counts the time since
    /// it first saw their last one, count as dead from then on: their leases are released as those of a crashed process are.
    async fn beat(
        &self,
        instance: u64,
        judges: Option<Duration>,
        now: Timestamp,
    ) -> Result<Heartbeat, StoreError> {
        let _nobody_else = (instance, judges, now);
        Ok(Heartbeat { is_known: true, is_first: true, ..Heartbeat::default() })
    }

    /// Lets a node go that ends: what it still has leased is released.
    async fn leave(&self, instance: u64, now: Timestamp) -> Result<(), StoreError> {
        let _nobody_else = (instance, now);
        Ok(())
    }

    /// Returns what others did after an event.
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

    /// Waits until another node may have done something since the last look. It may return for no reason; where nothing is told it never
    /// returns, and who waits looks by himself now and then.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Takes tokens from quotas, by the store's own clock, all in one transaction; reply i is how many claim i got.
    async fn draw(&self, claims: Vec<QuotaClaim>) -> Result<Vec<u64>, StoreError> {
        Ok(claims.iter().map(|claim| claim.most).collect())
    }

    /// Returns what the quota of a credential has left that all nodes share, at its last draw; `None` where nobody has drawn from it yet, or
    /// where no other node can be.
    async fn quota_level(&self, app: AppId, provider: ProviderKind) -> Result<Option<Level>, StoreError> {
        let _not_shared = (app, provider);
        Ok(None)
    }

    /// Lists the nodes that are there, the one that is there longest first; none where no other node can be.
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        Ok(Vec::new())
    }

    /// Keeps which lanes rest at a node, instead of those it reported before, for as long as it is among the nodes.
    async fn report_parked(&self, instance: u64, lanes: Vec<ParkedLane>) -> Result<(), StoreError> {
        let _nobody_asks = (instance, lanes);
        Ok(())
    }

    /// Reads what devices of the gateway may be waiting for in chunks that other nodes settled, those that are still there.
    async fn settled_chunks(&self, chunks: &[ChunkId]) -> Result<Vec<SettledChunk>, StoreError> {
        let _nobody_else = chunks;
        Ok(Vec::new())
    }

    /// Lets the other nodes hear of something.
    async fn publish_event(&self, event: NodeEvent) -> Result<(), StoreError> {
        let _nobody_else = event;
        Ok(())
    }

    /// Forgets the oldest of what nodes told each other, as far as it is too much, and what is left of quotas whose credentials are gone;
    /// returns how many rows went, at most `limit`.
    async fn prune_events(&self, limit: usize) -> Result<u64, StoreError> {
        let _nobody_else = limit;
        Ok(0)
    }
}
