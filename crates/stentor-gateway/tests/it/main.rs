//! What devices get, over a store in memory.

mod autopush;
mod room;
mod sessions;
