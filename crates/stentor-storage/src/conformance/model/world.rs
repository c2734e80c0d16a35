//! The world of a model run: a store and its surroundings.

use std::collections::{BTreeMap, BTreeSet};

use stentor_core::campaign::{CampaignAction, Ledger};
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::ports::store::{Expansion, LeasedChunk, QueuedFilter, Store, StoreError};
use stentor_core::time::Timestamp;

use super::ModelRun;
use super::expected::ExpectedDeliveries;
use crate::conformance::PlainChanges;
use crate::conformance::StoreHome;
use crate::conformance::scene::{app, at, person, registration, topic};

/// Most devices of a chunk here: small, so that audiences have many.
pub(super) const CHUNK_MAX_DEVICES: usize = 3;

/// A store with all that happens around it.
pub(super) struct World<'a> {
    home: &'a dyn StoreHome,
    open: Option<Box<dyn Store>>,
    pub(super) app: AppId,
    pub(super) instance: u64,
    seconds: i64,
    numbers: u64,
    /// Present devices with their registrations.
    pub(super) devices: Vec<(DeviceId, Registration)>,
    /// All devices that ever were.
    pub(super) known: BTreeSet<DeviceId>,
    pub(super) messages: Vec<MessageId>,
    /// The tickets that a queue would hold.
    pub(super) tickets: BTreeMap<(Lane, ChunkId), Ticket>,
    /// Leases that this process holds.
    pub(super) held: Vec<HeldLease>,
    /// Leases that were lost.
    pub(super) lost: Vec<LeasedChunk>,
    pub(super) expected: ExpectedDeliveries,
    run: ModelRun,
    shown: String,
}

/// A lease and until when it holds.
pub(super) struct HeldLease {
    pub(super) chunk: LeasedChunk,
    pub(super) until: Timestamp,
}

