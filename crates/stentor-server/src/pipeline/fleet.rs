//! The consumers of one provider kind and class: leases chunks from its lanes in fair turns and hands them out.
//!
//! Urgent lanes have a fleet of their own, and a part of the budget is never given to audiences, so that a single message
//! does not wait behind a campaign at any step. Consumers come when all are busy, up to the maximum, and go when idle,
//! down to the minimum.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::chunk::{Class, Lane};
use stentor_core::device::ProviderKind;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::{Fate, LeaseReply, LeasedChunk, StoreError};
use tokio::time::Instant;

use super::budget::Reservation;
use super::consumer::Job;
use super::crew::Crew;
use super::insist::{FAILURES_MAX_COUNT, TRIES_MAX_COUNT};
use super::lanes::{Grant, Key, Look, Outlet, Probe};
use super::shared::{Shared, sleep_until};
use super::stats::FleetMeter;
use super::window::{LOOK_MIN, Window};

/// How long work waits after a call of the store or queue failed.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// Longest sleep of a fleet that has consumers or hints.
const NAP_MAX: Duration = Duration::from_millis(500);
/// Longest sleep of a fleet that has neither.
const IDLE_NAP_MAX: Duration = Duration::from_secs(3_600);
/// The smallest window, in full chunks: one at each step of the way.
const WINDOW_MIN_CHUNKS: u64 = 4;

/// The fleet of one provider kind and class.
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    kind: ProviderKind,
    class: Class,
    /// Consumers that the meter counts as this fleet's.
    counted: usize,
    meter: Arc<FleetMeter>,
    crew: Crew,
    window: Window,
    began: Instant,
    turn: usize,
}

/// A lane that may be served now, and by whom.
struct Served {
    lane: Lane,
    outlet: Arc<Outlet>,
    probe: bool,
}

/// A ticket taken from the queue, with all that its chunk will need.
struct Order {
    lease: QueueLease,
    hold: Reservation,
    grant: Grant,
    outlet: Arc<Outlet>,
    probe: Option<Probe>,
}

impl Fleet {
    pub(crate) fn new(shared: Arc<Shared>, kind: ProviderKind, class: Class) -> Self {
        let config = &shared.config;
        let floor = WINDOW_MIN_CHUNKS * config.chunk_max_devices as u64;
        let mut window = Window::new(floor, config.bulk_max_unsettled_deliveries(), Duration::ZERO);
        if shared.recovery.deliveries > 0 {
            window = window.behind_crash(config.chunk_max_devices as u64);
        }
        let meter = shared.meter(kind);
        let crew = Crew::new(shared.clone(), (kind, class));
        Self { shared, kind, class, counted: 0, meter, crew, window, began: Instant::now(), turn: 0 }
    }

