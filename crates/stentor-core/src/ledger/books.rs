//! The books of a campaign at a provider: every change of a delivery's state updates these sums.

use std::collections::BTreeMap;

use crate::campaign::{ProviderLedger, Stop, Tally};
use crate::delivery::{DeliveryState, Record};
use crate::device::ProviderKind;
use crate::outcome::Reason;
use crate::ports::store::StoreError;

/// The books hold fewer deliveries in a state than are to be moved: a bug, or a damaged row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the books hold too few deliveries")]
pub struct TooFew;

impl From<TooFew> for StoreError {
    fn from(too_few: TooFew) -> Self {
        Self::Damaged(too_few.to_string())
    }
}

/// The books of one campaign at one provider, and the deliveries that ended since they were opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Books {
    ledger: ProviderLedger,
    ends: BTreeMap<(DeliveryState, Reason), u64>,
}

impl Books {
    /// Creates empty books.
    #[must_use]
    pub fn new(provider: ProviderKind) -> Self {
        let ledger = ProviderLedger {
            provider,
            audience: 0,
            audience_complete: false,
            tally: Tally::default(),
            delivered: 0,
            attempts: 0,
            ambiguous: 0,
            duplicate_bound: 0,
            stop: None,
            reasons: Vec::new(),
        };
        Self::open(ledger)
    }

    /// Opens stored books.
    #[must_use]
    pub const fn open(ledger: ProviderLedger) -> Self {
        Self { ledger, ends: BTreeMap::new() }
    }

    /// Returns the sums.
    #[must_use]
    pub const fn ledger(&self) -> &ProviderLedger {
        &self.ledger
    }

    /// Returns the deliveries that ended since the books were opened, by state and reason.
    pub fn ends(&self) -> impl Iterator<Item = ((DeliveryState, Reason), u64)> {
        self.ends.iter().map(|(end, count)| (*end, *count))
    }

    /// Adds devices to the audience, as queued deliveries.
    pub const fn expand(&mut self, count: u64) {
        self.ledger.audience += count;
        self.ledger.tally.queued += count;
    }

    /// Sets the flag that the expansion is complete.
    pub const fn set_complete(&mut self, is_complete: bool) {
        self.ledger.audience_complete = is_complete;
    }

    /// Stops the campaign at this provider; nothing more is expanded. Only the first stop is recorded.
    pub fn stop(&mut self, stop: Stop) {
        // Callers conclude from it that the audience grows no more, although its expansion is incomplete.
        self.ledger.audience_complete = true;
        self.ledger.stop.get_or_insert(stop);
    }

    /// Leases queued deliveries.
    pub fn lease(&mut self, count: u64) -> Result<(), TooFew> {
        self.shift(DeliveryState::Queued, DeliveryState::Sending, count)
    }

    /// Ends a lease without a settlement: its deliveries are queued again. If `unsettled`, some of them may have been sent, and all are
    /// added to the possible duplicates.
    pub fn release(&mut self, count: u64, unsettled: bool) -> Result<(), TooFew> {
        self.shift(DeliveryState::Sending, DeliveryState::Queued, count)?;
        self.ledger.duplicate_bound += if unsettled { count } else { 0 };
        Ok(())
    }

    /// Settles leased deliveries. `awaited` of them stay leased although their records are queued.
    pub fn settle(&mut self, records: &[Record], awaited: u64, attempts: u32) -> Result<(), TooFew> {
        let tally = self.ledger.tally.settled(records).ok_or(TooFew)?;
        self.ledger.tally =
            // Their records are queued and counted so by `settled`; this moves them back to sending.
            tally.moved(DeliveryState::Queued, DeliveryState::Sending, awaited).ok_or(TooFew)?;
        self.ledger.attempts += u64::from(attempts);
        for run in records.chunk_by(|a, b| a == b).filter(|run| run[0].state().is_final()) {
            self.count_ends(run[0], run.len() as u64);
        }
        Ok(())
    }

