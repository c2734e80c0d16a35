//! What devices get, over a store in memory.

mod autopush;
mod mcs;
mod mqtt;
mod room;
mod sessions;
