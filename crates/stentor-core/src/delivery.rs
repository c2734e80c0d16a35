//! A delivery is one message to one device; its state is stored in two bytes per attempt.

use crate::codes::codes;
use crate::outcome::Reason;
use crate::varint;

codes! {
    /// The state of a delivery.
    DeliveryState {
        /// Waiting for its turn, or for its next attempt.
        Queued = 0, "queued";
        /// Leased: handed to a provider, not yet settled.
        Sending = 1, "sending";
        /// The push service took it over.
        Accepted = 2, "accepted";
        /// The push service refused it for good.
        Rejected = 3, "rejected";
        /// Its ttl passed first.
        Expired = 4, "expired";
        /// A newer message with the same collapse key took its place.
        Collapsed = 5, "collapsed";
        /// Canceled, or its device is gone.
        Canceled = 6, "canceled";
        /// Given up.
        Failed = 7, "failed";
    }
}

impl DeliveryState {
    /// Returns true if the state is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Sending)
    }
}

codes! {
    /// The state of a delivery in lists and filters; deliveries confirmed by the device have a state of their own.
    ShownState {
        /// Waiting for its turn, or for its next attempt.
        Queued = 0, "queued";
        /// Handed to a provider, not yet settled.
        Sending = 1, "sending";
        /// The push service took it over.
        Accepted = 2, "accepted";
        /// The push service refused it for good.
        Rejected = 3, "rejected";
        /// Its ttl passed first.
        Expired = 4, "expired";
        /// A newer message took its place.
        Collapsed = 5, "collapsed";
        /// Canceled, or its device is gone.
        Canceled = 6, "canceled";
        /// Given up.
        Failed = 7, "failed";
        /// Accepted, and confirmed by its device.
        Delivered = 8, "delivered";
    }
}

impl ShownState {
    /// Returns the shown state of a record.
    #[must_use]
    pub fn of(record: Record) -> Self {
        match Self::from_code(record.state().code()) {
            Some(Self::Accepted) if record.is_delivered() => Self::Delivered,
            Some(state) => state,
            None => Self::Failed,
        }
    }

    /// Returns true if a record matches the state. As in the books, delivered ones also count as accepted.
    #[must_use]
    pub fn means(self, record: Record) -> bool {
        let shown = Self::of(record);
        shown == self || (self, shown) == (Self::Accepted, Self::Delivered)
    }
}

const STATE_MASK: u16 = 0x0f;
const AMBIGUOUS: u16 = 0x10;
const DELIVERED: u16 = 0x20;

/// The record of one delivery in one chunk, in 16 bits: state, ambiguity, reason.
///
/// `Queued` means that the delivery continues in a child chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Record(u16);

impl Record {
    /// Builds a record; `ambiguous` is true if an earlier attempt may have reached the device unnoticed.
    #[must_use]
    pub const fn new(state: DeliveryState, reason: Reason, ambiguous: bool) -> Self {
        let mark = if ambiguous { AMBIGUOUS } else { 0 };
        Self((reason.code() as u16) << 8 | mark | state.code() as u16)
    }

    /// Returns the state of the delivery.
    #[must_use]
    pub fn state(self) -> DeliveryState {
        DeliveryState::from_code((self.0 & STATE_MASK) as u8).unwrap_or(DeliveryState::Failed)
    }

    /// Returns the cause of the state.
    #[must_use]
    pub fn reason(self) -> Reason {
        Reason::from_code((self.0 >> 8) as u8).unwrap_or(Reason::UnknownAnswer)
    }

    /// Returns true if a duplicate is possible.
    #[must_use]
    pub const fn is_ambiguous(self) -> bool {
        self.0 & AMBIGUOUS != 0
    }

    /// Returns the record as confirmed by the device, or `None` if no push service has accepted the delivery.
    #[must_use]
    pub fn delivered(self) -> Option<Self> {
        (self.state() == DeliveryState::Accepted).then_some(Self(self.0 | DELIVERED))
    }

