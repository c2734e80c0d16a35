//! What devices get, over a store in memory.

mod mqtt;
mod room;
mod sessions;
