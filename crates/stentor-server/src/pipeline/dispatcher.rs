//! The consumers of one provider kind and class: leases chunks from its lanes in fair turns and hands them out.
//!
//! Urgent lanes have a dispatcher of their own, and a part of the budget is never given to audiences, so that a single message
//! does not wait behind a campaign at any step. Consumers come when all are busy, up to the maximum, and go when idle,
//! down to the minimum.

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
use super::load::{self, Load};
use super::provider_table::{BreakerState, Grant, Probe, ProviderHandle, ProviderKey};
use super::shared::{PipelineContext, report_queue_failure, sleep_until};
use super::stats::DispatchMeter;
use super::store_retry::{FAILURES_MAX_COUNT, TRIES_MAX_COUNT};
use super::window::{Flow, LOOK_MIN, LaneWindow};

/// How long work waits after a call of the store or queue failed.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// Longest sleep of a dispatcher whose consumers may be idle for long enough meanwhile.
const NAP_MAX: Duration = Duration::from_millis(500);
/// Longest sleep of a dispatcher without consumers, which wakes when something is due: clocks may be set.
const DUE_NAP_MAX: Duration = Duration::from_secs(3_600);
/// The smallest window, in full chunks: one at each step of the way.
const WINDOW_MIN_CHUNKS: u64 = 4;

/// The dispatcher of one provider kind and class.
pub(crate) struct ChunkDispatcher {
    shared: Arc<PipelineContext>,
    kind: ProviderKind,
    class: TrafficClass,
    /// Consumers that the meter counts as this dispatcher's.
    counted: usize,
    meter: Arc<DispatchMeter>,
    pool: ConsumerPool,
    loads: load::LaneLoads,
    began: Instant,
    turn: usize,
}

/// A lane that may be served now, and by whom.
struct OpenLane {
    lane: Lane,
    handle: Arc<ProviderHandle>,
    probe: bool,
}

/// A ticket taken from the queue, with all that its chunk will need.
struct LeasedTicket {
    lease: QueueLease,
    hold: Reservation,
    grant: Grant,
    handle: Arc<ProviderHandle>,
    probe: Option<Probe>,
}

/// Serves a provider kind and class whenever anything is to be sent, until told to stop. In between nothing runs.
pub(crate) async fn run(shared: Arc<PipelineContext>, kind: ProviderKind, class: TrafficClass) {
    let stop = shared.stop.clone();
    while stop.run_until_cancelled(shared.due_index.needed((kind, class))).await.is_some() {
        ChunkDispatcher::new(shared.clone(), kind, class).serve_until_idle().await;
    }
}

impl ChunkDispatcher {
    fn new(shared: Arc<PipelineContext>, kind: ProviderKind, class: TrafficClass) -> Self {
        let (meter, loads) = (shared.meter(kind), load::LaneLoads::new(bulk_lanes(&shared, class)));
        let pool = ConsumerPool::new(shared.clone(), (kind, class));
        Self { shared, kind, class, counted: 0, meter, pool, loads, began: Instant::now(), turn: 0 }
    }

    /// Serves until told to stop or until there is nothing to do, then waits for its consumers.
    async fn serve_until_idle(mut self) {
        let stop = self.shared.stop.clone();
        while !stop.is_cancelled() {
            self.pool.reap_idle();
            self.count();
            if self.serve().await {
                continue;
            }
            // What becomes known after this look is found by `needed`, which looks before it waits.
            if self.pool.len() == 0 && !self.shared.due_index.knows((self.kind, self.class)) {
                break;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.shared.due_index.woken((self.kind, self.class)) => {}
                () = self.nap() => {}
            }
        }
        self.pool.finish().await;
        self.count();
    }