impl<'a> World<'a> {
    pub(super) async fn new(home: &'a dyn StoreHome) -> Self {
        let store = home.open().await;
        store.create_app(&app(1)).await.expect("the store is empty");
        Self {
            home,
            open: Some(store),
            app: AppId::from_raw(1),
            instance: 1,
            seconds: 0,
            numbers: 1_000,
            devices: Vec::new(),
            known: BTreeSet::new(),
            messages: Vec::new(),
            tickets: BTreeMap::new(),
            held: Vec::new(),
            lost: Vec::new(),
            expected: ExpectedDeliveries::default(),
            run: ModelRun { observations: Vec::new(), reached: BTreeSet::new() },
            shown: String::new(),
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.open.as_deref().expect("the store is open")
    }

    pub(super) const fn now(&self) -> Timestamp {
        at(self.seconds)
    }

    pub(super) const fn pass(&mut self, seconds: i64) {
        self.seconds += seconds;
    }

    pub(super) const fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn reach(&mut self, what: &'static str) {
        self.run.reached.insert(what);
    }

    /// Adds a value to those recorded by the present step.
    pub(super) fn show(&mut self, what: &impl std::fmt::Debug) {
        self.shown.push_str(&format!("{what:?} "));
    }

    pub(super) fn into_run(self) -> ModelRun {
        self.run
    }

    pub(super) async fn step(&mut self, what: u8, which: usize, how: u8) {
        match what % 20 {
            0 | 1 => self.register(which, how).await,
            2 => self.register_again(which).await,
            3 => self.remove(which).await,
            4..=6 => self.accept(which, how).await,
            7 | 8 => self.expand(which, how).await,
            9..=11 => self.lease(1 + which % 4).await,
            12..=15 => self.settle(which, how).await,
            16 => self.act(which, how).await,
            17 => self.wait(how).await,
            18 => self.crash(how).await,
            _ => self.disturb(which, how).await,
        }
    }

    async fn register(&mut self, which: usize, how: u8) {
        let provider = if how & 1 == 0 { ProviderKind::Fcm } else { ProviderKind::Apns };
        let mut given = Vec::new();
        for _ in 0..1 + which % 5 {
            let mut one = registration(provider, &format!("address-{}", self.number()));
            one.topics = if how & 2 == 0 { Vec::new() } else { vec![topic("news")] };
            one.facts.user = (how & 12 == 0).then(|| person("ada"));
            given.push(one);
        }
        let registered = self.store().register(self.app, &given, self.now()).await.expect("registered");
        assert!(registered.iter().all(|one| one.created), "every address is new");
        let ids = registered.into_iter().map(|one| one.device);
        let devices: Vec<_> = ids.zip(given).collect();
        for (device, _) in &devices {
            assert!(self.known.insert(*device), "an id was given twice");
        }
        self.devices.extend(devices);
    }

    async fn register_again(&mut self, which: usize) {
        let Some((device, given)) = pick(&self.devices, which).cloned() else { return };
        let again = self.store().register(self.app, &[given], self.now()).await.expect("registered");
        assert_eq!((again[0].device, again[0].created), (device, false));
    }

    async fn remove(&mut self, which: usize) {
        if self.devices.is_empty() {
            return;
        }
        let (device, _) = self.devices.remove(which % self.devices.len());
        self.store().remove_device(self.app, device).await.expect("it is there");
        self.reach("a device removed");
    }

    async fn expand(&mut self, which: usize, how: u8) {
        let mut tasks = self.store().producers().await.expect("listed");
        tasks.sort_by_key(|task| (task.message, task.provider));
        let Some(task) = pick(&tasks, which).copied() else { return };
        let max_chunks = 1 + usize::from(how % 3);
        let how = Expansion { chunk_max_devices: CHUNK_MAX_DEVICES, max_chunks, now: self.now() };
        let step = self.store().expand(task, how).await.expect("expanded");
        self.show(&step.tickets.len());
        self.publish(step.tickets);
    }

    async fn act(&mut self, which: usize, how: u8) {
        let Some(message) = pick(&self.messages, which).copied() else { return };
        let action = CampaignAction::ALL[usize::from(how) % CampaignAction::ALL.len()];
        let before = self.ledger(message).await.campaign;
        let now = self.now();
        match self.store().act(self.app, message.into(), action, now).await {
            Ok((after, tickets)) => {
                assert!(before.state.after(action, true).is_some(), "{action} of {} done", before.state);
                self.reach(after.state.as_str());
                self.publish(tickets);
            }
            Err(StoreError::Conflict(_)) => {
                assert_eq!(before.state.after(action, true), None, "{action} of {} refused", before.state);
            }
            Err(other) => panic!("{action}: {other}"),
        }
    }

    /// Advances the time, starts due campaigns and sweeps.
    pub(super) async fn wait(&mut self, how: u8) {
        self.pass(i64::from(how) % 40);
        let now = self.now();
        let started = self.store().start_due(10, CHUNK_MAX_DEVICES, now).await.expect("started").tickets;
        self.publish(started);
        let swept = self.store().sweep(1_000, now).await.expect("swept");
        if !swept.expired.is_empty() {
            self.reach("chunks expired");
        }
        self.tickets.retain(|(_, chunk), _| !swept.expired.contains(chunk));
        let (ended, held) =
            std::mem::take(&mut self.held).into_iter().partition(|held: &HeldLease| held.until <= now);
        self.held = held;
        for HeldLease { chunk, .. } in ended {
            self.reach("a lease ran out");
            self.lose(chunk, how);
        }
        self.publish(swept.released);
    }

    /// Dies with all leases, and comes up as another process.
    async fn crash(&mut self, how: u8) {
        self.open = None;
        self.open = Some(self.home.open().await);
        self.instance += 1;
        let (recovery, _) = self.store().recover(self.instance, self.now()).await.expect("recovered");
        let deliveries: usize = self.held.iter().map(|held| held.chunk.devices.len()).sum();
        assert_eq!((recovery.chunks, recovery.deliveries), (self.held.len() as u64, deliveries as u64));
        for HeldLease { chunk, .. } in std::mem::take(&mut self.held) {
            self.reach("a crash with leases");
            self.lose(chunk, how);
        }
        self.tickets.clear();
        let queued =
            self.store().queued(QueuedFilter::After(ChunkId::from_raw(0), 100_000)).await.expect("listed");
        self.publish(queued);
    }

    pub(super) fn lose(&mut self, chunk: LeasedChunk, how: u8) {
        self.expected.lose(&chunk, how);
        self.lost.push(chunk);
    }

    /// Publishes tickets like a queue: existing tickets stay.
    pub(super) fn publish(&mut self, tickets: Vec<Ticket>) {
        for ticket in tickets {
            self.tickets.entry((ticket.lane, ticket.chunk)).or_insert(ticket);
        }
    }

    pub(super) async fn ledger(&self, message: MessageId) -> Ledger {
        let ledger = self.store().ledger(self.app, message.into()).await.expect("a ledger");
        assert!(ledger.is_balanced(), "the books do not balance: {ledger:?}");
        ledger
    }

    /// Records all books, and checks that no queued chunk is without a ticket.
    pub(super) async fn observe(&mut self) {
        for message in self.messages.clone() {
            let ledger = self.ledger(message).await;
            self.expected.check_bound(&ledger);
            self.shown.push_str(&described(&ledger));
        }
        for ticket in
            self.store().queued(QueuedFilter::After(ChunkId::from_raw(0), 100_000)).await.expect("listed")
        {
            let known = self.tickets.contains_key(&(ticket.lane, ticket.chunk));
            assert!(known, "{ticket:?} is queued and was not given to be published");
        }
        let shown = std::mem::take(&mut self.shown);
        self.run.observations.push(shown);
    }
}

/// Chooses one, if there is any.
pub(super) fn pick<T>(from: &[T], which: usize) -> Option<&T> {
    from.get(which.checked_rem(from.len())?)
}

/// Describes the books, without the parts in which engines may differ.
fn described(ledger: &Ledger) -> String {
    let mut text = format!("\n{} {:?}", ledger.campaign.state, ledger.campaign.stop.is_some());
    for books in ledger.providers.iter().filter(|books| books.audience > 0) {
        let mut reasons = books.reasons.clone();
        reasons.retain(|one| one.count > 0 && one.reason.code() != 0);
        reasons.sort_by_key(|one| (one.state, one.reason));
        let counts = (books.attempts, books.ambiguous, books.duplicate_bound, books.audience_complete);
        let stop = books.stop.as_ref().map(|stop| stop.reason);
        text.push_str(&format!(" {} {:?} {counts:?} {reasons:?} {stop:?}", books.provider, books.tally));
    }
    text
}
