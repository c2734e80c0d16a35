//! MCS, from check-in to acknowledgement, over connections in memory.

mod program;

mod delivery;
mod login;
mod registration;
mod upstream;
