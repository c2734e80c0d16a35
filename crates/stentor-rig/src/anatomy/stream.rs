//! One direction of a TCP connection: new bytes, repeated bytes, and the content in order.

use super::content::{ContentBytes, ContentReader};
use std::collections::BTreeMap;

/// The maximum number of bytes waiting for a missing piece; beyond it, the piece is given up.
const WAITING_MAX_BYTES: usize = 8 << 20;

/// The bytes of one direction, numbered from its first.
#[derive(Clone, Debug, Default)]
pub(super) struct ByteStream {
    /// The sequence number of the first byte.
    first: Option<u32>,
    /// The number of bytes received without a gap.
    in_order: u64,
    /// Pieces behind a gap, by their place.
    waiting: BTreeMap<u64, Vec<u8>>,
    waiting_bytes: usize,
    content: ContentReader,
}

/// The result of taking the payload of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TakenPayload {
    /// Bytes received before.
    pub(super) repeated: u64,
    /// Bytes received for the first time.
    pub(super) fresh: u64,
    /// Bytes that became readable; more than `fresh` when a gap closed, less when one opened.
    pub(super) kinds: ContentBytes,
}

impl ByteStream {
    /// Sets the sequence number of the first byte.
    pub(super) fn begin(&mut self, first: u32) {
        self.first.get_or_insert(first);
    }

    /// Takes the payload of a packet.
    pub(super) fn take(&mut self, sequence: u32, payload: &[u8]) -> TakenPayload {
        let first = *self.first.get_or_insert(sequence);
        let Some(start) = self.place(sequence.wrapping_sub(first)) else {
            return TakenPayload { repeated: payload.len() as u64, ..TakenPayload::default() };
        };
        let pieces = self.missing(start, payload);
        let fresh: usize = pieces.iter().map(|(_, piece)| piece.len()).sum();
        for (at, piece) in pieces {
            self.waiting_bytes += piece.len();
            self.waiting.insert(at, piece.to_vec());
        }
        let kinds = self.read_on();
        TakenPayload { repeated: (payload.len() - fresh) as u64, fresh: fresh as u64, kinds }
    }

    /// The place of a byte; the number wraps around every 4 GiB. `None` before the first.
    fn place(&self, number: u32) -> Option<u64> {
        let ahead = number.wrapping_sub(self.in_order as u32).cast_signed();
        self.in_order.checked_add_signed(i64::from(ahead))
    }

    /// The pieces of a payload that are not there yet, with their places.
    fn missing<'a>(&self, start: u64, payload: &'a [u8]) -> Vec<(u64, &'a [u8])> {
        let end = start + payload.len() as u64;
        let mut pieces = Vec::new();
        let mut at = start.max(self.in_order);
        let piece = |from: u64, to: u64| (from, &payload[(from - start) as usize..(to - start) as usize]);
        // The piece before may reach into this one.
        let before = self.waiting.range(..at).next_back().map(|(place, bytes)| (*place, bytes.len() as u64));
        at = before.map_or(at, |(place, length)| at.max(place + length));
        if at >= end {
            return pieces;
        }
        for (place, bytes) in self.waiting.range(at..end) {
            if *place > at {
                pieces.push(piece(at, *place));
            }
            at = place + bytes.len() as u64;
        }
        if at < end {
            pieces.push(piece(at, end));
        }
        pieces
    }

    /// Reads the bytes that are in order now.
    fn read_on(&mut self) -> ContentBytes {
        let mut kinds = ContentBytes::default();
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() > self.in_order {
                if self.waiting_bytes <= WAITING_MAX_BYTES {
                    break;
                }
                // The piece will not come any more: it was not captured.
                self.in_order = *entry.key();
                self.content.lose_track();
            }
            let bytes = entry.remove();
            self.waiting_bytes -= bytes.len();
            self.in_order += bytes.len() as u64;
            let read = self.content.read(&bytes);
            kinds.framing += read.framing;
            kinds.tls += read.tls;
            kinds.payload += read.payload;
        }
        kinds
    }

    /// Returns the number of bytes that never became readable, because a piece before them is missing.
    pub(super) const fn unread_bytes(&self) -> u64 {
        self.waiting_bytes as u64
    }
}

#[cfg(test)]
mod tests;
