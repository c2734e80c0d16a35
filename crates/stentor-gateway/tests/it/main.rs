//! What devices get, over a store in memory.

mod room;
mod sessions;
mod upstream;