    /// Serves until told to stop, then waits for its consumers.
    pub(crate) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        while !stop.is_cancelled() {
            self.crew.let_idle_go();
            self.count();
            if self.serve().await {
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.shared.agenda.woken((self.kind, self.class)) => {}
                () = self.nap() => {}
            }
        }
        self.crew.finish().await;
        self.count();
    }

    /// Tells the meter how many consumers there are.
    fn count(&mut self) {
        let before = std::mem::replace(&mut self.counted, self.crew.len());
        self.meter.consumers.fetch_add(self.counted, Ordering::Relaxed);
        self.meter.consumers.fetch_sub(before, Ordering::Relaxed);
    }

    /// Sleeps until something is due, a gate may open, or a consumer has been idle for long enough.
    async fn nap(&self) {
        let now = self.shared.now();
        let fleet = (self.kind, self.class);
        let next = self.shared.agenda.next(fleet, now).unwrap_or(Timestamp::MAX);
        let due = !self.shared.agenda.due(fleet, now).is_empty();
        sleep_until(&*self.shared.clock, next, self.nap_max(due)).await;
    }

    fn nap_max(&self, due: bool) -> Duration {
        // What is in flight may let the window grow, and nobody tells of that.
        let may_grow = self.window.may_grow() && self.meter.unsettled.count(Class::Bulk) > 0;
        match due {
            true if self.class == Class::Bulk && may_grow => LOOK_MIN,
            false if self.crew.len() == 0 => IDLE_NAP_MAX,
            _ => NAP_MAX,
        }
    }

    /// Leases and hands out what fits; tells whether there was anything.
    async fn serve(&mut self) -> bool {
        let now = self.shared.now();
        self.measure();
        let lanes = self.open_lanes(now).await;
        let share = (self.shared.config.lease_max_chunks / lanes.len().max(1)).max(1);
        let mut orders = Vec::new();
        for served in &lanes {
            let orders_left = self.shared.config.lease_max_chunks.saturating_sub(orders.len());
            self.order(served, share.min(orders_left), now, &mut orders).await;
        }
        self.turn = self.turn.wrapping_add(1);
        !orders.is_empty() && self.dispatch(orders).await
    }

    /// Fits the window of audiences to what the push service and the store do.
    fn measure(&mut self) {
        let elapsed = self.began.elapsed();
        if self.class == Class::Bulk && self.window.is_due(elapsed) {
            let sender = self.shared.lanes.provider_stats(self.kind);
            let turnaround = sender.latency_floor + self.shared.turnaround.get();
            self.window.observe(elapsed, self.meter.unsettled.settled(), turnaround);
            self.window.make_room(elapsed, sender.inflight);
            self.window.raise(self.meter.unsettled.settled());
            self.meter.window.store(self.window.limit(), Ordering::Relaxed);
        }
    }

    /// Lists due lanes whose gate is open and whose provider is there, in turn.
    async fn open_lanes(&self, now: Timestamp) -> Vec<Served> {
        let mut lanes = self.shared.agenda.due((self.kind, self.class), now);
        let turn = self.turn % lanes.len().max(1);
        lanes.rotate_left(turn);
        let mut open: Vec<Served> = Vec::new();
        for lane in lanes {
            let key = (lane.app, lane.provider);
            let probe = match self.shared.lanes.look(key, now) {
                Look::Shut(until) => {
                    self.put_off(lane, now, until);
                    continue;
                }
                Look::Open => false,
                Look::Probe if open.iter().any(|other| other.lane.app == lane.app) => continue,
                Look::Probe => true,
            };
            match self.shared.lanes.outlet(key, now).await {
                Some(outlet) => open.push(Served { lane, outlet, probe }),
                None => self.forget_if_app_is_gone(lane, now).await,
            }
        }
        open
    }

    /// Looks at a lane again when its gate may open; what opens it earlier reminds of it.
    fn put_off(&self, lane: Lane, now: Timestamp, until: Timestamp) {
        if until < Timestamp::MAX {
            self.shared.agenda.take(lane, now);
            self.shared.agenda.insert(lane, until);
        }
    }

    /// Takes the tickets of a deleted app off the queue: their chunks are gone.
    async fn forget_if_app_is_gone(&self, lane: Lane, now: Timestamp) {
        if matches!(self.shared.store.app(lane.app).await, Err(StoreError::NotFound(_))) {
            for class in Class::ALL {
                self.empty(Lane { class: *class, ..lane }, now).await;
            }
        }
    }

    async fn empty(&self, lane: Lane, now: Timestamp) {
        self.shared.agenda.take(lane, now);
        let (max, lease_for) = (self.shared.config.lease_max_chunks, self.shared.config.lease_for());
        loop {
            match self.shared.queue.lease(lane, max, lease_for, now).await {
                Ok(leases) if !leases.is_empty() => self.shared.ack(leases).await,
                _ => return,
            }
        }
    }

    /// Takes up to `max` tickets of a lane, as far as there is room.
    async fn order(&mut self, served: &Served, max: usize, now: Timestamp, orders: &mut Vec<Order>) {
        let Served { lane, outlet, probe } = served;
        let key: Key = (lane.app, lane.provider);
        let Ok(mut probe) = self.probe(key, *probe, now) else { return };
        let max = if probe.is_some() { 1 } else { max };
        let holds = self.reserve(lane.class, max, orders.len());
        let grants = self.grants(key, *lane, holds.len(), now);
        let places: Vec<_> = holds.into_iter().zip(grants).collect();
        if places.is_empty() {
            return;
        }
        self.shared.agenda.take(*lane, now);
        let lease_for = self.shared.config.lease_for();
        match self.shared.queue.lease(*lane, places.len(), lease_for, now).await {
            Ok(leases) => {
                if leases.len() == places.len() {
                    self.shared.agenda.insert(*lane, now);
                }
                orders.extend(leases.into_iter().zip(places).map(|(lease, (hold, grant))| Order {
                    lease,
                    hold,
                    grant,
                    outlet: outlet.clone(),
                    probe: probe.take(),
                }));
            }
            Err(error) => {
                tracing::warn!(%error, provider = %self.kind, "leasing tickets failed");
                self.shared.agenda.insert(*lane, now.plus(FAILURE_PAUSE));
            }
        }
    }

    /// Takes the right to pass a shut gate if it is `needed`; an error if the other class has it.
    fn probe(&self, key: Key, needed: bool, now: Timestamp) -> Result<Option<Probe>, ()> {
        if !needed {
            return Ok(None);
        }
        self.shared.lanes.probe(key, now).map(Some).ok_or(())
    }

    /// Takes from the quota what up to `max` chunks need; a lane that gets nothing is looked at again when it may.
    fn grants(&self, key: Key, lane: Lane, max: usize, now: Timestamp) -> Vec<Grant> {
        let mut grants = Vec::new();
        while grants.len() < max {
            match self.shared.lanes.take(key, lane.class, now) {
                Ok(grant) => grants.push(grant),
                Err(until) => {
                    if grants.is_empty() {
                        self.shared.lanes.note_wait(key, until, now);
                        self.put_off(lane, now, until);
                    }
                    break;
                }
            }
        }
        grants
    }

    /// Reserves room for up to `max` chunks, `taken` being on their way already.
    fn reserve(&mut self, class: Class, max: usize, taken: usize) -> Vec<Reservation> {
        let chunk = self.shared.config.chunk_max_devices as u64;
        let mut holds = Vec::new();
        let free = self.free_batches().saturating_sub(taken);
        while holds.len() < max {
            let out = self.meter.unsettled.count(class);
            let fits = class == Class::Urgent || out == 0 || out + chunk <= self.window.limit();
            let hold = if fits && holds.len() < free {
                self.shared.budget.reserve(&self.meter.unsettled, class, chunk)
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

    /// Counts the batches that may still be handed out.
    fn free_batches(&self) -> usize {
        let config = &self.shared.config;
        (config.consumers_max * config.consumer_max_batches).saturating_sub(self.crew.busy())
    }

    /// Leases the chunks of tickets and hands them to consumers; tells whether that worked.
    async fn dispatch(&mut self, orders: Vec<Order>) -> bool {
        let shared = self.shared.clone();
        let _until_noted = shared.held.taking().await;
        let chunks: Vec<_> = orders.iter().map(|order| order.lease.ticket.chunk).collect();
        let began = Instant::now();
        match shared.store.lease(&chunks, shared.lease(self.class)).await {
            Ok(replies) => {
                if self.class == Class::Bulk {
                    shared.turnaround.note_lease(began.elapsed());
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

    /// Leases chunk by chunk, so that one that is damaged holds up no other; tells whether all went well or aside.
    async fn dispatch_singly(&mut self, orders: Vec<Order>) -> bool {
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
                Err(error @ StoreError::Unavailable(_)) => failed.push((order, error)),
                Err(error) if self.shared.set_aside(chunk, None, &error).await => over.push(order.lease),
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

    /// Sets chunks aside that could not be leased again and again while others could; gives the rest. While nothing can be
    /// written, that is no chunk's own fault.
    async fn give_up_often_refused(
        &self,
        failed: Vec<(Order, StoreError)>,
        worked: bool,
        over: &mut Vec<QueueLease>,
    ) -> Vec<Order> {
        if failed.is_empty() || !worked && self.shared.store.try_to_write().await.is_err() {
            return failed.into_iter().map(|(order, _)| order).collect();
        }
        let mut rest = Vec::new();
        for (order, error) in failed {
            let chunk = order.lease.ticket.chunk;
            let often = self.shared.note_refused(chunk) >= TRIES_MAX_COUNT;
            if often && self.shared.set_aside(chunk, None, &error).await {
                over.push(order.lease);
            } else {
                rest.push(order);
            }
        }
        rest
    }

    async fn put_back(&self, orders: Vec<Order>, pause: Duration) {
        let due_at = self.shared.now().plus(pause);
        self.shared.nack(orders.into_iter().map(|order| order.lease).collect(), due_at).await;
    }

    /// Hands out what was leased and takes tickets off the queue whose chunks are none of it.
    async fn receive(&mut self, replies: impl Iterator<Item = (Order, LeaseReply)>) {
        let mut over = Vec::new();
        for (order, reply) in replies {
            match reply {
                LeaseReply::Leased(chunk) => self.hand_out(order, chunk),
                LeaseReply::Paused | LeaseReply::Void => over.push(order.lease),
            }
        }
        self.shared.ack(over).await;
    }

    fn hand_out(&mut self, order: Order, chunk: Box<LeasedChunk>) {
        let Order { lease, mut hold, grant, outlet, probe } = order;
        hold.resize(chunk.devices.len() as u64);
        grant.spend(chunk.fates.iter().filter(|fate| **fate == Fate::Send).count() as u64);
        let kept = self.shared.held.keep(chunk.id, chunk.epoch, &lease);
        self.crew.hand(Job { chunk, lease, hold, kept, outlet, probe });
    }
}
