//! The dispatcher of one provider kind and class: leases chunks from its lanes in fair turns and hands them to its consumers.
//!
//! Urgent lanes have a dispatcher of their own, and a part of the budget is reserved for them, so that a single message never waits behind
//! a campaign. Consumers are added when all are busy, up to the maximum, and removed when idle, down to the minimum.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stentor_core::chunk::{Lane, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::{LeaseReply, LeasedChunk, SendDecision, StoreError};
use stentor_core::time::Timestamp;
use tokio::time::Instant;

use super::audiences;
use super::budget::{Claim, Reservation};
use super::consumer::SendJob;
use super::consumer_pool::ConsumerPool;
use super::lease_table::LeaseGuard;
use super::load::{self, Batches};
use super::provider_table::{BreakerState, Grant, Probe, ProviderHandle, ProviderKey};
use super::settler_inbox::ChunkPlace;
use super::shared::{PipelineContext, report_queue_failure, sleep_until};
use super::stats::DispatchMeter;
use super::window::{Flow, LOOK_MIN, LaneWindow};

mod leased;
mod singly;

/// Pause after a failed call of the store or the queue.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// Longest sleep of a dispatcher with consumers, which may become idle for long enough during it.
const NAP_MAX: Duration = Duration::from_millis(500);
/// Longest sleep of a dispatcher without consumers. It wakes when something is due; the limit exists because the clock may be set.
const DUE_NAP_MAX: Duration = Duration::from_secs(3_600);
/// The smallest window, in full chunks: one for each step of the pipeline.
const WINDOW_MIN_CHUNKS: u64 = 4;

/// The dispatcher of one provider kind and class.
pub(crate) struct ChunkDispatcher {
    shared: Arc<PipelineContext>,
    kind: ProviderKind,
    class: TrafficClass,
    /// Consumers of this dispatcher that the meter counts.
    counted: usize,
    meter: Arc<DispatchMeter>,
    pool: ConsumerPool,
    loads: load::LaneLoads,
    began: Instant,
    turn: usize,
}

/// A lane that may be served now, with its provider.
struct OpenLane {
    lane: Lane,
    handle: Arc<ProviderHandle>,
    probe: bool,
}

/// A ticket taken from the queue, with the resources that its chunk needs.
struct LeasedTicket {
    lease: QueueLease,
    hold: Reservation,
    grant: Grant,
    handle: Arc<ProviderHandle>,
    probe: Option<Probe>,
}

/// The resources with which a leased chunk is sent.
struct Resources {
    place: ChunkPlace,
    hold: Reservation,
    grant: Grant,
    handle: Arc<ProviderHandle>,
    probe: Option<Probe>,
}

/// Serves a provider kind and class whenever there is work, until the pipeline stops. No task runs in between.
pub(crate) async fn run(shared: Arc<PipelineContext>, kind: ProviderKind, class: TrafficClass) {
    let stop = shared.stop.clone();
    let needed = async || {
        tokio::select! {
            () = shared.due_index.needed((kind, class)) => {}
            () = shared.leased_inbox.arrived(kind), if class == TrafficClass::Urgent => {}
        }
    };
    while stop.run_until_cancelled(needed()).await.is_some() {
        ChunkDispatcher::new(shared.clone(), kind, class).serve_until_idle().await;
    }
}

impl ChunkDispatcher {
    fn new(shared: Arc<PipelineContext>, kind: ProviderKind, class: TrafficClass) -> Self {
        let (meter, loads) = (shared.meter(kind), load::LaneLoads::new(bulk_lanes(&shared, class)));
        let pool = ConsumerPool::new(shared.clone(), (kind, class));
        Self { shared, kind, class, counted: 0, meter, pool, loads, began: Instant::now(), turn: 0 }
    }

    /// Serves until the pipeline stops or no work is left, then waits for its consumers.
    async fn serve_until_idle(mut self) {
        let stop = self.shared.stop.clone();
        while !stop.is_cancelled() {
            self.pool.reap_idle();
            self.count();
            if self.serve().await {
                continue;
            }
            // Work that arrives after this check is found by `needed`, which checks before it waits.
            if self.pool.len() == 0 && !self.has_work() {
                break;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.shared.leased_inbox.arrived(self.kind), if self.takes_leased() => {}
                () = self.shared.due_index.woken((self.kind, self.class)) => {}
                () = self.nap() => {}
            }
        }
        self.pool.finish().await;
        self.count();
    }

    fn has_work(&self) -> bool {
        let waits = self.takes_leased() && !self.shared.leased_inbox.is_empty(self.kind);
        waits || self.shared.due_index.knows((self.kind, self.class))
    }

    /// Returns true if chunks that are leased already come to this dispatcher: they are single messages.
    fn takes_leased(&self) -> bool {
        self.class == TrafficClass::Urgent
    }

