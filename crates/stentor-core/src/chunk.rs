//! Chunks: frozen slices of an audience, the unit of queued work.

use serde::{Deserialize, Serialize};

use crate::codes::codes;
use crate::device::ProviderKind;
use crate::id::{AppId, ChunkId, DeviceId};
use crate::limits::CHUNK_MAX_DEVICES;
use crate::time::Timestamp;
use crate::varint;

codes! {
    /// The queue class of a chunk; it keeps single messages from waiting behind a campaign.
    TrafficClass {
        /// Messages to named devices, tokens and users.
        Urgent = 0, "urgent";
        /// Messages to audiences.
        Bulk = 1, "bulk";
    }
}

codes! {
    /// The state of a chunk.
    ChunkState {
        /// It waits for its turn.
        Queued = 0, "queued";
        /// A process sends it.
        Leased = 1, "leased";
        /// The outcomes of its deliveries are written.
        Settled = 2, "settled";
        /// It could be neither leased nor settled, and was removed from processing.
        Quarantined = 3, "quarantined";
    }
}

/// One queue: chunks of one app for one provider and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// Adapter that serves it.
    pub provider: ProviderKind,
    /// The app that owns the credential.
    pub app: AppId,
    /// Urgent before bulk.
    pub class: TrafficClass,
}

/// An entry of the queue: a chunk, its lane and the earliest time of its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The chunk.
    pub chunk: ChunkId,
    /// Its queue.
    pub lane: Lane,
    /// Earliest time of the lease.
    pub due_at: Timestamp,
}

/// Extra capacity for the next list, as a fraction (1/n) of the bytes of the previous one.
const SLACK_PART: usize = 32;
/// Unused memory that a list may keep, as a fraction (1/n) of the needed memory.
const WORTH_PART: usize = 8;

/// Packs ascending ids as first id and gaps: dense ids take a byte each.
#[must_use]
pub fn encode_devices(devices: &[DeviceId]) -> Vec<u8> {
    let mut out = Vec::with_capacity(devices.len() + 8);
    let mut last = 0;
    for device in devices {
        varint::put(&mut out, device.raw().wrapping_sub(last));
        last = device.raw();
    }
    out
}

/// Unpacks the output of [`encode_devices`]. Returns `None` for any other input, including unsorted or overlong lists.
#[must_use]
pub fn decode_devices(mut bytes: &[u8]) -> Option<Vec<DeviceId>> {
    let mut devices: Vec<DeviceId> = Vec::with_capacity(bytes.len().min(CHUNK_MAX_DEVICES));
    let mut last = 0_u64;
    while !bytes.is_empty() {
        let gap = varint::take(&mut bytes)?;
        let next = last.checked_add(gap).filter(|next| *next <= i64::MAX as u64)?;
        let repeats = gap == 0 && !devices.is_empty();
        if repeats || devices.len() == CHUNK_MAX_DEVICES {
            return None;
        }
        devices.push(DeviceId::from_raw(next));
        last = next;
    }
    Some(devices)
}

/// Many push tokens in one allocation; never shown by `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenList {
    bytes: String,
    ends: Vec<u32>,
}

impl TokenList {
    /// Reserves space for `count` tokens; the bytes are reserved when the first token arrives, assuming that all have its length.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Self { bytes: String::new(), ends: Vec::with_capacity(count) }
    }

    /// Reserves space for as many tokens and bytes as another list has, plus a small margin.
    #[must_use]
    pub fn sized_like(other: &Self) -> Self {
        let bytes = other.bytes.len();
        Self {
            bytes: String::with_capacity(bytes + bytes / SLACK_PART),
            ends: Vec::with_capacity(other.len()),
        }
    }

    /// Appends a token.
    pub fn push(&mut self, token: &str) {
        if self.bytes.capacity() == 0 {
            // Exactly one allocation where all have the same length.
            let bytes = token.len() * self.ends.capacity().max(1);
            self.bytes.reserve_exact(bytes);
        }
        self.bytes.push_str(token);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Returns the token at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.bytes.get(start..end)
    }

    /// Returns the total size of the tokens in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the size of the allocated memory in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// Frees unused memory if the saving justifies a copy.
    pub fn shrink(&mut self) {
        let needed = self.bytes.len() + self.ends.len() * size_of::<u32>();
        if self.capacity_bytes() > needed + needed / WORTH_PART {
            self.bytes.shrink_to_fit();
            self.ends.shrink_to_fit();
        }
    }

    /// Counts the tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all tokens in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl std::fmt::Debug for TokenList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenList({} tokens, redacted)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_of_equal_tokens_takes_what_they_take() {
        let token = "a".repeat(64);
        let mut list = TokenList::with_capacity(1_000);
        (0..1_000).for_each(|_| list.push(&token));
        assert_eq!(list.capacity_bytes(), 1_000 * (64 + 4));
        let next = TokenList::sized_like(&list);
        assert_eq!((next.len(), next.capacity_bytes()), (0, 66_000 + 4_000));
    }

    proptest! {
        #[test]
        fn device_lists_are_unpacked_as_they_were_packed(raw in prop::collection::btree_set(1..i64::MAX as u64, 0..500)) {
            let devices: Vec<_> = raw.into_iter().map(DeviceId::from_raw).collect();
            prop_assert_eq!(decode_devices(&encode_devices(&devices)), Some(devices));
        }

        #[test]
        fn tokens_come_out_as_they_went_in_and_take_little_more_memory_than_they_have_bytes(
            tokens in prop::collection::vec("[a-z]{60,70}", 1..200),
        ) {
            let mut list = TokenList::with_capacity(1_000);
            tokens.iter().for_each(|token| list.push(token));
            list.shrink();
            prop_assert!(list.iter().eq(tokens.iter().map(String::as_str)));
            let needed = list.bytes() + 4 * list.len();
            prop_assert!(list.capacity_bytes() <= needed + needed / 8);
        }

        #[test]
        fn no_bytes_make_the_list_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(devices) = decode_devices(&bytes) {
                prop_assert!(devices.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }

        #[test]
        fn tokens_come_back_in_order(tokens in prop::collection::vec("[!-~]{1,40}", 0..50)) {
            let mut list = TokenList::default();
            tokens.iter().for_each(|token| list.push(token));
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), tokens);
        }
    }

    #[test]
    fn a_thousand_neighbours_take_about_a_thousand_bytes() {
        let devices: Vec<_> = (500_000..501_000).map(DeviceId::from_raw).collect();
        assert!(encode_devices(&devices).len() < 1_010);
    }
}
