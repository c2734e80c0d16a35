//! Nouns, rules and ports of Stentor.
//!
//! This crate does no IO, starts no task, reads no clock and knows no SQL: every rule here is a function of its
//! arguments, so that it can be tested in microseconds and outlive every engine and every push service.
#![forbid(unsafe_code)]

pub mod account;
pub mod app;
pub mod audit;
pub mod campaign;
pub mod channel;
pub mod chunk;
mod codes;
pub mod delivery;
pub mod device;
pub mod error;
pub mod group;
pub mod id;
pub mod ledger;
pub mod limits;
pub mod message;
pub mod name;
pub mod outbound;
pub mod outcome;
pub mod person;
pub mod ports;
pub mod proposal;
pub mod provider;
pub mod published;
pub mod quota;
mod reason;
pub mod repetition;
pub mod retry;
pub mod schedule;
pub mod settlement;
pub mod target;
pub mod time;
pub mod topic;
pub mod upstream;
pub mod user;
pub mod varint;
pub mod word;
