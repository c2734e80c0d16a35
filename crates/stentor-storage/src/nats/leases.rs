//! The tickets that this process has leased.

use std::collections::HashMap;

use async_nats::Subject;
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::QueueLease;
use stentor_core::time::Timestamp;

/// Leases by chunk; a token distinguishes each from earlier ones.
#[derive(Default)]
pub(super) struct LeasedTickets {
    leases: HashMap<ChunkId, HeldTicket>,
    last_token: u64,
}

struct HeldTicket {
    ticket: Ticket,
    token: u64,
    until: Timestamp,
    /// The subject for replies to the server about it.
    reply: Subject,
}

impl LeasedTickets {
    /// Records a ticket received from the server. Returns `None` if it is leased already, and the server only checks whether it still is.
    pub(super) fn note(&mut self, ticket: Ticket, reply: Subject, until: Timestamp) -> Option<QueueLease> {
        if let Some(held) = self.leases.get_mut(&ticket.chunk) {
            held.reply = reply;
            return None;
        }
        self.last_token += 1;
        let token = self.last_token;
        self.leases.insert(ticket.chunk, HeldTicket { ticket, token, until, reply });
        Some(QueueLease { ticket, token })
    }

    /// Extends a held lease; returns the subject for the reply to the server.
    pub(super) fn extend(&mut self, lease: &QueueLease, until: Timestamp, now: Timestamp) -> Option<Subject> {
        let held = self.leases.get_mut(&lease.ticket.chunk);
        let held = held.filter(|held| held.token == lease.token && held.until > now)?;
        held.until = until;
        Some(held.reply.clone())
    }

    /// Ends leases that are still held; returns the subjects for replies to the server.
    pub(super) fn end(&mut self, leases: &[QueueLease]) -> Vec<Subject> {
        leases.iter().filter_map(|lease| self.end_one(lease)).collect()
    }

    fn end_one(&mut self, lease: &QueueLease) -> Option<Subject> {
        let chunk = lease.ticket.chunk;
        let is_held = self.leases.get(&chunk).is_some_and(|held| held.token == lease.token);
        is_held.then(|| self.leases.remove(&chunk))?.map(|held| held.reply)
    }

    /// Ends the expired leases of a lane; returns the subjects for replies to the server.
    pub(super) fn end_lapsed(&mut self, lane: Lane, now: Timestamp) -> Vec<Subject> {
        let lapsed = self.leases.extract_if(|_, held| held.ticket.lane == lane && held.until <= now);
        lapsed.map(|(_, held)| held.reply).collect()
    }

    /// Counts the leases that have run out by lane, with the first due time of each.
    pub(super) fn lapsed(&self, now: Timestamp) -> HashMap<Lane, (u64, Timestamp)> {
        let mut lapsed: HashMap<Lane, (u64, Timestamp)> = HashMap::new();
        for held in self.leases.values().filter(|held| held.until <= now) {
            let due_at = held.ticket.due_at;
            let (count, first) = lapsed.entry(held.ticket.lane).or_insert((0, due_at));
            *count += 1;
            *first = (*first).min(due_at);
        }
        lapsed
    }

    /// Lists the numbers of all leases.
    pub(super) fn tokens(&self) -> HashMap<ChunkId, u64> {
        self.leases.iter().map(|(chunk, held)| (*chunk, held.token)).collect()
    }

    /// Removes former leases in lanes for which the server has nothing outstanding; returns their number.
    pub(super) fn forget_lost(
        &mut self,
        before: &HashMap<ChunkId, u64>,
        is_out: impl Fn(Lane) -> bool,
    ) -> usize {
        let count = self.leases.len();
        self.leases.retain(|chunk, held| before.get(chunk) != Some(&held.token) || is_out(held.ticket.lane));
        count - self.leases.len()
    }

    /// Removes the leases of some chunks.
    pub(super) fn forget(&mut self, chunks: &[ChunkId]) {
        chunks.iter().for_each(|chunk| drop(self.leases.remove(chunk)));
    }

    /// Removes all leases.
    pub(super) fn clear(&mut self) {
        self.leases.clear();
    }
}
