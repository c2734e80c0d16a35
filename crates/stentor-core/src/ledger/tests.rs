//! Random events in the life of campaigns, on rows in maps: the invariants are checked after each.

mod room;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::campaign::{Campaign, CampaignAction, CampaignState, Stop, Tally};
use crate::chunk::{ChunkState, Lane, TokenList, TrafficClass};
use crate::delivery::{DeliveryState, Record};
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use crate::message::{Message, MessageSpec};
use crate::outcome::Reason;
use crate::ports::store::{
    Expansion, Lease, LeaseReply, LeaseTerms, Receipt, ReceiptKind, SendDecision, SettleReply,
};
use crate::settlement::{Child, Settlement};
use crate::time::Timestamp;
use room::Room;

const PROVIDERS: [ProviderKind; 2] = [ProviderKind::Fcm, ProviderKind::Gateway];
/// Devices at each provider: ids are odd at one, even at the other.
const DEVICES_COUNT: u64 = 20;
/// Most concurrent campaigns; ended ones are removed.
const CAMPAIGNS_MAX_COUNT: usize = 3;
const CUTTING_MAX_DEVICES: usize = 3;

/// The rows, with the time and the leases that a process remembers.
#[derive(Default)]
struct World {
    room: Room,
    seconds: i64,
    instance: u64,
    messages: u64,
    held: Vec<(ChunkId, u32, usize)>,
    /// Counts of events, to verify that the events reach each case.
    settled: u64,
    stale: u64,
    ended: u64,
}