    /// Reports the number of consumers to the meter.
    fn count(&mut self) {
        let before = std::mem::replace(&mut self.counted, self.pool.len());
        self.meter.consumers.fetch_add(self.counted, Ordering::Relaxed);
        self.meter.consumers.fetch_sub(before, Ordering::Relaxed);
    }

    /// Sleeps until something is due, a breaker may close, or a consumer has been idle for long enough.
    async fn nap(&self) {
        let now = self.shared.now();
        let dispatcher = (self.kind, self.class);
        let next = self.shared.due_index.next(dispatcher, now).unwrap_or(Timestamp::MAX);
        let due = !self.shared.due_index.due(dispatcher, now).is_empty();
        sleep_until(&*self.shared.clock, next, self.nap_max(due)).await;
    }

    fn nap_max(&self, due: bool) -> Duration {
        // Batches in flight may let the window grow, and that sends no wake-up.
        match due {
            true if self.class == TrafficClass::Bulk && self.may_get_more() => LOOK_MIN,
            false if self.pool.len() == 0 => DUE_NAP_MAX,
            _ => NAP_MAX,
        }
    }

    /// Returns true if room may appear without a wake-up: in a window, or in the shared limit after a crash.
    fn may_get_more(&self) -> bool {
        self.loads.may_grow() || self.shared.budget.is_careful()
    }

    /// Leases and dispatches the chunks that fit. Returns true if there were any.
    async fn serve(&mut self) -> bool {
        if !self.shared.standing.may_act() {
            return false;
        }
        let now = self.shared.now();
        let has_more_leased = self.takes_leased() && self.serve_leased(now).await;
        self.measure();
        let lanes = self.open_lanes(now).await;
        let share = (self.shared.config.lease_max_chunks / lanes.len().max(1)).max(1);
        let mut leased = Vec::new();
        for open_lane in &lanes {
            let orders_left = self.shared.config.lease_max_chunks.saturating_sub(leased.len());
            self.order(open_lane, share.min(orders_left), now, &mut leased).await;
        }
        // Another lane goes first in the next round, because the last lanes of this one may not have got their share of `lease_max_chunks`.
        self.turn = self.turn.wrapping_add(1);
        (!leased.is_empty() && self.dispatch(leased).await) || has_more_leased
    }

    /// Adjusts the windows of audiences to the measured performance of the push services and the store.
    fn measure(&mut self) {
        let now = self.began.elapsed();
        let (shared, kind, class) = (&self.shared, self.kind, self.class);
        self.loads.measure(now, |app, window, load| {
            if class == TrafficClass::Bulk {
                let sender = shared.providers.sender_stats((app, kind));
                let turnaround = sender.latency_floor + shared.store_latency.get();
                let flow = Flow { rate_per_second: sender.delivery_rate, inflight: sender.inflight };
                window.fit(now, flow, turnaround);
                window.raise(load.settled());
            }
        });
        if self.class == TrafficClass::Bulk {
            let most = self.shared.config.bulk_max_unsettled_deliveries();
            self.meter.window.store(self.loads.windows().min(most), Ordering::Relaxed);
        }
    }

    /// Lists the due lanes with a closed breaker and an available provider, in turn.
    async fn open_lanes(&self, now: Timestamp) -> Vec<OpenLane> {
        let mut lanes = self.shared.due_index.due((self.kind, self.class), now);
        let turn = self.turn % lanes.len().max(1);
        lanes.rotate_left(turn);
        let mut open: Vec<OpenLane> = Vec::new();
        for lane in lanes {
            let key = (lane.app, lane.provider);
            let probe = match self.shared.providers.state(key, now) {
                BreakerState::Open(until) => {
                    self.put_off(lane, now, until);
                    continue;
                }
                BreakerState::Closed => false,
                BreakerState::HalfOpen if self.leaves_probe(lane, now) => continue,
                BreakerState::HalfOpen => true,
            };
            match self.shared.providers.handle(key, now).await {
                Some(handle) => open.push(OpenLane { lane, handle, probe }),
                None => self.forget_if_app_is_gone(lane, now).await,
            }
        }
        open
    }

    /// Returns true if the probe is left to a single message, which is the better probe: an audience may consist of devices of another
    /// sender, and be refused again.
    fn leaves_probe(&self, lane: Lane, now: Timestamp) -> bool {
        let single = Lane { class: TrafficClass::Urgent, ..lane };
        let is_suspected = || self.shared.providers.is_suspected((lane.app, lane.provider));
        lane.class == TrafficClass::Bulk && is_suspected() && self.shared.due_index.is_due(single, now)
    }