    /// Returns true if the device has confirmed the delivery.
    #[must_use]
    pub const fn is_delivered(self) -> bool {
        self.0 & DELIVERED != 0
    }

    /// Returns true if the device may still confirm the delivery: it was accepted and has not been replaced since.
    #[must_use]
    pub fn awaits_receipt(self) -> bool {
        self.state() == DeliveryState::Accepted && self.reason() == Reason::None && !self.is_delivered()
    }

    /// Returns the number that the engine stores.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Restores a record from its number. Returns `None` for a number that no version has written.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Option<Self> {
        let known = DeliveryState::from_code((bits & STATE_MASK) as u8).is_some()
            && Reason::from_code((bits >> 8) as u8).is_some()
            && bits & !(STATE_MASK | AMBIGUOUS | DELIVERED | 0xff00) == 0
            && (bits & DELIVERED == 0 || (bits & STATE_MASK) as u8 == DeliveryState::Accepted.code());
        if known { Some(Self(bits)) } else { None }
    }
}

/// Packs records as runs (length, record): a chunk that was accepted as a whole takes a few bytes.
#[must_use]
pub fn encode_records(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    for run in records.chunk_by(|a, b| a == b) {
        varint::put(&mut out, run.len() as u64);
        out.extend_from_slice(&run[0].bits().to_le_bytes());
    }
    out
}

/// Unpacks the output of [`encode_records`]. Returns `None` unless it holds exactly `count` records.
#[must_use]
pub fn decode_records(mut bytes: &[u8], count: usize) -> Option<Vec<Record>> {
    let mut records = Vec::with_capacity(count.min(crate::limits::CHUNK_MAX_DEVICES));
    while !bytes.is_empty() {
        let run = usize::try_from(varint::take(&mut bytes)?).ok()?;
        let (bits, rest) = bytes.split_first_chunk::<2>()?;
        bytes = rest;
        if run == 0 || run > count - records.len() {
            return None;
        }
        records.resize(records.len() + run, Record::from_bits(u16::from_le_bytes(*bits))?);
    }
    (records.len() == count).then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        (0..DeliveryState::ALL.len(), 0..Reason::ALL.len(), any::<bool>()).prop_map(
            |(state, reason, mark)| Record::new(DeliveryState::ALL[state], Reason::ALL[reason], mark),
        )
    }

    proptest! {
        #[test]
        fn records_are_unpacked_as_they_were_packed(records in prop::collection::vec(any_record(), 0..300)) {
            let packed = encode_records(&records);
            prop_assert_eq!(decode_records(&packed, records.len()), Some(records));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), count in 0..2_000_usize) {
            let _ = decode_records(&bytes, count);
        }
    }

    #[test]
    fn only_what_was_accepted_is_confirmed_and_then_awaits_nothing() {
        for state in DeliveryState::ALL {
            let record = Record::new(*state, Reason::None, true);
            let is_accepted = *state == DeliveryState::Accepted;
            assert_eq!((record.awaits_receipt(), record.delivered().is_some()), (is_accepted, is_accepted));
            assert_eq!(Record::from_bits(record.bits() | DELIVERED).is_some(), is_accepted);
        }
        let confirmed =
            Record::new(DeliveryState::Accepted, Reason::None, true).delivered().expect("accepted");
        assert!(confirmed.is_delivered() && confirmed.is_ambiguous() && !confirmed.awaits_receipt());
        assert_eq!(decode_records(&encode_records(&[confirmed]), 1), Some(vec![confirmed]));
        assert!(!Record::new(DeliveryState::Accepted, Reason::ReplacedByNewer, false).awaits_receipt());
    }

    #[test]
    fn a_chunk_accepted_whole_takes_a_few_bytes() {
        let all = vec![Record::new(DeliveryState::Accepted, Reason::None, false); 1_000];
        assert_eq!(encode_records(&all).len(), 4);
    }
}