impl World {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + self.seconds * 1_000)
    }

    fn with<T>(&mut self, work: impl FnOnce(&mut LedgerCache<'_, Room>, Timestamp) -> T) -> T {
        let now = self.now();
        let mut ledger = LedgerCache::new(&mut self.room);
        let done = work(&mut ledger, now);
        ledger.close(now).expect("kept");
        done
    }

    /// Executes one event, drawn from a number.
    fn step(&mut self, number: u64) {
        let (what, which, how) = (number % 17, (number >> 8) as usize, number >> 32);
        match what {
            0 => self.accept(how),
            1 | 2 => self.expand(which, how),
            3..=5 => self.lease(which),
            6..=9 => self.settle(which, how),
            10 => self.release(which),
            11 => self.act(which, how),
            12 => self.pass(how),
            13 => self.go_on(),
            14 => self.crash(how),
            15 => self.confirm(which, how),
            _ => self.give_up(which, how),
        }
    }

    fn accept(&mut self, how: u64) {
        if self.room.campaigns.len() == CAMPAIGNS_MAX_COUNT {
            return;
        }
        self.messages += 1;
        let (app, now, id) = (AppId::from_raw(1), self.now(), MessageId::from_raw(self.messages));
        let ttl = if how.is_multiple_of(4) { 0 } else { 30 };
        let spec = format!(
            r#"{{"v":1,"spec":{{"target":"everyone","content":{{"data":{{"a":"b"}}}},"priority":"high","ttl":{ttl}}}}}"#
        );
        let spec = MessageSpec::decode(&spec).expect("a record");
        let message = Message { id, app, spec, created_at: now, due_at: now, occurrence: None };
        let campaign = Campaign {
            id: id.into(),
            app,
            state: CampaignState::Scheduled,
            created_at: now,
            due_at: now,
            expires_at: message.expires_at(),
            started_at: None,
            ended_at: None,
            stop: None,
        };
        let message = Arc::new(message);
        let (producers, books, chunks) = Default::default();
        let row =
            room::Row { campaign, message: Arc::clone(&message), as_of: None, producers, books, chunks };
        self.room.campaigns.insert(id.into(), row);
        let named = |provider, count| (provider, devices(provider, 0).take(count).collect());
        let audience = match how / 4 % 4 {
            3 => return self.send_at_once(&message),
            0 => Audience::Wide(PROVIDERS[how as usize % 2..].to_vec()),
            1 => Audience::Named(vec![named(PROVIDERS[0], 4), named(PROVIDERS[1], 1)]),
            _ => Audience::Named(Vec::new()),
        };
        let as_of = DeviceId::from_raw(1_000);
        let cutting = Cutting { chunk_max_devices: CUTTING_MAX_DEVICES, now };
        self.with(|ledger, _| begin(ledger, &message, (audience, as_of), cutting)).expect("begun");
    }

    /// Begins a campaign to two devices at each provider with leased chunks.
    fn send_at_once(&mut self, message: &Arc<Message>) {
        let row = self.room.campaigns.get_mut(&message.id.into()).expect("there");
        (row.as_of, row.campaign.state) = (Some(DeviceId::from_raw(1_000)), CampaignState::Running);
        row.campaign.started_at = Some(message.created_at);
        let addressed = PROVIDERS.map(|provider| {
            let devices: Vec<_> = devices(provider, 0).take(2).collect();
            let (decisions, tokens) = (vec![SendDecision::Gone; devices.len()], TokenList::default());
            AddressedDevices { provider, devices, decisions, tokens }
        });
        let terms = self.terms(TrafficClass::Urgent);
        let leased = self.with(|ledger, _| begin_leased(ledger, message, addressed.into(), terms));
        for chunk in leased.expect("begun") {
            self.held.push((chunk.id, chunk.epoch, chunk.devices.len()));
        }
    }

    fn terms(&self, class: TrafficClass) -> LeaseTerms {
        let now = self.now();
        LeaseTerms { instance: self.instance, until: now.plus(Duration::from_secs(20)), now, class }
    }

    fn pick(&self, which: usize) -> Option<CampaignId> {
        let ids: Vec<_> = self.room.campaigns.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[which % ids.len()])
    }

    fn expand(&mut self, which: usize, how: u64) {
        let Some(id) = self.pick(which) else { return };
        let row = self.room.row(id).expect("there");
        let Some((provider, cursor)) = row.producers.iter().nth(how as usize % row.producers.len().max(1))
        else {
            return;
        };
        if next_step(Some(row.campaign.state)) != NextStep::Look {
            return;
        }
        let how = Expansion {
            chunk_max_devices: CUTTING_MAX_DEVICES,
            max_chunks: 1 + how as usize % 4,
            now: self.now(),
        };
        let found: Vec<_> = devices(*provider, cursor.raw()).take(how.max_devices()).collect();
        let lane = Lane { provider: *provider, app: AppId::from_raw(1), class: TrafficClass::Bulk };
        self.with(|ledger, _| expand(ledger, id, lane, &found, how)).expect("expanded");
    }

    fn lease(&mut self, which: usize) {
        let queued: Vec<_> = self.room.chunks.values().filter(|row| row.lease.is_none()).collect();
        let Some(row) = queued.get(which % queued.len().max(1)) else { return };
        let id = row.chunk.id;
        let how = self.terms(TrafficClass::Bulk);
        if let Ok(LeaseReply::Leased(chunk)) = self.with(|ledger, _| lease(ledger, id, how)) {
            self.held.push((id, chunk.epoch, chunk.devices.len()));
        }
    }

    fn settle(&mut self, which: usize, how: u64) {
        if self.held.is_empty() {
            return;
        }
        let (chunk, epoch, count) = self.held.swap_remove(which % self.held.len());
        let given = self.answers(chunk, epoch, count, how);
        let before = self.room.chunks.get(&chunk).map(|row| row.chunk.clone());
        let is_held = before.as_ref().is_some_and(|chunk| chunk.is_leased_under(epoch));
        match self.with(|ledger, _| settle(ledger, given)) {
            Ok(SettleReply::Settled { awaited, .. }) => {
                assert!(is_held, "a lease that was lost settled something");
                self.settled += 1;
                let awaited = awaited.map(|awaited| (awaited.lease.chunk, awaited.lease.epoch));
                self.held.extend(awaited.map(|(chunk, epoch)| (chunk, epoch, self.count_of(chunk))));
            }
            Ok(SettleReply::Stale) => {
                assert!(!is_held, "a lease that holds was lost");
                assert_eq!(self.room.chunks.get(&chunk).map(|row| row.chunk.clone()), before);
                self.stale += 1;
            }
            Err(error) => assert!(Room::is_unreadable(&error), "{error}"),
        }
    }

    fn count_of(&self, chunk: ChunkId) -> usize {
        self.room.chunks[&chunk].chunk.count
    }

    fn answers(&self, chunk: ChunkId, epoch: u32, count: usize, how: u64) -> Settlement {
        let now = self.now();
        let (mut records, mut again, mut awaited) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..count as u32 {
            let (state, reason) = match (how >> (4 * at)) % 8 {
                0 => (DeliveryState::Queued, Reason::Unavailable),
                1 => (DeliveryState::Queued, Reason::None),
                2 => (DeliveryState::Rejected, Reason::Unregistered),
                3 => (DeliveryState::Failed, Reason::AttemptsExhausted),
                _ => (DeliveryState::Accepted, Reason::None),
            };
            match (state, reason) {
                (DeliveryState::Queued, Reason::None) => awaited.push(at),
                (DeliveryState::Queued, _) => again.push(at),
                _ => {}
            }
            records.push(Record::new(state, reason, how & 1 == 1));
        }
        let child = Child { positions: again, due_at: now, attempt: 2, ambiguous: how & 1 == 1 };
        let children = if child.positions.is_empty() { Vec::new() } else { vec![child] };
        let stop =
            how.is_multiple_of(61).then(|| Stop { reason: Reason::PayloadRefused, detail: String::new() });
        let (attempts, tokens) = (count as u32, Vec::new());
        Settlement { chunk, epoch, now, records, attempts, tokens, children, awaited, stop }
    }

    fn release(&mut self, which: usize) {
        if self.held.is_empty() {
            return;
        }
        let (chunk, epoch, _) = self.held.swap_remove(which % self.held.len());
        let done = self.with(|ledger, now| release(ledger, Lease { chunk, epoch }, now));
        assert!(done.is_ok_and(|_| true) || self.room.broken.contains(&chunk));
    }

    fn act(&mut self, which: usize, how: u64) {
        let Some(id) = self.pick(which) else { return };
        let now = self.now();
        let action = match how % 8 {
            0 => CampaignAction::Cancel,
            1..=3 => CampaignAction::Pause,
            _ => CampaignAction::Resume,
        };
        // An action that is invalid in its state is refused and changes nothing.
        let _ = act(&mut self.room, (AppId::from_raw(1), id), action, now);
    }

    fn pass(&mut self, how: u64) {
        self.seconds += (how % 8).cast_signed();
        let now = self.now();
        sweep(&mut self.room, 100, now).expect("swept");
    }

    /// Continues unfinished work of campaigns that were canceled, or stopped at a provider.
    fn go_on(&mut self) {
        let now = self.now();
        let ids: Vec<_> = self.room.campaigns.keys().copied().collect();
        for id in ids {
            let row = self.room.row(id).expect("there");
            let is_canceled = row.campaign.state == CampaignState::Canceled;
            let stops = row.books.values().filter_map(|books| {
                let stop = books.ledger().stop.as_ref()?;
                Some((books.ledger().provider, stop.reason))
            });
            let stops: Vec<_> = stops.collect();
            for some in is_canceled.then_some(None).into_iter().chain(stops.into_iter().map(Some)) {
                end_or_quarantine(&mut self.room, (id, some), now).expect("gone on with");
            }
        }
    }

    fn crash(&mut self, how: u64) {
        if !how.is_multiple_of(8) {
            return;
        }
        self.instance += 1;
        let (instance, now) = (self.instance, self.now());
        let leased: u64 = self.room.chunks.values().map(|row| u64::from(row.lease.is_some())).sum();
        let (found, tickets) = recover(&mut self.room, instance, now).expect("recovered");
        assert!(found.chunks <= leased && tickets.len() as u64 <= found.chunks);
        assert!(self.room.leased().expect("listed").is_empty(), "what a dead process leased is released");
    }

    /// Confirms or drops a random delivery, whether or not it was accepted or confirmed before.
    fn confirm(&mut self, which: usize, how: u64) {
        let Some(row) = self.room.chunks.values().nth(which % (self.room.chunks.len().max(1))) else {
            return;
        };
        let (chunk, before) = (row.chunk.id, row.records.clone());
        let device = row.devices[how as usize % row.devices.len()];
        let kind = match how % 3 {
            0 => ReceiptKind::Dropped(Reason::ReplacedByNewer),
            _ => ReceiptKind::Delivered,
        };
        let awaits = row.chunk.state == ChunkState::Settled
            && row.chunk.lane.provider.has_receipts()
            && row.devices.iter().zip(&before).any(|(one, record)| *one == device && record.awaits_receipt());
        let receipt = Receipt { chunk, device, kind };
        match self.with(|ledger, now| receive(ledger.rows, &[receipt, receipt], now)) {
            Ok(changed) => {
                assert_eq!(changed, [awaits, false], "a receipt counts once, where one is awaited")
            }
            Err(error) => assert!(Room::is_unreadable(&error), "{error}"),
        }
    }

    fn give_up(&mut self, which: usize, how: u64) {
        let Some(id) = self.pick(which).filter(|_| how.is_multiple_of(16)) else { return };
        let now = self.now();
        if self.room.row(id).expect("there").producers.contains_key(&PROVIDERS[0]) {
            give_up_producer(&mut self.room, id, PROVIDERS[0], now).expect("given up");
        }
    }

    /// Checks the invariants, and removes ended campaigns.
    fn check(&mut self) {
        let room = &self.room;
        for (id, row) in &room.campaigns {
            for (provider, books) in &row.books {
                let ledger = books.ledger();
                assert_eq!(ledger.audience, ledger.tally.sum(), "the sums balance");
                if room.broken.is_empty() && !has_quarantined(room, *id, *provider) {
                    assert_eq!(ledger.tally, counted(room, *id, *provider), "books and chunks agree");
                    assert_eq!(
                        ledger.delivered,
                        confirmed(room, *id, *provider),
                        "what is confirmed is counted"
                    );
                }
            }
            let open: u64 = row.books.values().map(|books| books.ledger().tally.open()).sum();
            let is_over = open == 0 && row.producers.is_empty() && row.as_of.is_some();
            assert_eq!(row.campaign.ended_at.is_some(), is_over, "{id}");
            // Deliveries that are accepted and not confirmed may be held back after the end.
            let state = row.campaign.state;
            assert!(!is_over || state.is_ended() || state == CampaignState::Paused);
        }
        let ended: Vec<_> = room
            .campaigns
            .iter()
            .filter(|(_, row)| row.campaign.ended_at.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            let row = self.room.campaigns.remove(&id).expect("there");
            row.chunks.iter().for_each(|chunk| _ = self.room.chunks.remove(chunk));
            self.room.broken.retain(|chunk| !row.chunks.contains(chunk));
            self.ended += 1;
        }
    }

    /// Runs all campaigns to their end.
    fn drain(&mut self) {
        for _ in 0..1_000 {
            if self.room.campaigns.is_empty() {
                return;
            }
            self.go_on();
            let ids: Vec<_> = self.room.campaigns.keys().copied().collect();
            for (at, id) in ids.into_iter().enumerate() {
                let now = self.now();
                let _ = act(&mut self.room, (AppId::from_raw(1), id), CampaignAction::Resume, now);
                self.expand(at, 0);
            }
            self.pass(7);
            self.check();
        }
        panic!("campaigns are stuck");
    }
}

