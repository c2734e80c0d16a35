//! What devices get, over a store in memory.

mod mcs;
mod room;
mod sessions;
