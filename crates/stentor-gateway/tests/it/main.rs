//! What devices get, over a store in memory.

mod ccs;
mod room;
mod sessions;
mod upstream;