/// Lists the devices of a provider after a given id.
fn devices(provider: ProviderKind, after: u64) -> impl Iterator<Item = DeviceId> {
    let odd = u64::from(provider == PROVIDERS[0]);
    let all = (1..=2 * DEVICES_COUNT).filter(move |id| id % 2 == odd && *id > after);
    all.map(DeviceId::from_raw)
}

/// Counts the confirmed deliveries in the chunks; checks that chunks awaiting receipts are marked.
fn confirmed(room: &Room, id: CampaignId, provider: ProviderKind) -> u64 {
    let settled: Vec<_> = room.those(id, provider, ChunkState::Settled).collect();
    for row in &settled {
        let awaits = row.records.iter().any(|record| record.awaits_receipt());
        assert_eq!(row.awaits_receipts, awaits && provider.has_receipts());
    }
    let records = settled.iter().flat_map(|row| &row.records);
    records.filter(|record| record.is_delivered()).count() as u64
}

fn has_quarantined(room: &Room, id: CampaignId, provider: ProviderKind) -> bool {
    room.those(id, provider, ChunkState::Quarantined).next().is_some()
}

/// Computes a campaign's tally at a provider from its chunks.
fn counted(room: &Room, id: CampaignId, provider: ProviderKind) -> Tally {
    let count = |state| room.those(id, provider, state).map(|row| row.chunk.count as u64).sum();
    let (queued, sending) = (count(ChunkState::Queued), count(ChunkState::Leased));
    let mut tally = Tally { queued, sending, ..Tally::default() };
    let records = room.those(id, provider, ChunkState::Settled).flat_map(|row| &row.records);
    for record in records.filter(|record| record.state().is_final()) {
        *tally.of(record.state()) += 1;
    }
    tally
}

#[test]
fn a_million_random_events_keep_every_promise_of_the_ledger() {
    let mut world = World::default();
    let mut number = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1_000_000 {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        world.step(number);
        // Rarely enough for a million events to take seconds, and often enough that no error heals in between.
        if number & 3 == 0 {
            world.check();
        }
    }
    world.drain();
    assert!(world.settled > 10_000 && world.stale > 1_000 && world.ended > 1_000, "much happened");
}

proptest! {
    #[test]
    fn chunks_that_cannot_be_read_hold_nothing_else_up(numbers in prop::collection::vec(any::<u64>(), 0..200)) {
        let mut world = World::default();
        for number in numbers {
            world.step(number);
            if number.is_multiple_of(23)
                && let Some(row) = world.room.chunks.values().find(|row| {
                    matches!(row.chunk.state, ChunkState::Queued | ChunkState::Leased)
                })
            {
                let id = row.chunk.id;
                world.room.broken.insert(id);
            }
            world.check();
        }
        world.drain();
    }
}
