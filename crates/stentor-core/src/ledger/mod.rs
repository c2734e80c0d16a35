//! The life cycle of a campaign, as rules over values: transitions of its deliveries, their end with the campaign, and the end of the
//! campaign.
//!
//! An engine stores rows ([`LedgerRows`]) and applies these rules to them, so that every engine decides alike. This module is independent
//! of storage, clock and configuration. Decisions are functions of values ([`ending`], [`decide`], [`decide_lease`], [`finish`], …); their
//! consequences are written row by row, in one order for all engines.

mod begin;
mod books;
mod cache;
mod collapse;
mod control;
mod lease;
mod life;
mod maintenance;
mod quarantine;
mod receipts;
mod rows;
mod settle;
#[cfg(test)]
mod tests;

pub use begin::{
    AddressedDevices, Audience, Cutting, NextStep, begin, begin_leased, expand, next_step, slices,
};
pub use books::{Books, TooFew};
pub use cache::{LedgerCache, finish_if_over};
pub use collapse::{Precedence, may_replace};
pub use control::{act, end_or_quarantine, end_some_at, give_up_producer, stop_at, wind_up};
pub use lease::{LeaseDecision, decide_lease, lease, queue_again, release};
pub use life::{Ending, Finish, Standing, decide, ending, finish};
pub use maintenance::{ZERO_TTL_GRACE, is_too_late, recover, release_dead, sweep};
pub use quarantine::{take_away, with_each};
pub use receipts::{receive, receive_apart};
pub use rows::{Chunk, Contents, Damaged, FIRST_EPOCH, LedgerRows, NewChunk, OrphanedBooks};
pub use settle::settle;