    /// Defers a lane until its breaker may close. If the breaker closes earlier, the lane is noted again.
    fn put_off(&self, lane: Lane, now: Timestamp, until: Timestamp) {
        if until < Timestamp::MAX {
            // Otherwise the present due time would bring the lane back at once, repeatedly.
            self.shared.due_index.take(lane, now);
            self.shared.due_index.insert(lane, until);
        }
    }

    /// Removes the tickets of a deleted app from the queue; their chunks no longer exist.
    async fn forget_if_app_is_gone(&self, lane: Lane, now: Timestamp) {
        // Only if the store reports that the app does not exist. Other errors prove nothing, and the tickets would be lost.
        if matches!(self.shared.store.app(lane.app).await, Err(StoreError::NotFound(_))) {
            for class in TrafficClass::ALL {
                self.empty(Lane { class: *class, ..lane }, now).await;
            }
            // Last, because looking up a lane would record it again.
            self.shared.providers.forget(&HashSet::from([lane.app]));
        }
    }

    async fn empty(&self, lane: Lane, now: Timestamp) {
        self.shared.due_index.take(lane, now);
        let (max, lease_for) = (self.shared.config.lease_max_chunks, self.shared.config.lease_for());
        loop {
            match self.shared.queue.lease(lane, max, lease_for, now).await {
                Ok(leases) if !leases.is_empty() => self.shared.ack(leases).await,
                _ => return,
            }
        }
    }

    /// Leases up to `max` tickets of a lane within the window and the budget.
    async fn order(
        &mut self,
        open_lane: &OpenLane,
        max: usize,
        now: Timestamp,
        leased: &mut Vec<LeasedTicket>,
    ) {
        let OpenLane { lane, handle, probe } = open_lane;
        let key: ProviderKey = (lane.app, lane.provider);
        let Ok(mut probe) = self.probe(key, *probe, now) else { return };
        let max = if probe.is_some() { 1 } else { max };
        // Room is reserved before the quota is drawn: unused tokens returned to a full bucket are lost.
        let holds = self.reserve(lane.app, max, leased.len());
        let grants = self.grants(key, *lane, holds.len(), now);
        let places: Vec<_> = holds.into_iter().zip(grants).collect();
        if places.is_empty() {
            return;
        }
        // Before the queue is read: a ticket that arrives in between adds a due time again, and the lane is served once more.
        self.shared.due_index.take(*lane, now);
        let lease_for = self.shared.config.lease_for();
        match self.shared.queue.lease(*lane, places.len(), lease_for, now).await {
            Ok(leases) => {
                // Every place was filled, so there may be more tickets. Places that were not filled return their reservation and grant when
                // dropped.
                if leases.len() == places.len() {
                    self.shared.due_index.insert(*lane, now);
                }
                leased.extend(leases.into_iter().zip(places).map(|(lease, (reservation, grant))| {
                    LeasedTicket {
                        lease,
                        hold: reservation,
                        grant,
                        handle: handle.clone(),
                        probe: probe.take(),
                    }
                }));
            }
            Err(error) => {
                report_queue_failure(&error, "leasing tickets failed");
                self.shared.due_index.insert(*lane, now.plus(FAILURE_PAUSE));
            }
        }
    }

    /// Acquires the probe of a half-open breaker if it is `needed`. Fails if the other class holds it.
    fn probe(&self, key: ProviderKey, needed: bool, now: Timestamp) -> Result<Option<Probe>, ()> {
        if !needed {
            return Ok(None);
        }
        self.shared.providers.probe(key, now).map(Some).ok_or(())
    }

    /// Draws the quota for up to `max` chunks. A lane that gets none is deferred until the quota allows more.
    fn grants(&self, key: ProviderKey, lane: Lane, max: usize, now: Timestamp) -> Vec<Grant> {
        let mut grants = Vec::new();
        while grants.len() < max {
            match self.shared.providers.take(key, lane.class, now) {
                Ok(grant) => grants.push(grant),
                Err(until) => {
                    // Also if some were granted: the missing quota is then drawn before the next attempt.
                    self.shared.wakeups.quotas.notify_one();
                    if grants.is_empty() {
                        self.shared.providers.note_wait(key, until, now);
                        self.put_off(lane, now, until);
                    }
                    break;
                }
            }
        }
        grants
    }

