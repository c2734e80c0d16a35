//! The client against servers that obey, and against servers that do not.
#![allow(missing_docs, reason = "tests")]

mod addresses;
mod answers;
mod congestion;
mod connections;
mod corpus;
mod faults;
mod foreign;
mod frames;
mod handshakes;
mod idleness;
mod mischief;
mod server;
mod settings;
mod support;
mod whims;
