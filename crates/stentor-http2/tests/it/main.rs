//! The client against conforming servers, and against violating ones.
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
