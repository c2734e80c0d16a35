//! The cases of the store.

pub mod apps;
pub mod at_once;
pub mod audit;
pub mod chunks;
pub mod collapse;
pub mod control;
pub mod devices;
pub mod expiry;
pub mod groups;
pub mod history;
pub mod idempotency;
pub mod ledger;
pub mod messages;
pub mod nodes;
pub mod preconditions;
pub mod producers;
pub mod prune;
pub mod receipts;
pub mod recover;
pub mod registry;
pub mod restart;
pub mod schedules;
pub mod tokens;
pub mod topics;
pub mod upstream;
pub mod users;
