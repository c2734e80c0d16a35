//! Deliveries to devices, with a store in memory.

mod allocations;
mod autopush;
mod ccs;
mod logins;
mod mcs;
mod mqtt;
mod room;
mod sessions;
mod upstream;