    /// Reports to the meter how many consumers there are.
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
        // What is in flight may let the window grow, and nobody tells of that.
        match due {
            true if self.class == TrafficClass::Bulk && self.may_get_more() => LOOK_MIN,
            false if self.pool.len() == 0 => DUE_NAP_MAX,
            _ => NAP_MAX,
        }
    }

    /// Returns whether there may be room without anybody telling: in a window, or in what all lanes have together.
    fn may_get_more(&self) -> bool {
        self.loads.may_grow() || self.shared.budget.is_careful()
    }

    /// Leases and hands out what fits; returns whether there was anything.
    async fn serve(&mut self) -> bool {
        if !self.shared.standing.may_act() {
            return false;
        }
        let now = self.shared.now();
        self.measure();
        let lanes = self.open_lanes(now).await;
        let share = (self.shared.config.lease_max_chunks / lanes.len().max(1)).max(1);
        let mut orders = Vec::new();
        for served in &lanes {
            let orders_left = self.shared.config.lease_max_chunks.saturating_sub(orders.len());
            self.order(served, share.min(orders_left), now, &mut orders).await;
        }
        // Another lane begins the next round: what is left of `lease_max_chunks` at the end of this one was not its.
        self.turn = self.turn.wrapping_add(1);
        !orders.is_empty() && self.dispatch(orders).await
    }

    /// Fits the windows of audiences to what the push services and the store do.
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

    /// Lists due lanes whose breaker is closed and whose provider is there, in turn.
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

    /// Returns whether a single message is the better probe: an audience may be all of another sender, and say so again.
    fn leaves_probe(&self, lane: Lane, now: Timestamp) -> bool {
        let single = Lane { class: TrafficClass::Urgent, ..lane };
        let is_suspected = || self.shared.providers.is_suspected((lane.app, lane.provider));
        lane.class == TrafficClass::Bulk && is_suspected() && self.shared.due_index.is_due(single, now)
    }

    /// Looks at a lane again when its breaker may close; what opens it earlier reminds of it.
    fn put_off(&self, lane: Lane, now: Timestamp, until: Timestamp) {
        if until < Timestamp::MAX {
            // Or the hint of now would bring the lane back at once, again and again.
            self.shared.due_index.take(lane, now);
            self.shared.due_index.insert(lane, until);
        }
    }

    /// Takes the tickets of a deleted app off the queue: their chunks are gone.
    async fn forget_if_app_is_gone(&self, lane: Lane, now: Timestamp) {
        // Only where the store says so: an error says nothing of the app, and the tickets would be gone.
        if matches!(self.shared.store.app(lane.app).await, Err(StoreError::NotFound(_))) {
            for class in TrafficClass::ALL {
                self.empty(Lane { class: *class, ..lane }, now).await;
            }
            // Last: a lane that is asked for once more would be remembered again.
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

    /// Takes up to `max` tickets of a lane, as far as there is room.
    async fn order(&mut self, served: &OpenLane, max: usize, now: Timestamp, orders: &mut Vec<LeasedTicket>) {
        let OpenLane { lane, handle, probe } = served;
        let key: ProviderKey = (lane.app, lane.provider);
        let Ok(mut probe) = self.probe(key, *probe, now) else { return };
        let max = if probe.is_some() { 1 } else { max };
        // Room before quota: tokens taken for nothing and given back to a full bucket are lost.
        let holds = self.reserve(lane.app, max, orders.len());
        let grants = self.grants(key, *lane, holds.len(), now);
        let places: Vec<_> = holds.into_iter().zip(grants).collect();
        if places.is_empty() {
            return;
        }
        // Before the queue is asked: a ticket that comes meanwhile leaves a hint again, and the lane is looked at
        // once more.
        self.shared.due_index.take(*lane, now);
        let lease_for = self.shared.config.lease_for();
        match self.shared.queue.lease(*lane, places.len(), lease_for, now).await {
            Ok(leases) => {
                // Every place was filled, so there may be more; places that were not give reservation and grant back
                // when they are dropped.
                if leases.len() == places.len() {
                    self.shared.due_index.insert(*lane, now);
                }
                orders.extend(leases.into_iter().zip(places).map(|(lease, (hold, grant))| LeasedTicket {
                    lease,
                    hold,
                    grant,
                    handle: handle.clone(),
                    probe: probe.take(),
                }));
            }
            Err(error) => {
                report_queue_failure(&error, "leasing tickets failed");
                self.shared.due_index.insert(*lane, now.plus(FAILURE_PAUSE));
            }
        }
    }

    /// Takes the right to pass an open breaker if it is `needed`; an error if the other class has it.
    fn probe(&self, key: ProviderKey, needed: bool, now: Timestamp) -> Result<Option<Probe>, ()> {
        if !needed {
            return Ok(None);
        }
        self.shared.providers.probe(key, now).map(Some).ok_or(())
    }

    /// Takes from the quota what up to `max` chunks need; a lane that gets nothing is looked at again when it may.
    fn grants(&self, key: ProviderKey, lane: Lane, max: usize, now: Timestamp) -> Vec<Grant> {
        let mut grants = Vec::new();
        while grants.len() < max {
            match self.shared.providers.take(key, lane.class, now) {
                Ok(grant) => grants.push(grant),
                Err(until) => {
                    // Also when some were granted: what this lane lacks is drawn before it asks again.
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

    /// Reserves room for up to `max` chunks of an app, `taken` being on their way already.
    fn reserve(&mut self, app: AppId, max: usize, taken: usize) -> Vec<Reservation> {
        let (shared, class) = (self.shared.clone(), self.class);
        let most = shared.config.chunk_max_devices as u64;
        // Those that are taken have no consumer yet, and none counts them.
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
            // An empty lane always gets one: a chunk that is larger than its window would otherwise never go.
            let fits = out == 0 || out + chunk <= limit;
            let batches =
                Batches { busy: busy + holds.len(), others, is_quick, max: self.pool.max_batches() };
            let hold = if fits && batches.has_place_for(&lane.load) {
                shared.budget.reserve(claim, chunk)
            } else {
                None
            };
            match hold {
                Some(hold) => holds.push(hold),
                None => break,
            }
        }
        holds
    }

    /// Leases the chunks of tickets and hands them to consumers; returns whether that worked.
    async fn dispatch(&mut self, orders: Vec<LeasedTicket>) -> bool {
        let shared = self.shared.clone();
        // Until each is in the table of leases: a sweep in between would find some that nobody prolongs, and take
        // them back.
        let _until_noted = shared.lease_table.taking().await;
        let chunks: Vec<_> = orders.iter().map(|order| order.lease.ticket.chunk).collect();
        let began = Instant::now();
        match shared.store.lease(&chunks, shared.lease(self.class)).await {
            Ok(replies) => {
                if self.class == TrafficClass::Bulk {
                    shared.store_latency.note_lease(began.elapsed());
                }
                self.receive(orders.into_iter().zip(replies)).await;
                true
            }
            Err(error) => {
                tracing::warn!(%error, provider = %self.kind, "chunks could not be leased together");
                self.dispatch_singly(orders).await
            }
        }
    }

    /// Leases chunk by chunk, so that one that is damaged holds up no other; returns whether all went well or aside.
    async fn dispatch_singly(&mut self, orders: Vec<LeasedTicket>) -> bool {
        let (mut over, mut untried, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut worked = false;
        for order in orders {
            if !worked && failed.len() >= FAILURES_MAX_COUNT {
                untried.push(order);
                continue;
            }
            let chunk = order.lease.ticket.chunk;
            match self.shared.store.lease(&[chunk], self.shared.lease(self.class)).await {
                Ok(replies) => {
                    worked = true;
                    self.receive(std::iter::once(order).zip(replies)).await;
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Unreadable(_))) => {
                    failed.push((order, error))
                }
                Err(error) if self.shared.quarantine(chunk, None, &error).await => over.push(order.lease),
                Err(error) => failed.push((order, error)),
            }
        }
        let failed = self.give_up_often_refused(failed, worked, &mut over).await;
        self.shared.ack(over).await;
        let well = failed.is_empty() && untried.is_empty();
        // Those that failed come later than those that were not tried, lest they are always the first.
        self.put_back(untried, FAILURE_PAUSE).await;
        self.put_back(failed, 2 * FAILURE_PAUSE).await;
        well
    }

    /// Sets chunks aside that could not be leased again and again while others could; returns the rest. While nothing can be
    /// written, that is no chunk's own fault.
    async fn give_up_often_refused(
        &self,
        failed: Vec<(LeasedTicket, StoreError)>,
        worked: bool,
        over: &mut Vec<QueueLease>,
    ) -> Vec<LeasedTicket> {
        if failed.is_empty() || !worked && self.shared.store.try_to_write().await.is_err() {
            return failed.into_iter().map(|(order, _)| order).collect();
        }
        let mut rest = Vec::new();
        for (order, error) in failed {
            let chunk = order.lease.ticket.chunk;
            // A disk that fails to write or to sync says nothing of one chunk.
            let is_its_own = !matches!(error, StoreError::Unavailable(_));
            let often = is_its_own && self.shared.note_refused(chunk) >= TRIES_MAX_COUNT;
            if often && self.shared.quarantine(chunk, None, &error).await {
                over.push(order.lease);
            } else {
                rest.push(order);
            }
        }
        rest
    }

    async fn put_back(&self, orders: Vec<LeasedTicket>, pause: Duration) {
        let due_at = self.shared.now().plus(pause);
        self.shared.nack(orders.into_iter().map(|order| order.lease).collect(), due_at).await;
    }

    /// Hands out what was leased and takes tickets off the queue whose chunks are none of it.
    async fn receive(&mut self, replies: impl Iterator<Item = (LeasedTicket, LeaseReply)>) {
        let (mut over, mut paused) = (Vec::new(), Vec::new());
        for (order, reply) in replies {
            match reply {
                LeaseReply::Leased(chunk) => self.hand_out(order, chunk),
                LeaseReply::Paused => {
                    paused.push(order.lease.ticket.chunk);
                    over.push(order.lease);
                }
                LeaseReply::Void => over.push(order.lease),
            }
        }
        self.shared.ack(over).await;
        // After the ack: of a chunk that the queue still has, publishing changes nothing.
        self.shared.publish_resumed(&paused).await;
    }

    fn hand_out(&mut self, order: LeasedTicket, chunk: Box<LeasedChunk>) {
        let LeasedTicket { lease, mut hold, grant, handle, probe } = order;
        // Reserved as a full chunk, whose size was not known; now others may have the rest.
        hold.resize(chunk.devices.len() as u64);
        if self.class == TrafficClass::Bulk {
            let lane = (chunk.message.app, chunk.provider);
            self.shared.audiences.note(lane, chunk.message.id, audiences::size(&chunk.tally));
        }
        grant
            .spend(chunk.decisions.iter().filter(|decision| **decision == SendDecision::Send).count() as u64);
        // Before it is handed over: from here on it may take as long as the push service likes.
        let guard = self.shared.lease_table.keep(chunk.id, chunk.epoch, Some(&lease));
        self.pool.hand(|busy| SendJob { chunk, lease, hold, guard, handle, probe, busy });
    }
}

/// Returns the counter of the lanes that share what audiences may have unsettled; single messages take little of it.
fn bulk_lanes(shared: &PipelineContext, class: TrafficClass) -> Arc<AtomicUsize> {
    if class == TrafficClass::Bulk { shared.budget.lanes() } else { Arc::default() }
}

/// Makes the window of a lane.
fn window(shared: &PipelineContext, now: Duration) -> LaneWindow {
    let config = &shared.config;
    let chunk = config.chunk_max_devices as u64;
    let (floor, most) = (WINDOW_MIN_CHUNKS * chunk, config.bulk_max_unsettled_deliveries());
    let window = LaneWindow::new(floor, most, now);
    if shared.recovery.deliveries > 0 { window.behind_crash(chunk) } else { window }
}

/// The batches of a dispatcher: as many as its consumers take together, and beyond them as many again for lanes that have few.
struct Batches {
    busy: usize,
    /// Other lanes that have any.
    others: usize,
    is_quick: bool,
    max: usize,
}

impl Batches {
    /// Returns whether a lane may have one more: a quick one while there is any, another while it leaves as many free, and
    /// any that has less than an equal share.
    fn has_place_for(&self, load: &Load) -> bool {
        let own = load.chunks();
        let is_free = self.busy < self.max && (self.is_quick || own < self.max - self.busy);
        is_free || self.busy < 2 * self.max && own < self.max / (self.others + 2)
    }
}
