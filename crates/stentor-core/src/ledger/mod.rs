//! The life of a campaign, as rules over values: how its deliveries move, what ends with it, and when it is over.
//!
//! An engine keeps rows ([`LedgerRows`]) and asks here what becomes of them, so that every engine decides alike. Nothing here
//! knows how a row is kept, reads a clock or a configuration. What is decided is a function of values ([`ending`],
//! [`decide`], [`decide_lease`], [`finish`], …); what follows from it is written row by row, in one order for all engines.

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

pub use begin::{Audience, Cutting, NextStep, begin, expand, next_step, slices};
pub use books::{Books, TooFew};
pub use cache::{LedgerCache, finish_if_over};
pub use collapse::{Precedence, may_replace};
pub use control::{act, end_or_quarantine, end_some_at, give_up_producer, stop_at, wind_up};
pub use lease::{FIRST_EPOCH, LeaseDecision, decide_lease, lease, queue_again, release};
pub use life::{Ending, Finish, Standing, decide, ending, finish};
pub use maintenance::{ZERO_TTL_GRACE, is_too_late, recover, release_dead, sweep};
pub use quarantine::{take_away, with_each};
pub use receipts::{receive, receive_apart};
pub use rows::{Chunk, Contents, Damaged, LedgerRows, NewChunk, OrphanedBooks};
pub use settle::settle;
