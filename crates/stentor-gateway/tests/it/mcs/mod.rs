//! MCS, from check-in to acknowledgement, over connections in memory.

mod foreign;
mod namespace;
mod program;
mod push_service;

mod delivery;
mod login;
mod registration;
mod sockets;
mod upstream;