    /// Reserves room for up to `max` chunks of an app. `taken` chunks are already leased but not handed to a consumer.
    fn reserve(&mut self, app: AppId, max: usize, taken: usize) -> Vec<Reservation> {
        let (shared, class) = (self.shared.clone(), self.class);
        let most = shared.config.chunk_max_devices as u64;
        // Leased chunks have no consumer yet, so the pool does not count them.
        let (busy, others) = (self.pool.busy() + taken, self.loads.others(app));
        let now = self.began.elapsed();
        let lane = self.loads.of(app, now, || window(&shared, now));
        let is_quick = lane.is_quick();
        let (chunk, limit) = match class {
            TrafficClass::Bulk => {
                (lane.load.expected_chunk(most), lane.window.limit().min(shared.share((app, self.kind))))
            }
            TrafficClass::Urgent => (most, u64::MAX),
        };
        let claim = Claim { dispatcher: &self.meter.unsettled, load: &lane.load, class, is_quick };
        let mut holds = Vec::new();
        while holds.len() < max {
            let out = lane.load.deliveries();
            // An empty lane always gets one chunk; otherwise a chunk larger than its window would never be sent.
            let fits = out == 0 || out + chunk <= limit;
            let batches =
                Batches { busy: busy + holds.len(), others, is_quick, max: self.pool.max_batches() };
            let reservation = if fits && batches.has_place_for(&lane.load) {
                shared.budget.reserve(claim, chunk)
            } else {
                None
            };
            match reservation {
                Some(reservation) => holds.push(reservation),
                None => break,
            }
        }
        holds
    }

    /// Leases the chunks of tickets and hands them to consumers. Returns true on success.
    async fn dispatch(&mut self, leased: Vec<LeasedTicket>) -> bool {
        let shared = self.shared.clone();
        // Held until every lease is in the lease table. A concurrent sweep would otherwise take back leases that are not extended yet.
        let _until_noted = shared.lease_table.taking().await;
        let chunks: Vec<_> = leased.iter().map(|order| order.lease.ticket.chunk).collect();
        let began = Instant::now();
        match shared.store.lease(&chunks, shared.lease(self.class)).await {
            Ok(replies) => {
                if self.class == TrafficClass::Bulk {
                    shared.store_latency.note_lease(began.elapsed());
                }
                self.receive(leased.into_iter().zip(replies)).await;
                true
            }
            Err(error) => {
                tracing::warn!(%error, provider = %self.kind, "chunks could not be leased together");
                self.dispatch_singly(leased).await
            }
        }
    }

    /// Hands leased chunks to consumers and removes the tickets of the others from the queue.
    async fn receive(&mut self, replies: impl Iterator<Item = (LeasedTicket, LeaseReply)>) {
        let (mut finished, mut paused) = (Vec::new(), Vec::new());
        for (order, reply) in replies {
            match reply {
                LeaseReply::Leased(chunk) => {
                    let LeasedTicket { lease, hold, grant, handle, probe } = order;
                    // Before it is handed over: from here on, sending may take any length of time.
                    let guard = self.shared.lease_table.keep(chunk.id, chunk.epoch, Some(&lease));
                    let place = ChunkPlace::Queue(lease);
                    self.hand_out(Resources { place, hold, grant, handle, probe }, chunk, guard);
                }
                LeaseReply::Paused => {
                    paused.push(order.lease.ticket.chunk);
                    finished.push(order.lease);
                }
                LeaseReply::Void => finished.push(order.lease),
            }
        }
        self.shared.ack(finished).await;
        // After the ack, because publishing a chunk that is still in the queue has no effect.
        self.shared.publish_resumed(&paused).await;
    }

    /// Hands a leased chunk with its resources to a consumer.
    fn hand_out(&mut self, resources: Resources, chunk: Box<LeasedChunk>, guard: LeaseGuard) {
        let Resources { place, hold: mut reservation, grant, handle, probe } = resources;
        // A full chunk was reserved before the size was known; the rest is freed now.
        reservation.resize(chunk.devices.len() as u64);
        if self.class == TrafficClass::Bulk {
            let lane = (chunk.message.app, chunk.provider);
            self.shared.audiences.note(lane, chunk.message.id, audiences::size(&chunk.tally));
        }
        grant
            .spend(chunk.decisions.iter().filter(|decision| **decision == SendDecision::Send).count() as u64);
        self.pool.hand(|busy| SendJob { chunk, place, hold: reservation, guard, handle, probe, busy });
    }
}

/// Returns the shared counter of lanes of audiences. Lanes of single messages are not counted, because they use little of the budget.
fn bulk_lanes(shared: &PipelineContext, class: TrafficClass) -> Arc<AtomicUsize> {
    if class == TrafficClass::Bulk { shared.budget.lanes() } else { Arc::default() }
}

/// Creates the window of a lane.
fn window(shared: &PipelineContext, now: Duration) -> LaneWindow {
    let config = &shared.config;
    let chunk = config.chunk_max_devices as u64;
    let (floor, most) = (WINDOW_MIN_CHUNKS * chunk, config.bulk_max_unsettled_deliveries());
    let window = LaneWindow::new(floor, most, now);
    if shared.recovery.deliveries > 0 { window.behind_crash(chunk) } else { window }
}