    /// Counts deliveries that their devices have confirmed; they stay accepted.
    pub fn confirm(&mut self, count: u64) -> Result<(), TooFew> {
        // A device confirms only accepted deliveries: a larger count is a damaged row, and must not be stored.
        let delivered = self.ledger.delivered + count;
        if delivered > self.ledger.tally.accepted {
            return Err(TooFew);
        }
        self.ledger.delivered = delivered;
        Ok(())
    }

    /// Ends queued deliveries, all in the same way.
    pub fn end(&mut self, record: Record, count: u64) -> Result<(), TooFew> {
        self.shift(DeliveryState::Queued, record.state(), count)?;
        self.count_ends(record, count);
        Ok(())
    }

    /// Ends all open deliveries as failed with [`Reason::Damaged`], because no row is left to settle them. Deliveries in `sending` may have
    /// been sent and are marked ambiguous. The audience is set to the sum of the tally.
    pub fn write_off(&mut self) {
        let tally = &mut self.ledger.tally;
        let (queued, sending) = (std::mem::take(&mut tally.queued), std::mem::take(&mut tally.sending));
        tally.failed += queued + sending;
        // From the tally, not the reverse: after damage the audience may be the wrong number.
        (self.ledger.audience, self.ledger.audience_complete) = (tally.sum(), true);
        for (count, ambiguous) in [(queued, false), (sending, true)] {
            if count > 0 {
                self.count_ends(Record::new(DeliveryState::Failed, Reason::Damaged, ambiguous), count);
            }
        }
    }

    fn shift(&mut self, from: DeliveryState, to: DeliveryState, count: u64) -> Result<(), TooFew> {
        self.ledger.tally = self.ledger.tally.moved(from, to, count).ok_or(TooFew)?;
        Ok(())
    }

