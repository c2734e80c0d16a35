//! What devices get, over a store in memory.

mod mcs;
mod mqtt;
mod room;
mod sessions;
