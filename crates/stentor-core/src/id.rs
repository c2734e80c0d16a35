//! Readable ids: a prefix that names the kind, and thirteen sortable characters.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crate::time::Timestamp;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS: usize = 13;
/// Ids stay below 2^63 so that every engine can keep them in a signed 64-bit column.
const RAW_MAX: u64 = i64::MAX as u64;
/// Low bits that count ids within one millisecond.
const COUNTER_BITS: u32 = 20;
/// The lowest bits; they identify the node if several nodes generate ids.
const PLACE_MASK: u64 = 0xff;
/// The place of a server that is the only node.
const NO_PLACE: u16 = u16::MAX;

/// Error for a text that is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdError {
    prefix: &'static str,
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an id of this kind: expected `{}_` and {DIGITS} characters", self.prefix)
    }
}

impl std::error::Error for IdError {}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Word in front of the id, without the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps the number that the engine stores; the top bit is dropped.
            #[must_use]
            pub const fn from_raw(raw: u64) -> Self {
                Self(raw & RAW_MAX)
            }

            /// Returns the number that the engine stores, below 2^63.
            #[must_use]
            pub const fn raw(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_id(f, $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_id(f, $prefix, self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                read_id($prefix, text).map(Self).ok_or(IdError { prefix: $prefix })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A tenant application.
    AppId = "app";
    /// An API key (its public name, not the secret).
    KeyId = "key";
    /// One installation of the app on one device.
    DeviceId = "dev";
    /// A message of the app server.
    MessageId = "msg";
    /// The sending of a message to its audience; shares its number with the message.
    CampaignId = "cmp";
    /// A recurring or later sending.
    ScheduleId = "sch";
    /// A message that waits for an approval.
    ProposalId = "prp";
    /// A slice of an audience, the unit of queued work.
    ChunkId = "chk";
    /// An entry of the audit trail.
    AuditId = "aud";
    /// An upstream message: sent by a device to its app.
    UpstreamId = "ups";
}

impl From<MessageId> for CampaignId {
    fn from(id: MessageId) -> Self {
        Self(id.0)
    }
}

impl From<CampaignId> for MessageId {
    fn from(id: CampaignId) -> Self {
        Self(id.0)
    }
}

fn write_id(f: &mut fmt::Formatter<'_>, prefix: &str, raw: u64) -> fmt::Result {
    let mut digits = [b'0'; DIGITS];
    let mut rest = raw;
    for slot in digits.iter_mut().rev() {
        *slot = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    write!(f, "{prefix}_{}", std::str::from_utf8(&digits).unwrap_or_default())
}

fn read_id(prefix: &str, text: &str) -> Option<u64> {
    let digits = text.strip_prefix(prefix)?.strip_prefix('_')?.as_bytes();
    if digits.len() != DIGITS {
        return None;
    }
    let raw = digits.iter().try_fold(0_u128, |sum, digit| {
        let value = ALPHABET.iter().position(|known| known == digit)?;
        Some(sum << 5 | value as u128)
    })?;
    u64::try_from(raw).ok().filter(|raw| *raw <= RAW_MAX)
}

/// Returns the smallest id that can be generated at an instant.
#[must_use]
pub const fn first_number_at(instant: Timestamp) -> u64 {
    let millis = instant.as_millis();
    if millis < 0 { 0 } else { millis.unsigned_abs() << COUNTER_BITS & RAW_MAX }
}

/// Returns the earliest instant at which an id may have been generated.
#[must_use]
pub const fn instant_of(number: u64) -> Timestamp {
    Timestamp::from_millis((number >> COUNTER_BITS).cast_signed())
}

/// Returns the id generated at `now` after `last`. `place` is the node's suffix, `None` for the only node.
#[must_use]
pub const fn next_number(last: u64, now: Timestamp, place: Option<u8>) -> u64 {
    let (next, floor) = (last + 1, first_number_at(now));
    let least = if next > floor { next } else { floor };
    let Some(place) = place else { return least };
    let own = (least & !PLACE_MASK) | place as u64;
    // With its place inserted the id may fall below one that was generated before: ids never decrease.
    if own < least { own + PLACE_MASK + 1 } else { own }
}

/// Generates ids that never repeat and never decrease, even when the clock does.
///
/// The high bits are milliseconds since 1970, the low 20 count within one millisecond; a burst borrows from the future. If there are
/// several nodes, each counts in the upper 12 of these 20 bits, and the lowest eight identify the node.
#[derive(Debug)]
pub struct IdSource {
    last: AtomicU64,
    /// The node's suffix of the ids, or [`NO_PLACE`].
    place: AtomicU16,
}

impl IdSource {
    /// Starts after the largest number already in use.
    #[must_use]
    pub const fn after(last: u64) -> Self {
        Self { last: AtomicU64::new(last), place: AtomicU16::new(NO_PLACE) }
    }

    /// Continues after `last`, with ids that end in `place`.
    pub fn go_on(&self, last: u64, place: Option<u8>) {
        self.place.store(place.map_or(NO_PLACE, u16::from), Ordering::Relaxed);
        self.last.fetch_max(last, Ordering::Relaxed);
    }

    /// Returns the next id at `now`.
    pub fn next(&self, now: Timestamp) -> u64 {
        let place = u8::try_from(self.place.load(Ordering::Relaxed)).ok();
        let step = |last: u64| Some(next_number(last, now, place));
        // `Relaxed`: the id only has to be unique, and nothing is published with it.
        let previous = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let (Ok(last) | Err(last)) = previous;
        next_number(last, now, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_id_is_read_back_as_it_was_written(raw in 0..=RAW_MAX) {
            let id = MessageId::from_raw(raw);
            prop_assert_eq!(id.to_string().parse::<MessageId>(), Ok(id));
        }

        #[test]
        fn text_order_is_number_order(a in 0..=RAW_MAX, b in 0..=RAW_MAX) {
            let (x, y) = (DeviceId::from_raw(a), DeviceId::from_raw(b));
            prop_assert_eq!(x.cmp(&y), x.to_string().cmp(&y.to_string()));
        }

        #[test]
        fn numbers_of_two_nodes_never_meet_and_each_grows(
            places in (any::<u8>(), any::<u8>()), at in 0..i64::from(u32::MAX), last in 0..RAW_MAX / 2,
        ) {
            let (one, other) = (IdSource::after(last), IdSource::after(last));
            one.go_on(last, Some(places.0));
            other.go_on(last, Some(places.1));
            let now = Timestamp::from_millis(at);
            let (mine, theirs): (Vec<_>, Vec<_>) = (0..20).map(|_| (one.next(now), other.next(now))).unzip();
            prop_assert!(mine.is_sorted_by(|a, b| a < b) && mine[0] > last);
            prop_assert!(places.0 == places.1 || !mine.iter().any(|id| theirs.contains(id)));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}") {
            let _ = text.parse::<AppId>();
        }
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let message = MessageId::from_raw(7).to_string();
        assert!(message.parse::<DeviceId>().is_err());
        assert!("msg_zzzzzzzzzzzzz".parse::<MessageId>().is_err(), "above 2^63");
    }

    #[test]
    fn numbers_grow_though_the_clock_goes_back() {
        let source = IdSource::after(0);
        let first = source.next(Timestamp::from_millis(1_000));
        let second = source.next(Timestamp::from_millis(10));
        assert!(second > first);
    }
}