    fn count_ends(&mut self, record: Record, count: u64) {
        *self.ends.entry((record.state(), record.reason())).or_default() += count;
        if record.is_ambiguous() {
            self.ledger.ambiguous += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event of the deliveries of a campaign.
    #[derive(Debug, Clone)]
    enum Event {
        Expand(u64),
        Lease(u64),
        Release(u64, bool),
        Settle(Vec<(DeliveryState, bool)>, u64),
        End(DeliveryState, u64),
    }

    fn any_state() -> impl Strategy<Value = DeliveryState> {
        let states = DeliveryState::ALL.iter().copied().filter(|state| *state != DeliveryState::Sending);
        prop::sample::select(states.collect::<Vec<_>>())
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (0..50_u64).prop_map(Event::Expand),
            (0..20_u64).prop_map(Event::Lease),
            (0..20_u64, any::<bool>()).prop_map(|(count, unsettled)| Event::Release(count, unsettled)),
            (prop::collection::vec((any_state(), any::<bool>()), 0..20), 0..20_u64)
                .prop_map(|(records, awaited)| Event::Settle(records, awaited)),
            (any_state(), 0..20_u64).prop_map(|(state, count)| Event::End(state, count)),
        ]
    }

    fn happen(books: &mut Books, event: &Event) -> Result<(), TooFew> {
        match event {
            Event::Expand(count) => books.expand(*count),
            Event::Lease(count) => books.lease(*count)?,
            Event::Release(count, unsettled) => books.release(*count, *unsettled)?,
            Event::Settle(states, awaited) => {
                let record = |(state, ambiguous): &(DeliveryState, bool)| {
                    Record::new(*state, Reason::None, *ambiguous)
                };
                books.settle(&states.iter().map(record).collect::<Vec<_>>(), *awaited, 1)?;
            }
            Event::End(state, count) => books.end(Record::new(*state, Reason::None, false), *count)?,
        }
        Ok(())
    }

    /// Applies an event; an impossible one changes nothing. Then checks that the sums balance.
    fn check(books: &mut Books, event: &Event) {
        let before = books.clone();
        if happen(books, event).is_err() {
            *books = before;
        }
        assert_eq!(books.ledger().audience, books.ledger().tally.sum(), "{event:?}");
    }

    fn check_end(books: &Books) {
        let finals = books.ends().filter(|((state, _), _)| state.is_final());
        let ended: u64 = finals.map(|(_, count)| count).sum();
        assert_eq!(ended + books.ledger().tally.open(), books.ledger().audience);
    }

    /// Draws an event from a number.
    fn drawn(number: u64) -> Event {
        let (kind, count, odd) = (number % 5, number / 5 % 20, number / 100 % 2 == 1);
        let state = |number: u64| match DeliveryState::ALL[(number % 8) as usize] {
            DeliveryState::Sending => DeliveryState::Accepted,
            state => state,
        };
        match kind {
            0 => Event::Expand(2 * count),
            1 => Event::Lease(count),
            2 => Event::Release(count, odd),
            3 => Event::Settle((0..count).map(|at| (state(number / 200 + at), odd)).collect(), count / 4),
            _ => Event::End(state(number / 200), count),
        }
    }

    #[test]
    fn a_million_random_events_keep_the_sums() {
        let mut books = Books::new(ProviderKind::Fcm);
        let mut number = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..1_000_000 {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            check(&mut books, &drawn(number));
        }
        check_end(&books);
        assert!(books.ledger().audience > 1_000_000, "much happened");
    }

    proptest! {
        #[test]
        fn whatever_happens_the_sums_balance_and_what_cannot_be_changes_nothing(
            events in prop::collection::vec(any_event(), 0..100),
        ) {
            let mut books = Books::new(ProviderKind::Fcm);
            events.iter().for_each(|event| check(&mut books, event));
            check_end(&books);
        }
    }

    #[test]
    fn what_is_awaited_stays_on_its_way() {
        let mut books = Books::new(ProviderKind::Fcm);
        books.expand(3);
        books.lease(3).expect("queued");
        let record = |state| Record::new(state, Reason::None, false);
        let records = [DeliveryState::Accepted, DeliveryState::Queued, DeliveryState::Queued].map(record);
        books.settle(&records, 1, 2).expect("leased");
        assert_eq!(books.ledger().tally, Tally { accepted: 1, queued: 1, sending: 1, ..Tally::default() });
        assert_eq!(books.ledger().attempts, 2);
    }

    #[test]
    fn what_is_written_off_has_failed_is_the_audience_and_what_was_on_its_way_is_marked() {
        let tally = Tally { queued: 2, sending: 3, accepted: 4, ..Tally::default() };
        let mut books = Books::open(ProviderLedger {
            audience: 1,
            tally,
            ..Books::new(ProviderKind::Fcm).ledger().clone()
        });
        books.write_off();
        assert_eq!(books.ledger().tally, Tally { accepted: 4, failed: 5, ..Tally::default() });
        assert_eq!((books.ledger().audience, books.ledger().audience_complete), (9, true));
        assert_eq!(books.ledger().ambiguous, 3);
        assert_eq!(books.ends().collect::<Vec<_>>(), [((DeliveryState::Failed, Reason::Damaged), 5)]);
    }

    #[test]
    fn no_more_is_confirmed_than_was_accepted() {
        let tally = Tally { accepted: 2, ..Tally::default() };
        let mut books =
            Books::open(ProviderLedger { tally, ..Books::new(ProviderKind::Gateway).ledger().clone() });
        books.confirm(2).expect("accepted");
        assert_eq!(books.confirm(1), Err(TooFew));
        assert_eq!(books.ledger().delivered, 2);
    }

    #[test]
    fn the_first_stop_counts() {
        let mut books = Books::new(ProviderKind::Fcm);
        let stop = |reason| Stop { reason, detail: String::new() };
        books.stop(stop(Reason::PayloadRefused));
        books.stop(stop(Reason::Damaged));
        assert_eq!(books.ledger().stop, Some(stop(Reason::PayloadRefused)));
        assert!(books.ledger().audience_complete);
    }
}
